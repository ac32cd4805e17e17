package cli

import (
	"context"
	"strings"

	"github.com/seed-1177d267/sluice/internal/cli/view"
	"github.com/seed-1177d267/sluice/internal/report"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// Whose output a run shows as it goes.
const (
	logsFailed = "failed" // the last lines of tasks that failed
	logsAll    = "all"    // all of what each attempt printed, when it ends, as ninja does, so that tasks at the same time do not mix
	logsNone   = "none"
)

func logsChoice() choice { return choice{logsFailed, []string{logsFailed, logsAll, logsNone}} }

// How much of a failed task's log is shown, and of how many tasks.
const (
	tailLines = 20
	mostTails = 10
)

// outputs are what a view prints below the lines that say how tasks ended.
type outputs struct {
	r     store.Reader
	which string
	lines int                 // that the view has printed
	at    map[plan.TaskID]int // at which of them the last lines of a task's log are
}

func newOutputs(r store.Reader, which string) *outputs {
	return &outputs{r: r, which: which, at: map[plan.TaskID]int{}}
}

// below returns the lines that go below the one that says how a task, or an attempt, ended.
func (o *outputs) below(ctx context.Context, e *view.Event) (lines []string, err error) {
	o.lines++
	switch o.which {
	case logsAll:
		lines, err = logOf(ctx, o.r, e.Task, e.Attempt)
	case logsFailed:
		if !view.Broken(e.Status) || rules.FailedByItems(e.Status, e.Reason) || len(o.at) >= mostTails {
			return nil, nil
		}
		t := plan.Task{ID: e.Task, Attempt: e.Attempt}
		if e.Took >= 0 {
			t.Started = e.At.Add(-e.Took)
		}
		lines, err = tailOf(ctx, o.r, &t, tailLines)
	}
	if err != nil || len(lines) == 0 {
		return nil, err
	}
	if e.Status.Finished() {
		o.at[e.Task] = o.lines + max(0, len(lines)-tailLines)
	}
	o.lines += len(lines)
	quoted := report.Quoted
	if o.which == logsFailed {
		quoted = report.QuotedShort
	}
	for i := range lines {
		lines[i] = quoted(lines[i])
	}
	return lines, nil
}

// markSeen marks the tasks whose last lines were printed so little ago that a person still sees them, and those whose lines nobody wants.
func (o *outputs) markSeen(tasks []report.Task) {
	for i := range tasks {
		line, printed := o.at[tasks[i].ID]
		tasks[i].Seen = o.which == logsNone || printed && o.lines-line <= 2*tailLines
	}
}

// logOf returns what an attempt of a task printed, of those since the task was last retried, in lines without newlines.
func logOf(ctx context.Context, r store.Reader, id plan.TaskID, attempt int) ([]string, error) {
	if attempt == 0 {
		return nil, nil
	}
	entries, _, err := readLog(ctx, r, id, 0)
	if err != nil {
		return nil, err
	}
	return linesOf(view.OfAttempt(view.Tries(entries, &plan.Task{}), attempt)), nil
}

// linesOf returns the text of entries in lines without newlines; nil if it is empty.
func linesOf(entries []plan.LogEntry) []string {
	var b strings.Builder
	for _, e := range entries {
		b.WriteString(e.Text)
	}
	if b.Len() == 0 {
		return nil
	}
	return strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
}
