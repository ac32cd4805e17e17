package mongodb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/plan"
)

// DeletePlan implements store.Admin.
func (s *Store) DeletePlan(ctx context.Context, id plan.PlanID, budget int) (more bool, err error) {
	r, err := s.newRound(ctx, budget)
	if err != nil {
		return false, err
	}
	defer r.end()
	for {
		p, err := s.plan(ctx, id)
		if err != nil {
			return false, err
		}
		if !p.State.Ended() || !p.Retry.IsZero() {
			return false, fmt.Errorf("plan %s is %v: %w", p.title(), p.State, plan.ErrPlanActive)
		}
		by, err := s.neededBy(ctx, p)
		if err != nil {
			return false, err
		}
		if by != nil {
			return false, plan.Needed(p.title(), taskID(by.ID), by.Status)
		}
		if more, err = r.deletePlan(ctx, p); err == nil {
			return more, r.finishUp(ctx)
		}
		if !errors.Is(err, plan.ErrConflict) { // else it is another plan by now: one that is needed, or runs again
			return false, err
		}
	}
}

// neededBy returns a task of no plan that has not finished and needs one of the plan's; nil if there is none, if the plan was abandoned, or
// if the deletion has begun.
func (s *Store) neededBy(ctx context.Context, p *planDoc) (*taskDoc, error) {
	if p.Deleting || p.Shared == 0 || p.State == plan.PlanAbandoned {
		return nil, nil
	}
	return findOne[taskDoc](ctx, s.tasks, d("plans", p.ID, "open", true, "status", d("$in", openStatuses)),
		query{fields: d("status", 1), hint: indexNeeded})
}

// deletePlan deletes tasks and then the plan, as far as the budget reaches, and reports whether more is left.
func (r *round) deletePlan(ctx context.Context, p *planDoc) (more bool, err error) {
	if !p.Deleting {
		// A plan that is retried at this moment, or come to be needed, is not to lose its tasks.
		marked, err := r.updateOne(ctx, r.plans, d("_id", p.ID, "state", p.State, "edits", p.Edits, "shared", orNone(p.Shared), "retry", nil),
			d("$set", d("deleting", true, "until", r.at)))
		if err == nil && !marked {
			err = fmt.Errorf("plan %s: %w", p.title(), plan.ErrConflict)
		}
		if err != nil {
			return false, err
		}
	}
	n, more, err := r.deleteTasks(ctx, p.ID, r.budget)
	r.budget -= n
	if err != nil || more || r.budget <= 0 {
		return true, err
	}
	r.budget--
	if err := r.upsert(ctx, r.runs, d("_id", p.Name), d("$max", d("run", p.Run))); err != nil {
		return false, err
	}
	_, err = r.remove(ctx, r.plans, d("_id", p.ID))
	return false, err
}

// deleteTasks deletes up to budget tasks of a plan with their logs and files. Tasks of no plan that wait for one of them are looked at:
// a parent that is gone counts as cancelled.
func (r *round) deleteTasks(ctx context.Context, id bson.ObjectID, budget int) (n int, more bool, err error) {
	for n < budget {
		docs, err := find[taskDoc](ctx, r.tasks, d("plan", id), query{fields: d("_id", 1), hint: indexList, limit: min(deleteAtOnce, budget-n)})
		if err != nil {
			return n, false, err
		}
		if len(docs) == 0 {
			return n, false, nil
		}
		ids := make(bson.A, len(docs))
		for i := range docs {
			ids[i] = docs[i].ID
		}
		if err := r.forgetTasks(ctx, ids); err != nil {
			return n, false, err
		}
		n += len(ids)
	}
	return n, true, nil
}

// Prune implements store.Admin. The server gives freed room back by itself.
func (s *Store) Prune(ctx context.Context, keep time.Duration, budget int) (plans int, more bool, err error) {
	r, err := s.newRound(ctx, budget)
	if err != nil {
		return 0, false, err
	}
	defer r.end()
	plans, more, err = r.prunePlans(ctx, keep)
	if err != nil || plans == 0 && !more {
		return plans, false, err
	}
	return plans, more, r.finishUp(ctx)
}

// prunePlans deletes plans that ended longer ago than they are to be kept.
func (r *round) prunePlans(ctx context.Context, keep time.Duration) (plans int, more bool, err error) {
	plans, more, err = r.prune(ctx, "until", d("until", d("$lt", r.at)))
	if err == nil && !more && keep > 0 {
		var old int
		old, more, err = r.prune(ctx, "ended", d("ended", d("$lt", r.at.Add(-keep)), "keep", nil, "deleting", nil))
		plans += old
	}
	return plans, more, err
}

// prune deletes those of the plans that may go, in the order of the index. It reads no more at once than the budget may delete.
func (r *round) prune(ctx context.Context, index string, old bson.D) (plans int, more bool, err error) {
	q := query{
		fields: d("name", 1, "run", 1, "state", 1, "edits", 1, "ended", 1, "shared", 1, "deleting", 1, "retry", 1),
		hint:   index, sort: d(index, 1), limit: max(1, min(r.budget, deleteAtOnce)),
	}
	for {
		docs, err := find[planDoc](ctx, r.plans, old, q)
		if err != nil {
			return plans, false, err
		}
		for i := range docs {
			p := &docs[i]
			q.skip++ // unless it goes
			if !p.Retry.IsZero() || !p.Deleting && !p.State.Ended() {
				continue
			}
			by, err := r.neededBy(ctx, p)
			if err != nil {
				return plans, false, err
			}
			if by != nil {
				continue
			}
			more, err = r.deletePlan(ctx, p)
			if errors.Is(err, plan.ErrConflict) { // somebody else deletes it, retries it, or needs it
				continue
			}
			if err != nil || more {
				return plans, more, err
			}
			q.skip--
			plans++
		}
		if len(docs) < q.limit {
			return plans, false, nil
		}
	}
}
