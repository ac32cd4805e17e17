package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/cli/view"
	"github.com/seed-1177d267/sluice/internal/explain"
	"github.com/seed-1177d267/sluice/internal/failures"
	"github.com/seed-1177d267/sluice/internal/halt"
	"github.com/seed-1177d267/sluice/internal/report"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// How many of a plan's final outputs are printed.
const (
	mostOutputs = 10 // tasks with an output
	mostLast    = 50 // tasks that are asked for one

	mostRead = 1000 // tasks among which these are looked for
)

// lastTasks returns those of a plan's last tasks that succeeded, the newest first, and whether there may be others. No task needs a
// last one, so their outputs are the plan's. The function reads the plan's newest tasks alone: to read 60,000 takes a tenth of the
// processor time that they take to run. A task is newer than those that it needs, so the tasks that are read hide none.
func lastTasks(ctx context.Context, r store.Reader, p plan.PlanID) (last []plan.Task, more bool, err error) {
	tasks, err := r.Tasks(ctx, store.TaskQuery{Plan: p, NoItems: true, Needs: true, Brief: true, Newest: true, Limit: mostRead})
	needed := map[plan.TaskID]bool{}
	for i := range tasks {
		t := &tasks[i]
		for _, n := range t.Needs {
			needed[n] = true
		}
		if !needed[t.ID] && t.Status == plan.Succeeded {
			last = append(last, *t)
		}
	}
	return last, len(tasks) == mostRead, err
}

// withOutputs reads the tasks again, with their outputs, in the same order.
func withOutputs(ctx context.Context, st store.Reader, tasks []plan.Task) ([]plan.Task, error) {
	ids := api.Each(tasks, func(t *plan.Task) plan.TaskID { return t.ID })
	return st.Tasks(ctx, store.TaskQuery{IDs: ids, Newest: true, Output: true, Limit: len(ids)})
}

// readOutputs fills in what the plan's last tasks put out.
func readOutputs(ctx context.Context, st store.Reader, r *report.Run) error {
	last, more, err := lastTasks(ctx, st, r.Plan.ID)
	if err != nil {
		return err
	}
	asked := 0
	for some := range slices.Chunk(last[:min(len(last), mostLast)], mostOutputs) {
		if len(r.Outputs) >= mostOutputs {
			break
		}
		tasks, err := withOutputs(ctx, st, some)
		if err != nil {
			return err
		}
		for i := 0; i < len(tasks) && len(r.Outputs) < mostOutputs; i++ {
			t := &tasks[i]
			asked++
			if t.Foreach != nil { // its output is put together
				whole, err := st.Task(ctx, t.ID)
				if errors.Is(err, plan.ErrTooMuchOutput) {
					r.Outputs = append(r.Outputs, report.Output{Name: t.Name, Missing: err.Error()})
					continue
				}
				if err != nil {
					return err
				}
				t = &whole
			}
			if len(t.Output) > 0 && string(t.Output) != "null" {
				r.Outputs = append(r.Outputs, report.Output{Name: t.Name, Value: t.Output})
			}
		}
	}
	r.Unasked = more || len(last) > asked
	slices.Reverse(r.Outputs)
	return nil
}

// look reads what there is to tell of a run: the first of the tasks that failed, and the outputs of
// the last tasks. Failures that the plan allows come after those that it does not, because they are
// not why a plan failed.
func (a *app) look(ctx context.Context, st store.Store, p plan.Plan) (*report.Run, error) {
	r := &report.Run{Plan: p, Now: time.Now()}
	if p.State.Ended() {
		if err := readOutputs(ctx, st, r); err != nil {
			return nil, err
		}
	}
	var err error
	if r.Reacted, err = reactedStored(ctx, st, &p); err != nil {
		return nil, err
	}
	if p.State == plan.PlanFailed || p.State == plan.PlanCancelled {
		path, file, err := a.changedSource(ctx, st, &p)
		if err != nil {
			return nil, err
		}
		takes := true // of a file that has mistakes by now, the retry says which
		if file != nil {
			r.Rerun, takes = file.toName()
		}
		if takes {
			r.Changed = path
		}
	}
	if p.StoppedBy() != plan.Open || p.State == plan.PlanRunning {
		unrun, _, err := halt.Unrun(ctx, st, &p)
		if err != nil {
			return nil, err
		}
		r.Unrun = keys(unrun)
	}
	if r.Outdated, err = explain.Outdated(ctx, st, &p); err != nil {
		return nil, err
	}
	failed, err := lookFailures(ctx, st, r)
	if err != nil {
		return nil, err
	}
	values, err := itemValues(ctx, st, failed)
	if err != nil {
		return nil, err
	}
	for i := range failed {
		tail, err := tailOf(ctx, st, &failed[i], tailLines)
		if err != nil {
			return nil, err
		}
		r.Tasks = append(r.Tasks, report.Task{Task: failed[i], Item: values[failed[i].ID], Tail: tail})
	}
	return r, nil
}

