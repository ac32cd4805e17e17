package sqlite

import (
	"context"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/engine"
	"github.com/seed-1177d267/sluice/plan"
)

func (s *Store) CancelPlan(ctx context.Context, id plan.PlanID, seen bool) error {
	return s.write(ctx, func(t *tx) error { return engine.CancelPlan[*taskRow](ctx, t, id, seen) })
}

func (t *tx) PlanToCancel(_ context.Context, id plan.PlanID) (p *planRow, named plan.Plan, err error) {
	if p, err = t.planByID(id); err != nil {
		return nil, named, err
	}
	return p, p.Plan, nil
}

// CancelTask implements store.Admin. A retry in progress may take the task.
func (s *Store) CancelTask(ctx context.Context, id plan.TaskID) error {
	return engine.Past(ctx, func() error {
		return s.write(ctx, func(t *tx) error { return engine.CancelTask(ctx, t, id) })
	})
}

func (s *Store) AnswerTask(ctx context.Context, id plan.TaskID, a rules.Answer) error {
	return engine.Past(ctx, func() error {
		return s.write(ctx, func(t *tx) error { return engine.AnswerTask(ctx, t, id, &a) })
	})
}

func (t *tx) TaskToCancel(_ context.Context, id plan.TaskID) (r *taskRow, named plan.Task, w *rules.Waiter, err error) {
	row, err := t.taskByID(id)
	if err != nil {
		return nil, named, nil, err
	}
	p := t.plan(row.plan)
	if t.noted(p) != 0 {
		return nil, named, nil, t.s.halfway(p)
	}
	w = &rules.Waiter{Status: row.status, Ran: row.is(flagRan), Made: row.endsWithItems(), Finally: row.is(flagFinally)}
	if p != nil {
		w.State, w.Closing, w.Ending = p.State, p.Closing, p.Ending
	}
	return &row, *t.named(&row), w, t.err
}

func (t *tx) Mark(_ context.Context, r *taskRow) (done bool, err error) {
	if !r.cancel {
		t.exec("UPDATE tasks SET cancel = 1, modified = ? WHERE n = ?", t.now, r.n)
		t.changed = append(t.changed, r.n)
	}
	t.cancelItems(r)
	return true, t.err
}

func (t *tx) Cancel(_ context.Context, r *taskRow, s rules.Step) (done bool, err error) {
	t.step(r, s)
	t.cancelItems(r)
	return true, t.err
}

// cancelItems marks the items that a node has, and leaves a job for the others.
func (t *tx) cancelItems(of *taskRow) {
	if of.is(flagForeach) {
		t.drop(jobOpen, of.n)
		t.drop(jobDrop, of.n)
		t.add(jobDrop, of.n)
		t.cancelActive("of", of.n)
	}
}

func (s *Store) Adopt(ctx context.Context, id plan.PlanID) error {
	return s.setPlan(ctx, id, func(p *plan.Plan) { p.Own = true })
}

func (s *Store) SetPriority(ctx context.Context, id plan.PlanID, priority int) error {
	return s.setPlan(ctx, id, func(p *plan.Plan) { p.Priority = priority })
}

// setPlan writes a plan if set changes it.
func (s *Store) setPlan(ctx context.Context, id plan.PlanID, set func(*plan.Plan)) error {
	return s.write(ctx, func(t *tx) error {
		p, err := t.planByID(id)
		if err != nil {
			return err
		}
		own, priority := p.Own, p.Priority
		if set(&p.Plan); p.Own != own || p.Priority != priority {
			t.touch(p)
		}
		return nil
	})
}
