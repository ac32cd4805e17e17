// Package halt cancels and deletes plans, stops what runs of a plan, and says which clean-ups a
// cancellation leaves out. Commands, servers and programs ask here.
package halt

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

var (
	// ErrStops means that nothing runs in the plan after a task that is stopped, clean-ups neither.
	ErrStops = errors.New("the plan has on_failure: stop, so that no task runs after a stopped one, not even a clean-up")
	// ErrIdle means that nothing of the plan runs, apart from clean-ups.
	ErrIdle = errors.New("nothing of the plan runs, apart from clean-ups")
)

// Left is [rules.Unrun] of a plan that is in the store, as if a person cancelled the plan now.
func Left(ctx context.Context, r store.Reader, p plan.Plan) (unrun, running []plan.Task, err error) {
	p.Closing = cmp.Or(p.Closing, plan.ClosedByPerson)
	return Unrun(ctx, r, &p)
}

// Unrun is [rules.Unrun] of a plan that is in the store.
func Unrun(ctx context.Context, r store.Reader, p *plan.Plan) (unrun, running []plan.Task, err error) {
	tasks, err := deciding(ctx, r, p)
	if err != nil {
		return nil, nil, err
	}
	unrun, running = rules.Unrun(tasks, p.StoppedBy())
	return unrun, running, nil
}

// deciding reads what rules.Unrun needs of a plan's tasks.
func deciding(ctx context.Context, r store.Reader, p *plan.Plan) (tasks []plan.Task, err error) {
	// Foreach tasks that wait for their items, of which none is known to have run, and those that a
	// failure may have stopped.
	waiting, failed := map[plan.TaskID]bool{}, map[plan.TaskID]bool{}
	add := func(t *plan.Task) error {
		waiting[t.ID] = t.Status == plan.Held && t.Expanded
		failed[t.ID] = p.StoppedBy() != plan.Open && t.Status == plan.Failed && t.Expanded && rules.CleansUp(t.When)
		if rules.HasRun(t) {
			delete(waiting, t.Of)
		}
		if !t.Of.IsZero() {
			t.Needs = nil // other items, most of which are left out
		}
		tasks = append(tasks, plan.Task{
			ID: t.ID, Name: t.Name, Of: t.Of, Needs: t.Needs, Status: t.Status, Reason: t.Reason, Expanded: t.Expanded, Ran: t.Ran,
			Definition: plan.Definition{When: t.When, ContinueOnError: t.ContinueOnError, Finally: t.Finally},
		})
		return nil
	}
	if err := store.EachTask(ctx, r, store.TaskQuery{Plan: p.ID, NoItems: true, Needs: true}, add); err != nil {
		return nil, err
	}
	err = store.EachTask(ctx, r, store.TaskQuery{Plan: p.ID, Statuses: []plan.Status{plan.Claimed, plan.Running}}, func(t *plan.Task) error {
		if t.Of.IsZero() {
			return nil
		}
		return add(t)
	})
	one := func(q store.TaskQuery) {
		var items []plan.Task
		if items, err = r.Tasks(ctx, q); len(items) > 0 {
			err = add(&items[0])
		}
	}
	for of, waits := range waiting {
		switch {
		case err != nil:
		case waits:
			one(store.TaskQuery{Plan: p.ID, Of: of, Began: true, Limit: 1})
		case failed[of]:
			one(store.TaskQuery{Plan: p.ID, Of: of, Statuses: []plan.Status{plan.Terminated}, Limit: 1})
		}
	}
	return tasks, err
}

// A Store is what a stop needs of one.
type Store interface {
	store.Reader
	CancelTask(ctx context.Context, task plan.TaskID) error
}

// Running cancels the tasks of a plan that run, which counts as their failure. It leaves the plan, so
// that clean-ups run. It also leaves the clean-ups and the tasks of finally that run already. It returns how many tasks were told to stop.
// It fails with ErrStops or ErrIdle where that would be no use.
func Running(ctx context.Context, st Store, p *plan.Plan) (stopped int, err error) {
	unrun, running, err := Unrun(ctx, st, p)
	if err != nil {
		return 0, err
	}
	if p.OnFailure == plan.Stop && len(unrun) > 0 {
		return 0, ErrStops
	}
	for i := range running {
		err := st.CancelTask(ctx, running[i].ID)
		switch {
		case errors.Is(err, plan.ErrConflict): // it has ended meanwhile
			continue
		case err != nil:
			return stopped, fmt.Errorf("cancel task %s of %s: %w", running[i].Key(), p.Title(), err)
		}
		stopped++
	}
	if stopped == 0 {
		return 0, ErrIdle
	}
	return stopped, nil
}
