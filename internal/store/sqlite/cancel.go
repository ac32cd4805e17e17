package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/engine"
	"github.com/seed-1177d267/sluice/plan"
)

// CancelPlan implements store.Admin.
func (s *Store) CancelPlan(ctx context.Context, id plan.PlanID) error {
	return s.write(ctx, func(t *tx) error {
		p, err := t.planByID(id)
		if err != nil {
			return err
		}
		if p.State.Ended() {
			return fmt.Errorf("plan %s is %v: %w", p.Title(), p.State, plan.ErrPlanEnded)
		}
		if err := engine.Close(ctx, t, p, plan.ClosedByPerson); err != nil {
			return err
		}
		t.work()
		return nil
	})
}

// CancelTask implements store.Admin.
func (s *Store) CancelTask(ctx context.Context, id plan.TaskID) error {
	for {
		retried, err := s.cancelTask(ctx, id)
		if !errors.Is(err, errRetrying) {
			return err
		}
		if err := s.settle(ctx, retried, 0); err != nil { // it may take the task
			return err
		}
	}
}

func (s *Store) cancelTask(ctx context.Context, id plan.TaskID) (retried plan.PlanID, err error) {
	err = s.write(ctx, func(t *tx) error {
		r, err := t.taskByID(id)
		if err != nil {
			return err
		}
		if p := t.plan(r.plan); t.noted(p) != 0 {
			if p != nil {
				retried = p.ID
			}
			return errRetrying
		}
		if err := rules.CheckCancelTask(t.named(&r)); err != nil {
			return err
		}
		mark, step := rules.Cancel(r.status, r.endsWithItems())
		switch {
		case mark && !r.cancel:
			t.exec("UPDATE tasks SET cancel = 1, modified = ? WHERE n = ?", t.now, r.n)
			t.changed = append(t.changed, r.n)
		case !mark:
			t.step(&r, step)
		}
		if r.is(flagForeach) {
			t.drop(jobOpen, r.n)
			t.drop(jobDrop, r.n)
			t.add(jobDrop, r.n)
			t.cancelActive("of", r.n)
		}
		t.work()
		return nil
	})
	return retried, err
}

// cancelActive marks claimed and running tasks for their nodes to stop: those of which a column has the value.
func (t *tx) cancelActive(column string, value int64) {
	var ns []int64
	for r := t.query("SELECT n FROM tasks INDEXED BY tasks_mine WHERE status IN (-1, 0) AND cancel = 0 AND "+column+" = ?", value); r.next(); {
		ns = append(ns, r.int(0))
	}
	if len(ns) > 0 {
		t.exec("UPDATE tasks SET cancel = 1, modified = ? WHERE n IN (SELECT value FROM json_each(?))", t.now, list(ns))
		t.changed = append(t.changed, ns...)
	}
}

// Adopt implements store.Admin.
func (s *Store) Adopt(ctx context.Context, id plan.PlanID) error {
	return s.write(ctx, func(t *tx) error {
		p, err := t.planByID(id)
		if err != nil || p.Own {
			return err
		}
		p.Own = true
		t.touch(p)
		t.add(jobAdopt, p.n)
		t.work()
		return nil
	})
}
