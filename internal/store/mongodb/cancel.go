package mongodb

import (
	"context"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/engine"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// CancelPlan implements store.Admin.
func (s *Store) CancelPlan(ctx context.Context, id plan.PlanID, seen bool) error {
	return s.inRound(ctx, 0, func(r *round) error { return engine.CancelPlan[*taskDoc](ctx, r, id, seen) })
}

// CancelTask implements store.Admin.
func (s *Store) CancelTask(ctx context.Context, id plan.TaskID) error {
	return s.inRound(ctx, 0, func(r *round) error { return engine.CancelTask(ctx, r, id) })
}

// AnswerTask implements store.Admin.
func (s *Store) AnswerTask(ctx context.Context, id plan.TaskID, a rules.Answer) error {
	return s.inRound(ctx, 0, func(r *round) error { return engine.AnswerTask(ctx, r, id, &a) })
}

// PlanToCancel implements engine.Canceller. An earlier call may have left something, and no node may
// be there to continue: a call of Admin takes up no work of others, but for what it is about.
func (r *round) PlanToCancel(ctx context.Context, id plan.PlanID) (p *planDoc, named plan.Plan, err error) {
	if p, err = r.plan(ctx, id); err != nil {
		return nil, named, err
	}
	if p.Closing.Stops() && !p.State.Ended() {
		err = r.job(ctx, workClose, p.ID)
	}
	return p, p.domain(), err
}

// TaskToCancel implements engine.Canceller.
func (r *round) TaskToCancel(ctx context.Context, id plan.TaskID) (t *taskDoc, named plan.Task, w *rules.Waiter, err error) {
	if t, err = r.task(ctx, id, ones("name status reason gen hold expanded cancel ran attempt started notbefore finally plan")); err != nil {
		return nil, named, nil, err
	}
	w = &rules.Waiter{Status: t.Status, Ran: t.Ran, Made: t.endsWithItems(), Finally: t.Finally}
	if t.Finally {
		if err := r.readPlans(ctx, idList{t.Plan}); err != nil {
			return nil, named, nil, err
		}
		if p := r.known[t.Plan]; p != nil {
			w.State, w.Closing, w.Ending = p.State, p.Closing, p.Ending
		}
	}
	return t, *t.named(), w, nil
}

// Mark implements engine.Canceller. The work of cancelling items is written down first: it finds the
// mark, or has nothing to do.
func (r *round) Mark(ctx context.Context, t *taskDoc) (done bool, err error) {
	if t.Status.Active() {
		return r.UpdateOne(ctx, r.tasks, onlyActive(d("_id", t.ID)), t.mark())
	}
	if err := r.job(ctx, workCancel, t.ID); err != nil {
		return false, err
	}
	return r.UpdateOne(ctx, r.tasks, gathering(d("_id", t.ID), "gen", t.Gen), t.mark())
}

// Cancel implements engine.Canceller. The release of the task closes its plan, if that is to be.
func (r *round) Cancel(ctx context.Context, t *taskDoc, s rules.Step) (done bool, err error) {
	done, err = r.UpdateOne(ctx, r.tasks, d("_id", t.ID, "status", t.Status, "gen", wire.OrNone(t.Gen), "ran", wire.OrNone(t.Ran), "attempt", wire.OrNone(t.Attempt)), unstarted(s, stillOpen).bson())
	if done {
		r.queue = append(r.queue, parent{id: t.ID})
	}
	return done, err
}
