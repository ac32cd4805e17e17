// Package report owns the words that describe the end of a plan. It writes lines of text for
// people, JUnit XML for CI servers, and annotations and a Markdown summary for GitHub Actions. It
// reads no store; the caller passes the plan and its tasks.
package report

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/internal/cells"
	"github.com/seed-1177d267/sluice/internal/duration"
	"github.com/seed-1177d267/sluice/internal/failures"
	"github.com/seed-1177d267/sluice/internal/items"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/states"
	"github.com/seed-1177d267/sluice/plan"
)

// Run is a plan and what to tell of it.
type Run struct {
	Plan  plan.Plan // with its Counts
	Tasks []Task    // in the order in which they are to be told; need not be all
	More  int       // how many others than Tasks failed too
	Table *Table    // what Markdown lists below what failed; nil lists Tasks
	// Failures are all that failed, by how they did.
	Failures failures.Ways
	Outputs  []Output    // of the plan's last tasks, those that no other needs
	Unasked  bool        // there are last tasks beyond those, which nobody asked for an output
	Awaits   []plan.Task // tasks that wait for a person, of a plan that was left for that
	Left     string      // why a plan that has not ended was left, as "interrupted"
	Unrun    []string    // clean-ups that did not finish, because the plan was stopped, or left
	Reacted  Reaction    // what may be undone of what a retry keeps
	Changed  string      // the name of the plan's file, if it has other tasks by now than the plan, and a retry takes them
	Rerun    []string    // what that retry names, with --downstream, since it has succeeded; none: it names nothing
	// Outdated are tasks that a retry kept although a task that they need ran again.
	Outdated []string
	Flaky    []Task    // tasks that succeeded after failed attempts; need not be all
	Now      time.Time // for how long what has not ended has taken

	Ellipsis string // marks cut text in Text; default "…", which all other forms have
}

// Table is what a table of tasks lists.
type Table struct {
	Tasks []Task
	More  int // how many others it would list, had it room
}

// Task is a task with the last lines that it printed, without their newlines.
type Task struct {
	plan.Task
	Item    json.RawMessage // its value, if the task is an item of a foreach task
	Tail    []string
	Earlier [][]string // of a task that succeeded: the last lines of each attempt before the last one
	Seen    bool       // the person sees the tail already: Text leaves it out
	// Stands and Says are the state of a foreach task and its detail as its items make them; "" are those of the task itself.
	Stands, Says string
}

// FailedAttempts returns how many attempts of a task failed before one succeeded. An attempt that was lost with its node is none.
func FailedAttempts(t *plan.Task) int {
	if t.Status != plan.Succeeded || t.Expanded {
		return 0
	}
	return max(0, rules.Tried(t.Attempt, t.Rescues)-1)
}

// mostFlaky is how many flaky tasks are named in a line.
const mostFlaky = 5

// flaky says which tasks needed more than one attempt, and how many attempts each had:
//
//	2 tasks needed more than one attempt: copy[17] (alice) (2), verify (3)
func (r *Run) flaky(mark string) string {
	if len(r.Flaky) == 0 {
		return ""
	}
	word := "tasks"
	if len(r.Flaky) == 1 {
		word = "task"
	}
	names := make([]string, 0, mostFlaky+1)
	for i := range r.Flaky[:min(len(r.Flaky), mostFlaky)] {
		t := &r.Flaky[i]
		names = append(names, fmt.Sprintf("%s (%d)", Label(&t.Task, t.Item, mark), FailedAttempts(&t.Task)+1))
	}
	if more := len(r.Flaky) - mostFlaky; more > 0 {
		names = append(names, fmt.Sprintf("and %s more", Thousands(more)))
	}
	return fmt.Sprintf("%s %s needed more than one attempt: %s", Thousands(len(r.Flaky)), word, strings.Join(names, ", "))
}

// ellipsis marks cut text.
const ellipsis = "…"

