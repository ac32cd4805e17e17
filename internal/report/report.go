// Package report owns what a plan's end is told with outside of Sluice: JUnit XML
// for CI servers, Markdown for the summary of a GitHub Actions step, and a few
// lines of text. It reads no store; whoever asks hands it the plan and its tasks.
package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/internal/cells"
	"github.com/seed-1177d267/sluice/plan"
)

// Run is a plan and what to tell of it.
type Run struct {
	Plan  plan.Plan // with its Counts
	Tasks []Task    // in the order in which they are to be told; need not be all
	Now   time.Time // for how long what has not ended has taken
}

// Task is a task with the last lines that it printed, without their newlines.
type Task struct {
	plan.Task
	Tail []string
}

// Verdict says in one line how the plan ended, or stands:
//
//	nightly#3 failed in 4m5s: 117 succeeded, 2 failed, 1 skipped
func Verdict(p *plan.Plan, now time.Time) string {
	how := p.State.String()
	switch {
	case p.State == plan.PlanRunning:
		how = "has not finished after " + span(now.Sub(p.Created))
	case !p.Ended.IsZero():
		how += " in " + span(p.Ended.Sub(p.Created))
	}
	return cells.Clean(p.Title()) + " " + how + ": " + tally(p.Counts)
}

// tally counts the tasks by state, what went well first.
func tally(c plan.Counts) string {
	var parts []string
	for _, part := range []struct {
		n    int
		word string
	}{
		{c.Succeeded, "succeeded"}, {c.Failed, "failed"}, {c.Terminated, "terminated"}, {c.Orphaned, "orphaned"},
		{c.Skipped, "skipped"}, {c.Cancelled, "cancelled"},
		{c.Running + c.Claimed, "running"}, {c.Queued, "queued"}, {c.Held, "held"},
	} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.word))
		}
	}
	if len(parts) == 0 {
		return "no tasks"
	}
	return strings.Join(parts, ", ")
}

// Text returns the verdict and, for each task that failed, how it did and its
// last lines, indented.
func (r *Run) Text() string {
	var b strings.Builder
	b.WriteString(Verdict(&r.Plan, r.Now) + "\n")
	for i := range r.Tasks {
		t := &r.Tasks[i]
		if !broke(&t.Task) {
			continue
		}
		fmt.Fprintf(&b, "\n%s %s\n", cells.Clean(t.Key()), How(&t.Task))
		for _, line := range t.Tail {
			b.WriteString("  " + cells.Clean(line) + "\n")
		}
	}
	return b.String()
}

// broke reports whether the task failed, allowed or not.
func broke(t *plan.Task) bool {
	return plan.OutcomeOf(t.Status, t.Reason, false) == plan.OutcomeFailed
}

// How says in one line how a task ended, or how it is: its state, and what is
// known of the cause.
//
//	failed after 3 attempts: exit status 7
func How(t *plan.Task) string {
	how := t.State()
	if broke(t) {
		if t.Attempt > 1 {
			how += fmt.Sprintf(" after %d attempts", t.Attempt)
		}
		if t.ContinueOnError {
			how += ", which the plan allows"
		}
	}
	if cause := cause(t); cause != "" {
		how += ": " + cause
	}
	return how
}

func cause(t *plan.Task) string {
	first, _, _ := strings.Cut(strings.TrimSpace(t.Detail), "\n")
	switch {
	case first != "":
		return cells.Clean(first)
	case t.Exit != nil && t.Exit.Signal != "":
		return cells.Clean(t.Exit.Signal)
	case t.Exit != nil && t.Exit.Code != 0:
		return fmt.Sprintf("exit status %d", t.Exit.Code)
	case t.Status > plan.Failed:
		return fmt.Sprintf("status %d", t.Status)
	case t.Status.Finished() && t.Reason != plan.ReasonNone && string(t.Reason) != t.State():
		return string(t.Reason)
	}
	return ""
}

// took returns how long the last attempt ran, or has been running; 0 if none did.
func took(t *plan.Task, now time.Time) time.Duration {
	switch {
	case t.Started.IsZero():
		return 0
	case t.Status == plan.Running:
		return max(now.Sub(t.Started), 0)
	case t.Ended.IsZero():
		return 0
	}
	return max(t.Ended.Sub(t.Started), 0)
}

// span is a duration with as many digits as people read.
func span(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
