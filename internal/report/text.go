package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-1177d267/sluice/internal/cells"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// mostOutput is how many bytes of an output are shown.
const mostOutput = 4000

// Text tells people how the run ended. It has the failed tasks with their last lines, the state of
// the plan, its outputs, and how to continue.
func (r *Run) Text(s Style, typed Command) string {
	c := func(words ...string) string { return cells.Clean(typed(words...)) }
	var b strings.Builder
	mark := cmp.Or(r.Ellipsis, ellipsis)
	title, failed := r.Plan.Title(), false
	for i := range r.Tasks {
		t := &r.Tasks[i]
		if !broke(&t.Task) {
			continue
		}
		failed = true
		fmt.Fprintf(&b, "\n%s %s\n", s.Bold(Label(&t.Task, t.Item, mark)), s.State(t.State(), How(&t.Task)))
		if len(t.Tail) == 0 {
			continue
		}
		if !t.Seen {
			for _, line := range t.tail() {
				b.WriteString(Quoted(line) + "\n")
			}
		}
		fmt.Fprintf(&b, "  all of it: %s\n", c("task", "logs", title, t.Key()))
	}
	if r.More > 0 {
		fmt.Fprintf(&b, "\nand %s more that failed: %s\n", Thousands(r.More), c("task", "list", "--plan", title, "--state", "failed,stopped,lost"))
	}
	if failed {
		b.WriteString("\n")
	}
	if r.Left != "" {
		b.WriteString(r.Left + ": ")
	}
	b.WriteString(StyledVerdict(&r.Plan, r.Now, s) + "\n")
	if line := Failed(&r.Failures); line != "" {
		b.WriteString(line + "\n")
	}
	if line := r.flaky(mark); line != "" {
		b.WriteString(line + "\n")
	}
	for i := range r.Outputs {
		o := &r.Outputs[i]
		if o.empty() {
			continue
		}
		fmt.Fprintf(&b, "%s: %s\n", s.Bold(cells.Clean(o.Name)), o.text(title, mark, c))
	}
	if r.Unasked && len(r.Outputs) > 0 {
		fmt.Fprintf(&b, "others of its last tasks may have an output: %s\n", c("task", "show", title, "TASK"))
	}
	for i := range r.Awaits {
		t := &r.Awaits[i]
		fmt.Fprintf(&b, "%s asks: %s\n", s.Bold(cells.Clean(t.Key())), cells.Clean(t.Detail))
		fmt.Fprintf(&b, "  to approve: %s\n  to reject: %s\n", c("task", "approve", title, t.Key()), c("task", "reject", title, t.Key()))
	}
	for _, line := range r.Ways(c) {
		b.WriteString(line + "\n")
	}
	if line := r.unrun(c); line != "" {
		b.WriteString(line + "\n")
	}
	if line := Outdated(&r.Plan, r.Outdated, c); line != "" {
		b.WriteString(line + "\n")
	}
	return b.String()
}

// misfits returns the tasks that failed because of the plan itself. Their expressions lead to
// values that a task cannot take, or their output cannot be kept. others reports whether tasks
// failed in other ways, too.
func (r *Run) misfits() (names []string, others bool) {
	if !r.Plan.State.Ended() {
		return nil, false
	}
	for i := range r.Tasks {
		switch t := &r.Tasks[i]; {
		case !broke(&t.Task) || t.ContinueOnError || rules.FailedByItems(t.Status, t.Reason):
		case t.Reason == plan.ReasonInput || t.Reason == plan.ReasonOutput:
			names = append(names, cells.Clean(t.Key()))
		default:
			others = true
		}
	}
	return names, others
}

// Quoted is a line of a task's log among lines of ours. The mark also keeps a line that GitHub Actions would take for a command from
// being one.
func Quoted(line string) string { return "  | " + cells.Clean(line) }

// QuotedShort is Quoted with at most as much of the line as reports have.
func QuotedShort(text string) string { return "  | " + line(text) }

// empty reports whether an output is a list of items without any output. Such a list may be long
// and tells nothing.
func (o *Output) empty() bool {
	var list []any
	return json.Unmarshal(o.Value, &list) == nil && len(list) > 0 && !slices.ContainsFunc(list, func(v any) bool { return v != nil })
}

// text writes an output for people: a text as it is, and anything else as JSON. A long output is on
// lines of its own, and a cut one has a mark.
func (o *Output) text(title, mark string, c Command) string {
	if o.Missing != "" {
		return "not shown: " + cells.Clean(o.Missing)
	}
	var text string
	if json.Unmarshal(o.Value, &text) != nil {
		var short, long bytes.Buffer
		_, _ = json.Compact(&short, o.Value), json.Indent(&long, o.Value, "", "  ") // the store has only valid JSON
		if text = short.String(); cells.Width(text) > 100 {
			text = long.String()
		}
	}
	lines := strings.Split(strings.TrimRight(cut(text, mostOutput), "\n"), "\n")
	for i := range lines {
		lines[i] = cells.Clean(lines[i])
	}
	if len(text) > mostOutput {
		lines = append(lines, fmt.Sprintf("%s %d bytes; all of it: %s", mark, len(o.Value), c("task", "show", title, o.Name, "--output", "json")))
	}
	if len(lines) == 1 {
		return lines[0]
	}
	return "\n  " + strings.Join(lines, "\n  ")
}

// cut returns at most n bytes of a text, whole characters.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}