// lookFailures fills in what failed, and returns the first tasks of that. It reads nothing where the counts say that nothing failed.
func lookFailures(ctx context.Context, st store.Reader, r *report.Run) (failed []plan.Task, err error) {
	c := &r.Plan.Counts
	if c.Broken()+c.Allowed == 0 {
		return nil, nil
	}
	q := store.TaskQuery{Plan: r.Plan.ID, Statuses: brokenStatuses}
	cut := false
	for _, allowed := range []bool{false, true} {
		some, more, err := someTasks(ctx, st, q, mostTails, func(t *plan.Task) bool {
			return !t.Gathers() && t.ContinueOnError == allowed
		})
		if err != nil {
			return nil, err
		}
		room := mostTails - len(failed)
		failed = append(failed, some[:min(len(some), room)]...)
		r.More += len(some) - min(len(some), room)
		cut = cut || more
	}
	if cut {
		r.More = c.Broken() + c.Allowed - len(failed)
	}
	if r.More == 0 {
		for i := range failed {
			r.Failures.Add(&failed[i])
		}
		r.Failures.Sort()
	} else {
		f, err := failures.Read(ctx, st, r.Plan.ID, 1)
		if err != nil {
			return nil, err
		}
		r.Failures = *f
	}
	return failed, nil
}

// retriedTasks reads those of the tasks that succeeded after attempts that failed.
func retriedTasks(ctx context.Context, st store.Reader, ids []plan.TaskID) (all []report.Task, err error) {
	tasks, err := store.TasksByID(ctx, st, store.TaskQuery{}, ids)
	if err != nil {
		return nil, err
	}
	tasks = slices.DeleteFunc(tasks, func(t plan.Task) bool { return report.FailedAttempts(&t) == 0 })
	values, err := itemValues(ctx, st, tasks)
	return api.Each(tasks, func(t *plan.Task) report.Task { return report.Task{Task: *t, Item: values[t.ID]} }), err
}

// conclude tells how a run ended, and returns the error that carries its exit code. cause is the
// reason for which the command left a plan that has not ended. w is the watcher that showed the
// run, or nil.
func (a *app) conclude(ctx context.Context, st store.Store, p plan.Plan, s *runSettings, w *watcher, cause error) error {
	r, err := a.look(ctx, st, p)
	if err != nil {
		return err
	}
	if w != nil {
		ids, err := w.flaky(ctx)
		if err != nil {
			return err
		}
		if r.Flaky, err = retriedTasks(ctx, st, ids); err != nil {
			return err
		}
	}
	// A failed write to standard output is reported at the very end. It does not replace an exit
	// code that says how the plan ended.
	switch {
	case s.quiet && p.State == plan.PlanSucceeded && len(r.Tasks)+len(r.Outdated) == 0:
		// all went well, and nothing is to be said
	case s.output.json():
		if err = a.printEndEvent(r); view.Lost(err) {
			err = nil
		}
	default:
		switch {
		case p.State.Ended():
		case errors.Is(cause, errInterrupted):
			r.Left = "interrupted"
		case errors.Is(cause, errAwaits):
			r.Left, r.Awaits = waitingForYou, w.awaits
		default:
			r.Left = "out of time"
		}
		if w != nil && w.logs != nil {
			w.logs.markSeen(r.Tasks)
		}
		r.Ellipsis = a.ellipsis()
		fmt.Fprint(a.Stdout, r.Text(a.paint(a.Stdout), a.command))
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

func (a *app) printEndEvent(r *report.Run) error {
	p := &r.Plan
	l := view.PlanLine("end", p, r.Now)
	if !p.Ended.IsZero() {
		seconds := rules.Took(p, r.Now).Seconds()
		l.Seconds = &seconds
	}
	l.Resume, l.Outdated = report.GoOn(p, a.command), r.Outdated
	for _, o := range r.Outputs {
		if o.Missing != "" {
			a.note("%s", o.Missing)
			continue
		}
		if l.Outputs == nil {
			l.Outputs = map[string]json.RawMessage{}
		}
		l.Outputs[o.Name] = o.Value
	}
	return l.Print(a.Stdout)
}

// printVerdict says in one line how a plan stands and returns the error that carries the exit code.
func (a *app) printVerdict(ctx context.Context, st store.Store, p plan.Plan, output *format, junit string) error {
	nodes, err := st.Instances(ctx)
	if err != nil {
		return err
	}
	if output.json() {
		err = view.JSON(a.Stdout, entryOfPlan(&p, nodes))
	} else {
		left := ""
		if _, only, err := awaiting(ctx, st, &p); err != nil {
			return err
		} else if only {
			left = waitingForYou + ": "
		}
		_, err = fmt.Fprintln(a.Stdout, left+report.StyledVerdict(&p, time.Now(), a.paint(a.Stdout)))
		if p.State == plan.PlanFailed {
			a.note("to see what failed: %s", a.command("plan", "status", p.Title()))
		}
	}
	if err = errors.Join(err, a.writeJUnit(ctx, st, p, junit)); err != nil {
		return err
	}
	return verdict(p.State)
}

// printEnd tells how a plan ended, for people in the words of plan run, and returns the error that
// carries the exit code. retried are tasks that were seen to succeed after their first attempt.
func (a *app) printEnd(ctx context.Context, st store.Store, p plan.Plan, retried []plan.TaskID, output *format, junit string) error {
	r, err := a.look(ctx, st, p)
	if err != nil {
		return err
	}
	if r.Flaky, err = retriedTasks(ctx, st, retried); err != nil {
		return err
	}
	r.Ellipsis = a.ellipsis()
	if output.json() {
		if err := a.tellGitHub(ctx, st, r); err != nil {
			return err
		}
		return a.printVerdict(ctx, st, p, output, junit)
	}
	_, err = fmt.Fprint(a.Stdout, r.Text(a.paint(a.Stdout), a.command))
	if err = errors.Join(err, a.tellGitHub(ctx, st, r), a.writeJUnit(ctx, st, p, junit)); err != nil {
		return err
	}
	return verdict(p.State)
}