func (t *Task) label() string { return Label(&t.Task, t.Item, ellipsis) }

// Label names a task in one line without control characters. It is the task's key. For an item of a
// foreach task it also has the item's key, or the beginning of its value, as in
// "copy[17] (alice@example.com)".
// The author of the list does not know indices. Commands take the key, not the label. mark marks
// cut text.
func Label(t *plan.Task, item json.RawMessage, mark string) string {
	key := cells.Clean(t.Key())
	if what := items.Label(items.Shown(t, item), mark); what != "" {
		return fmt.Sprintf("%s (%s)", key, what)
	}
	return key
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
		how = "has not finished after " + duration.Text(rules.Took(p, now))
	case !p.Ended.IsZero():
		if took := duration.Text(rules.Took(p, now)); took == duration.Text(0) { // a retry that leaves out why it failed
			how += " at once"
		} else {
			how += " in " + took
		}
		if p.StoppedBy() == plan.ClosedByTimeout {
			how += ", as its timeout of " + duration.Text(p.Timeout) + " was over"
		}
	}
	return s.Bold(cells.Clean(p.Title())) + " " + how + ": " + tally(p.Counts)
}

// GoOn returns the command that continues the plan, or "" if there is nothing to continue.
func GoOn(p *plan.Plan, c Command) string {
	switch p.State {
	case plan.PlanRunning:
		return c("plan", "run", "--resume", p.Title())
	case plan.PlanFailed, plan.PlanCancelled:
		if rules.CheckRetry(p, p.Counts.Stored()) == nil { // else it was cancelled while it was submitted
			return c("plan", "retry", p.Title(), "--run")
		}
	}
	return ""
}

// A Reaction names clean-ups, which ran because something did not succeed, and what they may have undone of what a retry keeps. It also names
// the tasks that the retry is sure not to run.
type Reaction struct {
	Cleaned []string // the clean-ups
	Undone  []string // what a retry names, with --downstream, so that also that runs again
	Skipped []string // because of Missing
	Stopped []string // for the same reason, since they ran before
	Missing []string // failures that stay
	Chosen  []string // the tasks that the person named,
	Below   bool     // with --downstream
}

// Ways returns how to continue the run, one line for each way. It returns none if there is nothing
// to continue. The first way keeps the tasks that succeeded.
func (r *Run) Ways(c Command) []string {
	command := GoOn(&r.Plan, c)
	if command == "" {
		return nil
	}
	to, flags := "to go on", []string{"--run"}
	var ways []string
	misfits, others := r.misfits()
	lists, parts := r.lists()
	if others && len(misfits) > 0 {
		ways = append(ways, to+": "+command)
	}
	if r.Changed != "" && r.Plan.State.Ended() && len(misfits) == 0 {
		ways = append(ways, to+": "+command)
		to, flags = "to go on with the changes in "+cells.Clean(r.Changed), []string{"--with", r.Changed, "--run"}
		command = again(&r.Plan, r.Rerun, c, flags...)
	}
	if file := r.Plan.Source; len(misfits) > 0 && file != "" {
		what := "it"
		if others {
			what = list(misfits)
		}
		to, flags = fmt.Sprintf("%s would fail in the same way again; once %s is mended", what, cells.Clean(file)), []string{"--with", file, "--run"}
		command = again(&r.Plan, r.Rerun, c, flags...)
	}
	if len(lists) > 0 {
		command = again(&r.Plan, Few(both(r.Rerun, lists)), c, flags...)
	}
	if way := to + ": " + command; !slices.Contains(ways, way) {
		ways = append(ways, way)
	}
	if len(parts) > 0 {
		ways = append(ways, fmt.Sprintf("if what %s put out is the mistake: %s", list(parts), again(&r.Plan, Few(parts), c, flags...)))
	}
	undone := r.Reacted
	if len(undone.Undone) > 0 {
		undone.Undone = both(undone.Undone, lists)
	}
	return slices.Concat(ways, Again(&r.Plan, undone, c, flags...))
}

