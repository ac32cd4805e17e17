// Package failed reads how tasks failed, for the tasks that handle failures. Drivers ask it for store.Node.
package failed

import (
	"context"
	"encoding/json"

	"github.com/seed-1177d267/sluice/internal/items"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/hiding"
	"github.com/seed-1177d267/sluice/plan"
)

// mostLogs is how many failures have the last lines of their log: a log may have a MiB.
const mostLogs = 100

// page is how many tasks are read at once, with the params of those that are items.
const page = 200

// wrong are the statuses of a task that failed, as store.TaskQuery has them.
var wrong = []plan.Status{plan.Failed, plan.Terminated, plan.Orphaned}

// A Source is what For reads of a store.
type Source interface {
	store.TaskReader
	Log(ctx context.Context, id plan.TaskID, after int64, limit int) ([]plan.LogEntry, int64, error)
	Plan(ctx context.Context, id plan.PlanID) (plan.Plan, error)
	Queues(ctx context.Context) ([]plan.Queue, error)
}

// source is a store of which only a Source is there: package hiding asks for no more.
type source struct {
	store.Store // nil
	in          Source
}

func (s source) Tasks(ctx context.Context, q store.TaskQuery) ([]plan.Task, error) {
	return s.in.Tasks(ctx, q)
}

func (s source) Log(ctx context.Context, id plan.TaskID, after int64, limit int) ([]plan.LogEntry, int64, error) {
	return s.in.Log(ctx, id, after, limit)
}

func (s source) Plan(ctx context.Context, id plan.PlanID) (plan.Plan, error) {
	return s.in.Plan(ctx, id)
}

func (s source) Queues(ctx context.Context) ([]plan.Queue, error) { return s.in.Queues(ctx) }

// For returns how those tasks failed that a task is told of, as Failures of store.Node has it.
func For(ctx context.Context, st Source, id plan.TaskID) (json.RawMessage, error) {
	found, err := st.Tasks(ctx, store.TaskQuery{IDs: []plan.TaskID{id}, Needs: true, Limit: 1})
	if err != nil || len(found) == 0 {
		return json.RawMessage("[]"), err
	}
	r := reader{Store: hiding.New(source{in: st})}
	if _, all := rules.TellsFailures(&found[0].Definition); all {
		err = r.inPlan(ctx, found[0].Plan)
	} else {
		err = r.among(ctx, found[0].Needs)
	}
	if err != nil {
		return nil, err
	}
	return r.told.JSON()
}

// A reader reads failed tasks, without what is secret.
type reader struct {
	store.Store
	told rules.Failures
	logs int // that it has read
}

// inPlan adds the failed tasks of a plan.
func (r *reader) inPlan(ctx context.Context, p plan.PlanID) error {
	return store.EachPage(ctx, r, store.TaskQuery{Plan: p, Statuses: wrong, Limit: page}, func(tasks []plan.Task) error { return r.add(ctx, tasks) })
}

// among adds those of the tasks, and of their items, that failed.
func (r *reader) among(ctx context.Context, ids []plan.TaskID) error {
	parents, err := store.TasksByID(ctx, r, store.TaskQuery{}, ids)
	if err != nil {
		return err
	}
	for i := range parents {
		t := &parents[i]
		if err := r.add(ctx, parents[i:i+1]); err != nil {
			return err
		}
		if !t.HasItems() {
			continue
		}
		query := store.TaskQuery{Plan: t.Plan, Of: t.ID, Statuses: wrong, Limit: page}
		if err := store.EachPage(ctx, r, query, func(tasks []plan.Task) error { return r.add(ctx, tasks) }); err != nil {
			return err
		}
	}
	return nil
}

// add adds those of the tasks that failed. A foreach task that has items did not: its items did.
func (r *reader) add(ctx context.Context, tasks []plan.Task) error {
	values, err := items.Read(ctx, r, tasks)
	if err != nil {
		return err
	}
	for i := range tasks {
		t := &tasks[i]
		if rules.OutcomeOf(t.Status, t.Reason, false) != rules.OutcomeFailed || t.Gathers() {
			continue
		}
		f := plan.Failure{Task: t.Key(), Item: values[t.ID], Key: t.ItemKey, Attempt: t.Attempt, Exit: t.Exit, Detail: t.Detail}
		if r.logs < mostLogs {
			r.logs++
			if f.Lines, err = r.lines(ctx, t); err != nil {
				return err
			}
		}
		r.told.Add(f)
	}
	return nil
}

// lines returns the last lines that the last attempt of a task printed.
func (r *reader) lines(ctx context.Context, t *plan.Task) ([]string, error) {
	const atOnce = 1000
	var log []plan.LogEntry
	for after := int64(0); ; {
		entries, next, err := r.Log(ctx, t.ID, after, atOnce)
		if err != nil {
			return nil, err
		}
		log, after = append(log, entries...), next
		if len(entries) < atOnce {
			return rules.LastLines(log, t.Attempt), nil
		}
	}
}
