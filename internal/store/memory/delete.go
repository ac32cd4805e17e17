package memory

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-1177d267/sluice/plan"
)

// DeletePlan implements store.Admin.
func (s *Store) DeletePlan(ctx context.Context, id plan.PlanID, budget int) (more bool, err error) {
	err = s.write(ctx, func(tx *tx) error {
		p := tx.plans[id]
		if p == nil {
			return fmt.Errorf("plan %s: %w", id, plan.ErrNotFound)
		}
		if !p.State.Ended() {
			return fmt.Errorf("plan %s is %v: %w", p.Title(), p.State, plan.ErrPlanActive)
		}
		if t := p.neededBy(); t != nil && !p.leaving {
			return plan.Needed(p.Title(), t.ID, t.Status)
		}
		tx.budget = budget
		more = tx.deletePlan(p)
		return nil
	})
	return more, err
}

// neededBy returns a task of no plan that has not finished and needs one of the plan's; nil if there is none.
func (p *planRow) neededBy() *task {
	for _, t := range p.tasks {
		for _, c := range t.children {
			if c.plan == nil && !c.Status.Finished() {
				return c
			}
		}
	}
	return nil
}

// deletePlan deletes tasks and then the plan, as far as the budget reaches, and reports whether more is left.
func (tx *tx) deletePlan(p *planRow) (more bool) {
	p.leaving = true
	if tx.deleteTasks(p) || tx.budget <= 0 {
		return true
	}
	p.gone = true
	delete(tx.plans, p.ID)
	tx.budget--
	return false
}

func (tx *tx) deleteTasks(p *planRow) (more bool) {
	for len(p.tasks) > 0 && tx.budget > 0 {
		t := p.tasks[len(p.tasks)-1]
		p.tasks = p.tasks[:len(p.tasks)-1]
		tx.delete(t)
		tx.budget--
	}
	return len(p.tasks) > 0
}

// delete takes a task that nobody runs, and that is not queued, from everywhere but its plan's list.
func (tx *tx) delete(t *task) {
	tx.count(t, -1)
	t.gone, t.log, t.results = true, nil, nil
	tx.delay(t)
	if t.plan != nil {
		delete(t.plan.byName, t.Name)
	}
	delete(tx.tasks, t.ID)
	for _, c := range t.children {
		if !c.gone { // it may still wait for this one
			c.look()
			tx.due.push(c)
		}
	}
}

// abandon ends submissions that nobody has touched for an hour, and reports whether more is left of them to delete.
func (tx *tx) abandon() (more bool) {
	for id, p := range tx.submitting {
		if tx.at.Sub(p.Modified) < plan.AbandonAfter && p.State == plan.PlanSubmitting {
			continue
		}
		if p.State == plan.PlanSubmitting {
			p.State, p.Ended = plan.PlanAbandoned, tx.at
			tx.touchPlan(p)
		}
		if tx.deleteTasks(p) {
			return true
		}
		delete(tx.submitting, id)
	}
	return false
}

// Expire implements store.Node: plans that do not say how long are kept for ever.
func (s *Store) Expire(ctx context.Context, budget int) (plans int, more bool, err error) {
	return s.Prune(ctx, 0, budget)
}

// Prune implements store.Admin.
func (s *Store) Prune(ctx context.Context, keep time.Duration, budget int) (plans int, more bool, err error) {
	err = s.write(ctx, func(tx *tx) error {
		tx.budget = budget
		old := func(p *planRow) bool {
			k := p.Keep
			if k == 0 {
				k = keep
			}
			return p.State.Ended() && k > 0 && tx.at.Sub(p.Ended) > k
		}
		for _, p := range tx.plans {
			if !p.leaving && (!old(p) || p.neededBy() != nil) {
				continue
			}
			if more = tx.deletePlan(p); more {
				return nil
			}
			plans++
		}
		return nil
	})
	return plans, more, err
}
