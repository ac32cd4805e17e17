package report

import (
	"fmt"
	"strings"
)

// Annotations returns the commands that make GitHub Actions mark each failed task. The mark is an
// error, or a warning if the plan allows the failure. It has at most mostAnnotation bytes. file is the plan file's path in the
// repository, with slashes, or "".
func (r *Run) Annotations(file string) string {
	if file != "" {
		file = ",file=" + escapeProperty(file)
	}
	var b strings.Builder
	for i := range r.Tasks {
		t := &r.Tasks[i]
		if !broke(&t.Task) {
			continue
		}
		level := "error"
		if t.ContinueOnError {
			level = "warning"
		}
		text := cut(strings.Join(append([]string{How(&t.Task)}, t.tail()...), "\n"), mostAnnotation)
		fmt.Fprintf(&b, "::%s title=%s%s::%s\n", level, escapeProperty(r.Plan.Title()+": "+t.label()), file, escapeData(text))
	}
	return b.String()
}

// escapeData and escapeProperty escape what Actions would take for its own
// (https://github.com/actions/toolkit/blob/main/packages/core/src/command.ts).
func escapeData(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(s)
}

func escapeProperty(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C").Replace(s)
}
