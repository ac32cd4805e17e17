package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/internal/cells"
	"github.com/seed-1177d267/sluice/internal/report"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// How much of a plan's final output is printed.
const (
	mostOutputs = 10   // tasks with an output
	mostLast    = 50   // tasks that are asked for one
	mostOutput  = 4000 // bytes of one
)

// lastTasks returns the names of the tasks that no other needs: their outputs are the plan's.
func lastTasks(spec *plan.Spec) []string {
	needed := map[string]bool{}
	for i := range spec.Tasks {
		for _, n := range spec.Tasks[i].Needs {
			needed[n] = true
		}
	}
	var last []string
	for i := range spec.Tasks {
		if !needed[spec.Tasks[i].Name] {
			last = append(last, spec.Tasks[i].Name)
		}
	}
	return last
}

// lastTasksStored is lastTasks for a plan that is in the store.
func lastTasksStored(ctx context.Context, r store.Reader, p plan.PlanID) ([]string, error) {
	needed := map[plan.TaskID]bool{}
	type task struct {
		id   plan.TaskID
		name string
	}
	var all []task
	err := eachTask(ctx, r, store.TaskQuery{Plan: p, NoItems: true, Needs: true}, func(t *plan.Task) error {
		for _, n := range t.Needs {
			needed[n] = true
		}
		all = append(all, task{t.ID, t.Name})
		return nil
	})
	var last []string
	for _, t := range all {
		if !needed[t.id] {
			last = append(last, t.name)
		}
	}
	return last, err
}

// An ended run is what there is to tell of it.
type endedRun struct {
	plan    plan.Plan
	outputs []namedOutput
	last    int // tasks that no other needs
	asked   int // how many of them were asked for an output
	failed  []failure
	more    bool   // others failed too
	goOn    string // the command that goes on with the plan, if there is anything to go on with
}

type namedOutput struct {
	name  string
	value json.RawMessage
}

type failure struct {
	task plan.Task
	tail []string
}

// look reads how a run ended.
func (a *app) look(ctx context.Context, st store.Reader, p plan.Plan, last []string) (*endedRun, error) {
	r := &endedRun{plan: p}
	switch p.State {
	case plan.PlanRunning:
		r.goOn = a.command("plan", "run", "--resume", p.Title())
	case plan.PlanFailed, plan.PlanCancelled:
		r.goOn = a.command("plan", "retry", p.Title()) + " && " + a.command("plan", "run", "--resume", p.Title())
	}
	if p.State.Ended() {
		for r.last = len(last); r.asked < min(r.last, mostLast) && len(r.outputs) < mostOutputs; r.asked++ {
			if err := r.addOutput(ctx, st, last[r.asked]); err != nil {
				return nil, err
			}
		}
	}
	q := store.TaskQuery{Plan: p.ID, Statuses: []plan.Status{plan.Failed, plan.Terminated, plan.Orphaned}}
	// The items of a foreach task failed, and that one because of them: it adds nothing.
	var failed []plan.Task
	var err error
	failed, r.more, err = someTasks(ctx, st, q, mostTails, func(t *plan.Task) bool { return t.Reason != plan.ReasonItems })
	if err != nil {
		return nil, err
	}
	for i := range failed {
		tail, err := tailOf(ctx, st, &failed[i], tailLines)
		if err != nil {
			return nil, err
		}
		r.failed = append(r.failed, failure{failed[i], tail})
	}
	return r, nil
}

func (r *endedRun) addOutput(ctx context.Context, st store.Reader, name string) error {
	found, err := st.Tasks(ctx, store.TaskQuery{Plan: r.plan.ID, Name: name, Limit: 1})
	if err != nil || len(found) == 0 || found[0].Status != plan.Succeeded {
		return err
	}
	t, err := st.Task(ctx, found[0].ID)
	if err != nil {
		return err
	}
	if len(t.Output) > 0 && string(t.Output) != "null" {
		r.outputs = append(r.outputs, namedOutput{name, t.Output})
	}
	return nil
}

