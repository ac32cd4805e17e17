package report

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/seed-1177d267/sluice/internal/duration"
	"github.com/seed-1177d267/sluice/internal/states"
	"github.com/seed-1177d267/sluice/plan"
)

// MostMarkdown limits the bytes of a file with Markdown. GitHub refuses a step's summary of more than
// 1 MiB, and other commands may add to the same file.
const MostMarkdown = 900 << 10

// leastMarkdown is what a run needs besides its tasks.
const leastMarkdown = 4 << 10

// Markdown returns the run for the summary of a GitHub Actions step: the verdict, the failed tasks
// with their last lines, and the folded table. It counts the tasks for which the text or the table
// has no room. The failed tasks take at most half of the room. room is in bytes; without any, only
// the verdict and the numbers are left.
func (r *Run) Markdown(room int) string {
	p := &r.Plan
	room = max(room-leastMarkdown, 0)
	b := &limited{room: room / 2}
	fmt.Fprintf(&b.Builder, "### %s %s\n", mark(p.State), markdown(line(Verdict(p, r.Now))))

	if len(r.Awaits) > 0 {
		b.put(fmt.Sprintf("\nWaiting for you (%d)\n\n", len(r.Awaits)))
	}
	for i := range r.Awaits {
		t := &r.Awaits[i]
		b.put(fmt.Sprintf("- %s: %s\n", markdown(line(t.Key())), markdown(line(t.Detail))))
	}
	left := r.More
	for i := range r.Tasks {
		t := &r.Tasks[i]
		if broke(&t.Task) && !b.put(failed(t)) {
			left++
		}
	}
	if left > 0 {
		fmt.Fprintf(&b.Builder, "\nand %s more that failed\n", Thousands(left))
	}
	table := r.Table
	if table == nil {
		table = &Table{Tasks: r.Tasks}
	}
	if len(table.Tasks) == 0 {
		return b.String()
	}

	fmt.Fprintf(&b.Builder, "\n<details><summary>%s</summary>\n\n| Task | State | Took | Detail |\n|---|---|---|---|\n", listed(r, table))
	left, b.room = table.More, room
	for i := range table.Tasks {
		if !b.put(row(&table.Tasks[i], r)) {
			left++
		}
	}
	b.WriteString("\n")
	if left > 0 {
		fmt.Fprintf(&b.Builder, "and %s more\n\n", Thousands(left))
	}
	b.WriteString("</details>\n\n")
	return b.String()
}

// limited is a text that takes parts while there is room.
type limited struct {
	strings.Builder
	room int
}

func (b *limited) put(part string) bool {
	if b.Len()+len(part) > b.room {
		b.room = 0 // whatever comes is left out: a list with gaps would mislead
		return false
	}
	b.WriteString(part)
	return true
}

func mark(s plan.Lifecycle) string {
	switch s {
	case plan.PlanSucceeded:
		return "✅"
	case plan.PlanFailed:
		return "❌"
	case plan.PlanCancelled, plan.PlanAbandoned:
		return "🚫"
	}
	return "⏳"
}

func failed(t *Task) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n**%s** %s\n", markdown(t.label()), markdown(How(&t.Task)))
	if tail := t.tail(); len(tail) > 0 {
		b.WriteString("\n" + fenced(tail) + "\n")
	}
	return b.String()
}

func row(t *Task, r *Run) string {
	time := ""
	if d := took(&t.Task, r.Now); d > 0 {
		time = duration.Text(d)
	}
	detail := cause(&t.Task)
	if t.Attempt > 1 {
		detail = strings.TrimSuffix(fmt.Sprintf("attempt %d: %s", t.Attempt, detail), ": ")
	}
	return fmt.Sprintf("| %s | %s | %s | %s |\n", markdown(t.label()), cmp.Or(t.Stands, states.OfTask(&t.Task)), time, markdown(line(cmp.Or(t.Says, detail))))
}

// listed says how many tasks are listed, if these are all tasks of the plan.
func listed(r *Run, table *Table) string {
	if c := &r.Plan.Counts; len(table.Tasks) != c.Total() || c.Gathering+c.Gathered > 0 {
		return "tasks"
	}
	return tasks(len(table.Tasks))
}

func tasks(n int) string {
	if n == 1 {
		return "1 task"
	}
	return Thousands(n) + " tasks"
}

// marks are the characters that mean something in Markdown as GitHub reads it.
// Mentions and addresses are found after all escapes were undone, in what is one
// text then: a comment parts it.
var marks = func() *strings.Replacer {
	pairs := []string{"&", "&amp;", "<", "&lt;", ">", "&gt;", "@", "@<!-- -->"}
	for _, c := range "\\`*_{}[]()#+-.!|~$:" {
		pairs = append(pairs, string(c), `\`+string(c))
	}
	return strings.NewReplacer(pairs...)
}()

// markdown returns a line of text so that it stands for itself in a paragraph or
// a cell of a table.
func markdown(s string) string { return marks.Replace(s) }

// fenced returns clean lines as a block of code, in a fence that none of them ends.
func fenced(lines []string) string {
	var text strings.Builder
	longest := 2
	for _, line := range lines {
		text.WriteString(line + "\n")
		trimmed := strings.TrimLeft(line, " \t")
		longest = max(longest, len(trimmed)-len(strings.TrimLeft(trimmed, "`")))
	}
	fence := strings.Repeat("`", longest+1)
	return fence + "text\n" + text.String() + fence
}