// lists returns the succeeded tasks whose outputs gave no list of items. whole are those whose
// whole output was to be the list. They have to run again. part are those of whose output a part
// was to be the list. There the path may be the mistake.
func (r *Run) lists() (whole, part []string) {
	if !r.Plan.State.Ended() {
		return nil, nil
	}
	for i := range r.Tasks {
		t := &r.Tasks[i]
		if t.Foreach == nil || t.Reason != plan.ReasonInput || !broke(&t.Task) || t.ContinueOnError {
			continue
		}
		switch from := rules.ListFrom(t.Foreach); {
		case from == "":
		case t.Foreach.Value == "needs."+from:
			whole = both(whole, []string{from})
		default:
			part = both(part, []string{from})
		}
	}
	return whole, part
}

// both returns the names in either list, each once.
func both(names, more []string) []string {
	names = slices.Clone(names)
	for _, n := range more {
		if !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names
}

// again returns the command that runs the given tasks again with all tasks below them. Without
// tasks it runs what did not succeed. args are further words of the command.
func again(p *plan.Plan, tasks []string, c Command, args ...string) string {
	words := append([]string{"plan", "retry", p.Title()}, tasks...)
	if len(tasks) > 0 {
		words = append(words, "--downstream")
	}
	return c(append(words, args...)...)
}

// Few returns names for a command that a person is to copy.
func Few(names []string) []string {
	const most = 8
	if len(names) > most {
		return []string{"TASK..."}
	}
	return names
}

// Again names the tasks that a retry is sure to skip or to stop, and the clean-ups that may have undone some of
// the work that it keeps. It also says how these tasks and that work run again. args are more words
// of the command.
func Again(p *plan.Plan, r Reaction, c Command, args ...string) (lines []string) {
	var ends []string
	if len(r.Skipped) > 0 {
		ends = append(ends, list(r.Skipped)+" will be skipped")
	}
	if len(r.Stopped) > 0 {
		ends = append(ends, list(r.Stopped)+" will be stopped")
	}
	switch end := strings.Join(ends, ", and "); {
	case end == "":
	case len(r.Missing) == 0: // no failure is in the way, so that no retry helps
		lines = append(lines, fmt.Sprintf("%s, because of what was skipped above; to see why: %s",
			end, c("plan", "explain", p.Title(), both(r.Skipped, r.Stopped)[0])))
	default:
		words := append([]string{"plan", "retry", p.Title()}, Few(both(r.Chosen, r.Missing))...)
		if r.Below {
			words = append(words, "--downstream")
		}
		lines = append(lines, fmt.Sprintf("%s, because of %s, which the retry leaves out; to retry that too: %s",
			end, list(r.Missing), c(append(words, args...)...)))
	}
	if len(r.Undone) > 0 {
		why := "because of the failure"
		if p.State == plan.PlanCancelled && p.Counts.Failed+p.Counts.Orphaned == 0 {
			why = "because the plan was cancelled"
		}
		lines = append(lines, fmt.Sprintf("%s ran %s; if that undid work that is kept, run that again too: %s",
			list(r.Cleaned), why, again(p, Few(r.Undone), c, args...)))
	}
	return lines
}

// unrun names the clean-ups that did not finish, because the plan was stopped, or left.
// It says how they run. It returns "" without any.
func (r *Run) unrun(c Command) string {
	switch {
	case len(r.Unrun) == 0:
		return ""
	case !r.Plan.State.Ended():
		return fmt.Sprintf("clean-ups that have not finished, and run only if the plan goes on: %s", list(r.Unrun))
	}
	words := append([]string{"plan", "retry", r.Plan.Title()}, Few(r.Unrun)...)
	return fmt.Sprintf("clean-ups that did not finish, because the plan was stopped: %s; to run these, and what is below: %s", list(r.Unrun), c(append(words, "--run")...))
}

// Outdated says that tasks were kept whose inputs are others by now, and how they run again; "" without any.
func Outdated(p *plan.Plan, names []string, c Command) string {
	if len(names) == 0 {
		return ""
	}
	was, need, outputs, them := "were", "they need", "their outputs come", "them"
	if len(names) == 1 {
		was, need, outputs, them = "was", "it needs", "its output comes", "it"
	}
	return fmt.Sprintf("%s %s kept, and what %s ran again later: %s from earlier inputs; to run %s again, and what is below: %s",
		list(names), was, need, outputs, them, again(p, Few(names), c, "--run"))
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
		{c.Succeeded, "succeeded"}, {c.Failed, "failed"}, {c.Allowed, "allowed"}, {c.Terminated, states.OfStatus(plan.Terminated)}, {c.Orphaned, states.OfStatus(plan.Orphaned)},
		{c.Skipped, "skipped"}, {c.Cancelled, "cancelled"},
		{c.Running + c.Claimed, "running"}, {c.Queued, "queued"}, {c.Held, states.OfStatus(plan.Held)},
	} {
		if part.n > 0 {
			parts = append(parts, Thousands(part.n)+" "+part.word)
		}
	}
	if len(parts) == 0 {
		return "no tasks"
	}
	return strings.Join(parts, ", ")
}

