// Package report owns the words in which a plan's end is told: lines of text for people, JUnit XML for CI servers, annotations and a
// summary in Markdown for GitHub Actions. It reads no store; whoever asks hands it the plan and its tasks.
package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/internal/cells"
	"github.com/seed-1177d267/sluice/internal/duration"
	"github.com/seed-1177d267/sluice/plan"
)

// Run is a plan and what to tell of it.
type Run struct {
	Plan    plan.Plan // with its Counts
	Tasks   []Task    // in the order in which they are to be told; need not be all
	More    int       // how many others than Tasks failed too
	Outputs []Output  // of the plan's last tasks, those that no other needs
	Unasked int       // last tasks beyond those, which nobody asked for an output
	Left    string    // why a plan that has not ended was left, as "interrupted"
	Reacted []string  // tasks that have run because others failed, or all the same, and that a retry keeps
	Undone  []string  // what a retry names, so that also that runs again which those may have undone; none: nothing
	Now     time.Time // for how long what has not ended has taken

	Ellipsis string // stands in Text for what was cut off; default "…", which all other forms have
}

// Task is a task with the last lines that it printed, without their newlines.
type Task struct {
	plan.Task
	Item json.RawMessage // what it is for, if it is an item of a foreach task
	Tail []string
	Seen bool // the person sees the tail already: Text leaves it out
}

// ellipsis stands for what was cut off.
const ellipsis = "…"

func (t *Task) label() string { return Label(&t.Task, t.Item, ellipsis) }

// mostItem is how many columns of an item are shown beside its task's name.
const mostItem = 40

// Label names a task among others, in one line without control characters: by its key, and an item of a foreach task also by what it is
// for, or the beginning of that, as in "copy[17] (alice@example.com)": an index alone says nothing to who wrote the list. Commands take
// the key, not the label. mark stands for what was cut off.
func Label(t *plan.Task, item json.RawMessage, mark string) string {
	key := cells.Clean(t.Key())
	if len(item) == 0 {
		return key
	}
	var text string
	if json.Unmarshal(item, &text) != nil || text == "" { // also null, and a text of nothing is seen by its quotes
		var short bytes.Buffer
		if json.Compact(&short, item) != nil {
			return key
		}
		text = short.String()
	}
	return fmt.Sprintf("%s (%s)", key, cells.Cut(cells.Clean(text), mostItem, mark))
}

// Output is the output of a task.
type Output struct {
	Name    string
	Value   json.RawMessage
	Missing string // why there is no value, though there is an output
}

// Style is how words of a text are coloured, after they were measured.
type Style interface {
	Bold(text string) string
	State(word, text string) string // of a text that tells of what is in the state with that word
}

// Command returns the command of ours with these words, as a person types it.
type Command func(words ...string) string

type plain struct{}

func (plain) Bold(text string) string     { return text }
func (plain) State(_, text string) string { return text }

// Verdict says in one line how the plan ended, or stands:
//
//	nightly#3 failed in 4m05s: 117 succeeded, 2 failed, 1 skipped
func Verdict(p *plan.Plan, now time.Time) string { return StyledVerdict(p, now, plain{}) }

// StyledVerdict is Verdict in colours.
func StyledVerdict(p *plan.Plan, now time.Time, s Style) string {
	how := s.State(p.State.String(), p.State.String())
	switch {
	case p.State == plan.PlanRunning:
		how = "has not finished after " + duration.Text(now.Sub(p.Created))
	case !p.Ended.IsZero():
		how += " in " + duration.Text(p.Ended.Sub(p.Created))
	}
	return s.Bold(cells.Clean(p.Title())) + " " + how + ": " + tally(p.Counts)
}

// GoOn returns the command that goes on with the plan, or "" if there is nothing to go on with.
func GoOn(p *plan.Plan, c Command) string {
	switch p.State {
	case plan.PlanRunning:
		return c("plan", "run", "--resume", p.Title())
	case plan.PlanFailed, plan.PlanCancelled:
		return c("plan", "retry", p.Title(), "--run")
	}
	return ""
}

// Again says how those run again that have run because others failed, or all the same, and how with them what they may have undone: lines
// that go with the command that a retry is. args are more words of it.
func Again(p *plan.Plan, reacted, undone []string, c Command, args ...string) []string {
	if len(reacted) == 0 {
		return nil
	}
	have, stay, they, them := "have", "stay as they are", "they", "them"
	if len(reacted) == 1 {
		have, stay, they, them = "has", "stays as it is", "it", "it"
	}
	lines := []string{fmt.Sprintf("%s %s run after the failure and %s; to run %s again too: %s", list(reacted), have, stay, them, c(slices.Concat([]string{"plan", "retry", p.Title(), "--downstream"}, args)...))}
	if len(undone) > 0 {
		lines = append(lines, fmt.Sprintf("and what %s may have undone: %s", they,
			c(slices.Concat([]string{"plan", "retry", p.Title()}, undone, []string{"--downstream"}, args)...)))
	}
	return lines
}

// list joins names as people do, the first of many.
func list(names []string) string {
	const most = 5
	if more := len(names) - most; more > 1 {
		names = append(names[:most:most], fmt.Sprintf("%d more", more))
	}
	if len(names) == 1 {
		return names[0]
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
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
