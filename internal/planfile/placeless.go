package planfile

import (
	"path/filepath"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/seed-1177d267/sluice/internal/expr"
	"github.com/seed-1177d267/sluice/plan"
)

// place notes the first place where a task depends on the file's folder, if nobody chose that
// folder. The places are: its dir, or that of the plan or the defaults; the files of a foreach; a
// command in the folder. The reader cannot know which other files a command reads there.
func (r *reader) place(t *task) {
	if r.unplaced == "" || len(r.placeless) > 0 {
		return
	}
	value := func(all []entry, table map[string]int, key string) string {
		if e := all[table[key]]; e.k != nil {
			return follow(e.v).Value
		}
		return ""
	}
	own, shared := value(r.own, r.taskKeys.index, "dir"), value(r.found, r.planKeys.index, "dir")
	run := r.has("run")
	note := func(task int, key string) {
		r.placeless = plan.Problems{{Task: task, Key: key, Item: -1, Message: r.unplaced}}
	}
	task := len(r.spec.Tasks) - 1
	switch {
	case run && own != "" && r.relative(own):
		note(task, "dir")
	case run && own == "" && shared != "" && r.relative(shared):
		note(-1, "dir")
	case run && own+shared != "": // all that it names is in there
	case t.files != "" && r.relative(t.files):
		note(task, "foreach")
	case run && ofFolder.MatchString(words(r.own[r.taskKeys.index["run"]].v)):
		note(task, "run")
	}
}

// relative reports whether a path starts from the folder of the file, as far as the file tells.
func (r *reader) relative(path string) bool {
	lead := expr.Lead(r.led(path))
	return lead != "" && !filepath.IsAbs(lead)
}

// words returns a command as a text, also one that is a list.
func words(n *yaml.Node) string {
	n = follow(n)
	if n.Kind != yaml.SequenceNode {
		return n.Value
	}
	var b strings.Builder
	for _, word := range n.Content {
		b.WriteString(follow(word).Value + " ")
	}
	return b.String()
}

// ofFolder finds a word of a command that is a path from the folder it runs in.
var ofFolder = regexp.MustCompile(`(^|[\s;&|(<>])\.\.?/`)
