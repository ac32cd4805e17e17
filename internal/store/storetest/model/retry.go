package model

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/engine"
	"github.com/seed-1177d267/sluice/plan"
)

func (s *Store) Retry(ctx context.Context, id plan.PlanID, ask rules.Ask) ([]rules.Retried, error) {
	return engine.Retry(ctx, id, &ask, func(do func(engine.Retrier) error) error {
		return s.write(ctx, func(tx *tx) error { return do(&retry{tx: tx, id: id, params: ask.Params}) })
	})
}

var (
	_ engine.Retrier                 = (*retry)(nil)
	_ engine.Retaker[engine.Retaken] = (*retry)(nil)
)

// retry makes a retry, as package engine says.
type retry struct {
	*tx
	id     plan.PlanID
	plan   *planRow // nil: of tasks of no plan
	params json.RawMessage
}

func (r *retry) Begin(_ context.Context, check engine.RetryCheck) (err error) {
	if r.id.IsZero() {
		return nil
	}
	if r.plan, err = r.tx.plan(r.id); err != nil {
		return err
	}
	return check(&r.plan.Plan, r.plan.Counts.Stored(), r.otherRun(&r.plan.Plan))
}

func (r *retry) Queues(context.Context) (map[plan.QueueID]bool, error) {
	there := make(map[plan.QueueID]bool, len(r.queues))
	for id := range r.queues {
		there[id] = true
	}
	return there, nil
}

func (r *retry) Skeleton(_ context.Context, named []plan.TaskID) (tasks []plan.Task, busy map[plan.TaskID]rules.Busy, err error) {
	if r.plan != nil {
		for _, t := range r.plan.tasks {
			tasks = append(tasks, t.Task)
		}
		slices.SortFunc(tasks, func(a, b plan.Task) int { return bytes.Compare(a.ID.ID[:], b.ID.ID[:]) })
		return tasks, nil, nil
	}
	for _, id := range named {
		if t := r.tasks[id]; t != nil && t.plan == nil {
			tasks = append(tasks, t.Task)
		}
		if _, rolled := r.rolled[id]; rolled {
			if busy == nil {
				busy = map[plan.TaskID]rules.Busy{}
			}
			busy[id] = rules.BusyRoll
		}
	}
	return tasks, busy, nil
}

func (r *retry) Items(_ context.Context, of *plan.Task) (items []json.RawMessage, list []plan.Input, err error) {
	t := r.tasks[of.ID]
	for _, item := range t.items {
		items = append(items, rules.ItemOf(item.own))
	}
	list, err = t.listInput(of.Foreach)
	return items, list, err
}

func (r *retry) Add(_ context.Context, of, with *plan.Task, items []json.RawMessage, _ rules.Step) error {
	t := r.tasks[of.ID]
	own, as := t.own, t.Task
	if with != nil {
		as.Definition, as.Queue, t.own = with.Definition, with.Queue, orNone(with.Params)
	}
	params, byRef, err := t.itemParams()
	if t.own = own; err != nil {
		return err
	}
	for _, item := range items {
		r.insertItem(t, &as, item, params, byRef)
	}
	t.Items = len(t.items)
	return nil
}

func (r *retry) Below(_ context.Context, s *engine.Selection, check engine.BelowCheck) error {
	for i := range s.Tasks {
		t := r.tasks[s.Tasks[i].ID]
		for _, b := range slices.Concat(t.items, t.children) {
			if b.gone || b.Status.Finished() {
				continue
			}
			if err := check(&b.Task, b.waiting == 0 && (r.delays[b] || b.Expanding || b.Expanded)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *retry) Take(ctx context.Context, s *engine.Selection, reopen func(*plan.Plan, json.RawMessage, time.Time)) error {
	if r.plan != nil {
		reopen(&r.plan.Plan, r.params, r.at.UTC())
		r.openPlan(r.plan)
	}
	if err := engine.Retake(ctx, r, s.Tasks); err != nil {
		return err
	}
	affected, taken := map[*task]bool{}, make([]*task, len(s.Tasks))
	for i := range s.Tasks {
		taken[i] = r.tasks[s.Tasks[i].ID]
		affected[taken[i]] = true
		for _, c := range taken[i].children {
			affected[c] = true
		}
	}
	for t := range affected {
		t.look()
		r.delay(t)
	}
	for i, t := range taken {
		if s.Tasks[i].Remakes {
			r.dropItems(t)
		}
	}
	for _, t := range taken {
		if !t.gone {
			t.recount()
			if r.plan == nil {
				r.due = append(r.due, t)
			}
		}
	}
	if r.plan != nil {
		for _, t := range r.plan.tasks { // in the order in which they were added
			if s.Taken[t.ID] {
				r.due = append(r.due, t)
			}
		}
		if err := engine.EndPlan(ctx, r, r.plan); err != nil { // it may have taken tasks of finally alone
			return err
		}
	}
	return r.work()
}

func (r *retry) TakenBack(t engine.Retaken) rules.TakenBack {
	return rules.TakenBack{Status: t.Status, Attempt: t.Attempt, Ran: t.KeepsRan, With: t.With, Leaves: t.Leaves}
}

func (r *retry) Step(_ context.Context, t engine.Retaken, s rules.Step) error {
	r.tasks[t.ID].leaves = s.Leaves
	return r.apply(r.tasks[t.ID], s)
}

// reset forgets what earlier attempts left of a task.
func (tx *tx) reset(t *task, with *plan.Task) {
	if t.Params = t.own; with != nil {
		t.Definition, t.Params, t.Queue = with.Definition, with.Params, with.Queue
	}
	t.dropped = false
	t.Output, t.Progress, t.results, t.Attempt, t.Rescues, t.Cancel, t.Ran = nil, nil, nil, 0, 0, false, false
	t.Started, t.Ended, t.Params = time.Time{}, time.Time{}, orNone(t.Params)
	t.own, t.queue = t.Params, tx.queues[t.Queue]
	given := t.of != nil && len(t.parents) == 0 // with what its foreach task was given
	t.gathered, t.byRef, t.ready = false, given && t.byRef, given
}
