package memory

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

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
		leaving := r.plan == nil && slices.ContainsFunc(t.parents, func(p *task) bool { return !p.gone && p.leaves() })
		found = append(found, engine.Retaken[*task]{Key: t, Of: t.of, Retaken: rules.Retaken{
			ID: t.ID, Name: t.Name, Status: t.Status, Queue: t.Queue, Foreach: t.Foreach != nil || t.missing != nil, Expanded: t.Expanded, Items: t.Items, Leaving: leaving,
		}})
	}
	return found, nil
}

func (r *retry) Parents(_ context.Context, tasks []*task) (parents map[*task][]*task, waits map[*task]bool, err error) {
	parents, waits = make(map[*task][]*task, len(tasks)), map[*task]bool{}
	for _, t := range tasks {
		parents[t] = t.parents
		for _, p := range t.parents {
			waits[p] = p.gone && p.missed() == 0 || !p.gone && !p.Status.Finished()
		}
	}
	return parents, waits, nil
}

func (r *retry) Below(_ context.Context, s *engine.Selection[*task], check func(*task, *plan.Task, bool) error) error {
	for i := range s.Tasks {
		t := s.Tasks[i].Key
		below := slices.Concat(t.items, t.children)
		if s.Tasks[i].Remakes {
			for _, item := range slices.AppendSeq(slices.Clone(t.items), maps.Values(t.missing)) {
				below = append(below, item.children...)
			}
		}
		for _, b := range below {
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

func (r *retry) Take(_ context.Context, s *engine.Selection[*task]) error {
	if r.plan != nil {
		rules.Reopen(&r.plan.Plan, r.params)
		r.openPlan(r.plan)
	}
	affected := map[*task]bool{}
	for i := range s.Tasks {
		if err := r.hold(&s.Tasks[i]); err != nil {
			return err
		}
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
			r.tellMissing(t) // of items that an earlier retry deleted
		}
	}
	for i := range s.Tasks {
		if t := s.Tasks[i].Key; !t.gone {
			t.recount()
			r.due.push(t)
		}
	}
	return r.work()
}

// hold takes a task back to held and forgets what was known of its last attempts.
func (tx *tx) hold(r *engine.Retaken[*task]) error {
	t := r.Key
	if t.Attempt > 0 {
		t.log = append(t.log, rules.RetriedEntry(tx.at))
	}
	if err := tx.apply(t, rules.Reset(t.Status)); err != nil {
		return err
	}
	rules.Retake(&t.Task, t.own, r.With)
	t.Params = orNone(t.Params)
	t.own, t.queue = t.Params, tx.queues[t.Queue]
	t.gathered, t.byRef, t.ready, t.results = false, t.of != nil && t.byRef, t.of != nil, nil
	return nil
}