// broke reports whether the task failed, allowed or not. A foreach task that has items did not: its items did.
func broke(t *plan.Task) bool {
	return rules.OutcomeOf(t.Status, t.Reason, false) == rules.OutcomeFailed && !t.Gathers()
}

// How says in one line how a task ended, or how it is: its state, and what is
// known of the cause.
//
//	failed after 3 attempts: exit status 7
func How(t *plan.Task) string {
	how := states.Word(t.State())
	if broke(t) {
		if t.Attempt > 1 && t.Approve == nil { // the attempts of a question are one for a person
			how += fmt.Sprintf(" after %d attempts", t.Attempt)
			if t.Rescues > 0 {
				how += fmt.Sprintf(", %d of them lost", t.Rescues)
			}
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

// Bounds of what a report shows of one task, in bytes. GitHub shows 4 KiB of an annotation.
const (
	mostLine       = 1000 // of a line, printed or of the detail
	mostTail       = 3 << 10
	mostDetail     = 8 << 10
	mostAnnotation = 4 << 10
)

// line returns a line without control characters. A long line ends with a mark.
func line(s string) string {
	if len(s) <= mostLine {
		return cells.Clean(s)
	}
	return cells.Clean(cut(s, mostLine)) + ellipsis
}

// tail returns the last lines that the task printed, as many as a report has room for.
func (t *Task) tail() []string { return lastLines(t.Tail) }

// earlier returns the last lines of the attempt before the last one that was the nth to fail, from 0.
func (t *Task) earlier(n int) []string {
	if n >= len(t.Earlier) {
		return nil
	}
	return lastLines(t.Earlier[n])
}

// lastLines returns lines that were printed last, as many as a report has room for.
func lastLines(printed []string) []string {
	lines, room := make([]string, len(printed)), mostTail
	for i := len(printed) - 1; i >= 0; i-- {
		lines[i] = line(printed[i])
		if room -= len(lines[i]) + 1; room < 0 {
			return lines[i+1:]
		}
	}
	return lines
}

func cause(t *plan.Task) string {
	first, _, _ := strings.Cut(strings.TrimSpace(t.Detail), "\n")
	switch {
	case first != "":
		return line(first)
	case t.Exit != nil && t.Exit.Signal != "":
		return cells.Clean(t.Exit.Signal)
	case t.Exit != nil && t.Exit.Code != 0:
		return fmt.Sprintf("exit status %d", t.Exit.Code)
	case t.Status > plan.Failed:
		return fmt.Sprintf("status %d", t.Status)
	case t.Status.Finished() && t.Reason != plan.ReasonNone && string(t.Reason) != states.Word(t.State()):
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