// conclude tells how a run ended, and returns the error that carries its exit code. cause is why a plan that has not ended was left; w
// is what showed the run, if it was shown.
func (a *app) conclude(ctx context.Context, st store.Store, p plan.Plan, last []string, s *runSettings, w *watcher, cause error) error {
	r, err := a.look(ctx, st, p, last)
	if err != nil {
		return err
	}
	if s.output.value == "json" {
		err = r.printEvent(a, time.Now())
	} else {
		var shown *plainView
		if w != nil {
			shown, _ = w.view.(*plainView)
		}
		err = a.printEnd(r, shown, cause)
	}
	err = errors.Join(err, a.tellGitHub(ctx, st, r), a.writeJUnit(ctx, st, p, s.junit))
	switch {
	case err != nil:
		return err
	case p.State.Ended():
		return verdict(p.State)
	case errors.Is(cause, errInterrupted):
		return &saidError{errInterrupted}
	}
	return &saidError{errNotFinished}
}

func (r *endedRun) printEvent(a *app, now time.Time) error {
	l := planLine("end", &r.plan, now)
	if !r.plan.Ended.IsZero() {
		seconds := r.plan.Ended.Sub(r.plan.Created).Seconds()
		l.Seconds = &seconds
	}
	l.Resume = r.goOn
	for _, o := range r.outputs {
		if l.Outputs == nil {
			l.Outputs = map[string]json.RawMessage{}
		}
		l.Outputs[o.name] = o.value
	}
	enc := json.NewEncoder(a.Stdout)
	enc.SetEscapeHTML(false)
	return enc.Encode(l)
}

// printEnd prints how a run ended: each failed task, its last lines and the command to see all of them; how the plan stands; its
// output; and how to go on.
func (a *app) printEnd(r *endedRun, shown *plainView, cause error) error {
	var b strings.Builder
	p, colour := &r.plan, a.paint(a.Stdout)
	for i := range r.failed {
		f := &r.failed[i]
		fmt.Fprintf(&b, "\n%s %s\n", colour.Bold(cells.Clean(f.task.Key())), colour.State(f.task.State(), report.How(&f.task)))
		if shown == nil || !shown.near(f.task.ID) {
			for _, l := range f.tail {
				b.WriteString(quoted(l) + "\n")
			}
		}
		if len(f.tail) > 0 {
			fmt.Fprintf(&b, "  all of it: %s\n", a.command("task", "logs", p.Title(), f.task.Key()))
		}
	}
	if r.more {
		fmt.Fprintf(&b, "\nall that failed: %s\n", a.command("task", "list", "--plan", p.Title(), "--status", "failed,terminated,orphaned"))
	}
	if len(r.failed) > 0 {
		b.WriteString("\n")
	}
	switch {
	case p.State.Ended():
	case errors.Is(cause, errInterrupted):
		b.WriteString("interrupted: ")
	default:
		b.WriteString("out of time: ")
	}
	b.WriteString(a.verdictLine(p, time.Now()) + "\n")
	for _, o := range r.outputs {
		fmt.Fprintf(&b, "%s: %s\n", colour.Bold(o.name), a.outputText(p, &o))
	}
	if more := r.last - r.asked; more > 0 && len(r.outputs) > 0 {
		fmt.Fprintf(&b, "%d more of its last tasks may have an output: %s\n", more, a.command("task", "show", p.Title(), "TASK"))
	}
	if r.goOn != "" {
		fmt.Fprintf(&b, "to go on: %s\n", r.goOn)
	}
	_, err := a.Stdout.Write([]byte(b.String()))
	return err
}

// near reports whether the log of a failed task was printed so little ago that a person still sees it.
func (v *plainView) near(id plan.TaskID) bool {
	line, printed := v.tails[id]
	return printed && v.lines-line <= 2*tailLines
}

// outputText writes an output for people: a text as it is, anything else as JSON, on lines of its own if it is long.
func (a *app) outputText(p *plan.Plan, o *namedOutput) string {
	var text string
	if json.Unmarshal(o.value, &text) != nil {
		var short, long bytes.Buffer
		_, _ = json.Compact(&short, o.value), json.Indent(&long, o.value, "", "  ") // the store has only valid JSON
		if text = short.String(); cells.Width(text) > 100 {
			text = long.String()
		}
	}
	lines := strings.Split(strings.TrimRight(cut(text, mostOutput), "\n"), "\n")
	for i := range lines {
		lines[i] = cells.Clean(lines[i])
	}
	if len(text) > mostOutput {
		lines = append(lines, fmt.Sprintf("… %d bytes; all of it: %s", len(o.value), a.command("task", "show", p.Title(), o.name, "--output", "json")))
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
