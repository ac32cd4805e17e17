package mongodb

import (
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// CancelPlan implements store.Admin.
func (s *Store) CancelPlan(ctx context.Context, id plan.PlanID) error {
	p, err := s.plan(ctx, id)
	if err != nil {
		return err
	}
	update := d("$set", d("closing", plan.ClosedByPerson))
	if p.Closing != plan.ClosedByPerson { // else it does not change
		update = append(update, bson.E{Key: "$currentDate", Value: d("mtime", true)})
	}
	closed, err := s.UpdateOne(ctx, s.plans, d("_id", p.ID, "state", d("$in", bson.A{plan.PlanSubmitting, plan.PlanRunning})), update)
	if err != nil {
		return err
	}
	if !closed {
		return fmt.Errorf("plan %s is %v: %w", p.title(), p.State, plan.ErrPlanEnded)
	}
	return s.inRound(ctx, 0, func(r *round) error { return r.job(ctx, workClose, p.ID) })
}

// CancelTask implements store.Admin.
func (s *Store) CancelTask(ctx context.Context, id plan.TaskID) error {
	for {
		t, err := s.exists(ctx, id)
		if err != nil {
			return err
		}
		if err := rules.CheckCancelTask(t.named()); err != nil {
			return err
		}
		if t.Status.Active() {
			marked, err := s.UpdateOne(ctx, s.tasks, d("_id", t.ID, "status", d("$in", activeStatuses)), t.mark())
			if err != nil || marked {
				return err
			}
			continue
		}
		r, err := s.newRound(ctx, 0)
		if err != nil {
			return err
		}
		cancel := r.cancelWaiting
		if t.endsWithItems() {
			cancel = r.cancelExpanded
		}
		done, err := cancel(ctx, t)
		r.end()
		if err != nil || done {
			return err
		}
	}
}

// cancelWaiting cancels a task that nobody has, and releases what waits for it. done is false if the task changed meanwhile.
func (r *round) cancelWaiting(ctx context.Context, t *taskDoc) (done bool, err error) {
	done, err = r.UpdateOne(ctx, r.tasks, d("_id", t.ID, "status", t.Status, "gen", wire.OrNone(t.Gen)), unstarted(rules.CancelledByPerson(t.Status), stillOpen).bson())
	if err != nil || !done {
		return done, err
	}
	r.queue = append(r.queue, ended{id: t.ID})
	return true, r.finishUp(ctx)
}

// cancelExpanded cancels the items of a foreach task, which ends with the last of them. The work is written down first: it finds the mark,
// or has nothing to do.
func (r *round) cancelExpanded(ctx context.Context, t *taskDoc) (done bool, err error) {
	if err := r.job(ctx, workCancel, t.ID); err != nil {
		return false, err
	}
	done, err = r.UpdateOne(ctx, r.tasks, d("_id", t.ID, "status", plan.Held, "hold", holdItems, "expanded", true, "gen", t.Gen), t.mark())
	if err != nil {
		return false, err
	}
	return done, r.finishUp(ctx)
}
