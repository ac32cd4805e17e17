package halt

import (
	"context"
	"errors"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// Cancel cancels a plan that has not ended, as the caller saw it, and returns the plan as it is then. Tasks
// of finally are stopped only if p says that they run. The nodes of a plan
// that runs take out what one call leaves. A plan that is being submitted has no nodes, so that Cancel
// calls again. A plan that has ended is plan.ErrPlanEnded.
func Cancel(ctx context.Context, st Canceller, p plan.Plan) (plan.Plan, error) {
	const most = 10 // calls in a row that only do what others left
	finally := p.InFinally()
	for idle := 0; ; {
		err := st.CancelPlan(ctx, p.ID, finally)
		if err != nil && !(p.Closing == plan.ClosedByPerson && errors.Is(err, plan.ErrPlanEnded)) { // which it did meanwhile
			return p, err
		}
		left := p.Counts.Unfinished()
		now, err := st.Plan(ctx, p.ID)
		if err != nil {
			return p, err
		}
		if p = now; p.State != plan.PlanSubmitting {
			return p, nil
		}
		if idle++; p.Counts.Unfinished() < left {
			idle = 0
		}
		if idle == most {
			return p, nil
		}
	}
}

// A Canceller is what Cancel needs of a store.
type Canceller interface {
	store.Reader
	CancelPlan(ctx context.Context, p plan.PlanID, finally bool) error
}

// A Deleter is what Delete needs of a store.
type Deleter interface {
	Canceller
	DeletePlan(ctx context.Context, p plan.PlanID, budget int) (more bool, err error)
}

// Delete deletes a plan that has ended, with its tasks and logs, in parts, between which other callers
// of the store get their turn. Delete cancels a plan whose submission ended half-way first: nothing of
// it ever ran. Any other plan that has not ended is plan.ErrPlanActive.
func Delete(ctx context.Context, st Deleter, p plan.Plan) error {
	if p.State == plan.PlanSubmitting && p.Size > 0 {
		if _, err := Cancel(ctx, st, p); err != nil {
			return err
		}
	}
	for {
		if more, err := st.DeletePlan(ctx, p.ID, protocol.DefaultBudget); err != nil || !more {
			return err
		}
	}
}
