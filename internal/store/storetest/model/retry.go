package model

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/engine"
	"github.com/seed-1177d267/sluice/plan"
)

// Retry implements store.Admin.
func (s *Store) Retry(ctx context.Context, id plan.PlanID, chosen []rules.Retried, replace []plan.Task, params json.RawMessage) error {
	return engine.Retry(ctx, chosen, replace, func(do func(engine.Retrier[*task]) error) error {
		return s.write(ctx, func(tx *tx) error { return do(&retry{tx: tx, id: id, params: params}) })
	})
}

// retry makes a retry, as package engine says.
type retry struct {
	*tx
	id     plan.PlanID
	plan   *planRow // nil: of tasks of no plan
	params json.RawMessage
}

func (r *retry) Begin(_ context.Context, check func(*plan.Plan, int) error) (err error) {
	if r.id.IsZero() {
		return nil
	}
	if r.plan, err = r.tx.plan(r.id); err != nil {
		return err
	}
	return check(&r.plan.Plan, r.plan.Counts.Stored())
}

func (r *retry) Queues(context.Context) (map[plan.QueueID]bool, error) {
	there := make(map[plan.QueueID]bool, len(r.queues))
	for id := range r.queues {
		there[id] = true
	}
	return there, nil
}

func (r *retry) Tasks(_ context.Context, ids []plan.TaskID) (found []engine.Retaken[*task], err error) {
	for _, id := range ids {
		t := r.tasks[id]
		if t == nil || t.plan != r.plan {
			continue
		}
		found = append(found, engine.Retaken[*task]{Key: t, Of: t.of, Retaken: rules.Retaken{
			ID: t.ID, Name: t.Name, Status: t.Status, Queue: t.Queue, Foreach: t.Foreach != nil, Expanded: t.Expanded, Items: t.Items,
		}})
	}
	return found, nil
}

func (r *retry) Parents(_ context.Context, tasks []*task) (parents map[*task][]*task, waits map[*task]bool, err error) {
	parents, waits = make(map[*task][]*task, len(tasks)), map[*task]bool{}
	for _, t := range tasks {
		parents[t] = t.parents
		for _, p := range t.parents {
			waits[p] = !p.Status.Finished()
		}
	}
	return parents, waits, nil
}

func (r *retry) Below(_ context.Context, s *engine.Selection[*task], check func(*task, *plan.Task, bool) error) error {
	for i := range s.Tasks {
		t := s.Tasks[i].Key
		for _, b := range slices.Concat(t.items, t.children) {
			if b.gone || b.Status.Finished() {
				continue
			}
			if err := check(b, &b.Task, b.waiting == 0 && (b.delayed || b.Expanding || b.Expanded)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *retry) Take(ctx context.Context, s *engine.Selection[*task], reopen func(*plan.Plan, json.RawMessage, time.Time)) error {
	if r.plan != nil {
		reopen(&r.plan.Plan, r.params, r.at.UTC())
		r.openPlan(r.plan)
	}
	if err := engine.Retake(ctx, r, s.Tasks); err != nil {
		return err
	}
	affected := map[*task]bool{}
	for i := range s.Tasks {
		affected[s.Tasks[i].Key] = true
		for _, c := range s.Tasks[i].Key.children {
			affected[c] = true
		}
	}
	for t := range affected {
		t.look()
		r.delay(t)
	}
	for i := range s.Tasks {
		if t := s.Tasks[i].Key; s.Tasks[i].Remakes {
			r.dropItems(t)
		}
	}
	for i := range s.Tasks {
		if t := s.Tasks[i].Key; !t.gone {
			t.recount()
			if r.plan == nil {
				r.due.push(t)
			}
		}
	}
	if r.plan != nil {
		for _, t := range r.plan.tasks { // in the order in which they were added
			if s.Taken[t] {
				r.due.push(t)
			}
		}
	}
	return r.work()
}

// TakenBack implements engine.Retaker.
func (r *retry) TakenBack(t engine.Retaken[*task]) rules.TakenBack {
	return rules.TakenBack{Status: t.Key.Status, Attempt: t.Key.Attempt, Ran: t.Ran, With: t.With}
}

// Step implements engine.Retaker.
func (r *retry) Step(_ context.Context, t engine.Retaken[*task], s rules.Step) error {
	return r.apply(t.Key, s)
}

// reset forgets what earlier attempts left of a task.
func (tx *tx) reset(t *task, with *plan.Task) {
	if t.Params = t.own; with != nil {
		t.Definition, t.Params, t.Queue = with.Definition, with.Params, with.Queue
	}
	t.Output, t.Progress, t.results, t.Attempt, t.Rescues, t.Cancel, t.Ran = nil, nil, nil, 0, 0, false, false
	t.Started, t.Ended, t.Params = time.Time{}, time.Time{}, orNone(t.Params)
	t.own, t.queue = t.Params, tx.queues[t.Queue]
	t.gathered, t.byRef, t.ready = false, t.of != nil && t.byRef, t.of != nil
}
