package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
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

// neededBy returns a task of no plan that has not finished and needs one of the plan's; nil if there is none, or if the plan was abandoned.
func (p *planRow) neededBy() *task {
	if p.State == plan.PlanAbandoned {
		return nil
	}
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
	tx.lookBelow(t)
	tx.tellMissing(t)
}

// lookBelow has the children of a task that is gone look for it again: they may still wait for it.
func (tx *tx) lookBelow(t *task) {
	for _, c := range t.children {
		if !c.gone {
			c.look()
			tx.delay(c)
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

// Expire implements store.Node: plans, and tasks of queues, that do not say how long are kept for ever.
func (s *Store) Expire(ctx context.Context, budget int) (gone plan.Expired, err error) {
	err = s.write(ctx, func(tx *tx) error {
		tx.budget = budget
		if gone.Plans, gone.More = tx.prune(0); !gone.More {
			gone.Tasks, gone.More = tx.pruneTasks()
		}
		return nil
	})
	return gone, err
}

// pruneTasks deletes tasks of no plan that are kept no longer, as far as the budget reaches.
func (tx *tx) pruneTasks() (n int, more bool) {
	for _, t := range tx.tasks {
		limit, limited := t.queue.Keep.Limits(0)[min(t.Status, plan.Failed)]
		if t.plan != nil || t.of != nil || !limited || tx.at.Sub(t.Ended) <= limit || t.needed() {
			continue
		}
		if tx.budget <= 0 {
			return n, true
		}
		for _, gone := range append([]*task{t}, t.items...) { // at once: a retry between two parts would miss some
			tx.delete(gone)
			tx.budget--
		}
		n++
	}
	return n, n > 0 // what they needed may go now
}

// needed reports whether a task needs this one or an item of it, or an item has not finished.
func (t *task) needed() bool {
	there := func(c *task) bool { return !c.gone }
	return slices.ContainsFunc(t.children, there) || slices.ContainsFunc(t.items, func(i *task) bool {
		return !i.Status.Finished() || slices.ContainsFunc(i.children, there)
	})
}

// Prune implements store.Admin.
func (s *Store) Prune(ctx context.Context, keep time.Duration, budget int) (plans int, more bool, err error) {
	err = s.write(ctx, func(tx *tx) error {
		tx.budget = budget
		plans, more = tx.prune(keep)
		return nil
	})
	return plans, more, err
}

// prune deletes plans that ended longer ago than they are to be kept, as far as the budget reaches.
func (tx *tx) prune(keep time.Duration) (plans int, more bool) {
	for _, p := range tx.plans {
		k := cmp.Or(p.Keep, keep)
		old := p.State.Ended() && k > 0 && tx.at.Sub(p.Ended) > k
		if !p.leaving && (!old || p.neededBy() != nil) {
			continue
		}
		if tx.deletePlan(p) {
			return plans, true
		}
		plans++
	}
	return plans, false
}
