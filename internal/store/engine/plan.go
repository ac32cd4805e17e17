package engine

import (
	"context"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// A PlanView is what the rules ask of a plan.
type PlanView struct {
	State     plan.Lifecycle
	Closing   plan.Closing
	OnFailure plan.OnFailure
	Retrying  bool // a retry of it is in progress
	Finally   bool // it has tasks of finally,
	Ending    plan.Lifecycle
}

// Holds reports whether the plan holds tasks of finally, as rules.HoldsFinally says.
func (v *PlanView) Holds() bool { return v.Finally && rules.HoldsFinally(v.State, v.Ending) }

// A Closer is a unit that closes and ends plans. P is a plan as the driver looked at it.
type Closer[P any] interface {
	PlanView(p P) PlanView

	// ClosePlan closes the plan, if it is still as it was looked at. The unit remembers to end the
	// tasks that are held or queued, and if that stops running tasks, to mark those that a node has.
	ClosePlan(ctx context.Context, p P, closing plan.Closing) (closed bool, err error)

	// Finished reports whether no task of the plan is unfinished, whether some are broken, and
	// whether a person cancelled some, as rules.Verdict asks. If the plan holds tasks of finally, they do not
	// count, whether they are held or a retry for lists left them as they ended.
	Finished(ctx context.Context, p P) (all, broken, cancelled bool, err error)

	// BeginFinally notes how the other tasks of the plan ended, and opens the plan if it was closed, if it
	// is still as it was looked at. The plan's Stopped keeps why it was closed. The unit remembers to settle the tasks of finally, which the plan does not hold any more.
	BeginFinally(ctx context.Context, p P, ending plan.Lifecycle) error

	// EndPlan ends the plan, if it is still as it was looked at.
	EndPlan(ctx context.Context, p P, state plan.Lifecycle) error
}

// Close stops a plan from starting anything more, for that reason. It returns false if the plan is
// not as it was looked at any more.
func Close[P any](ctx context.Context, u Closer[P], p P, why plan.Closing) (closed bool, err error) {
	v := u.PlanView(p)
	if closing, changed := rules.Close(v.State, v.Ending, v.Closing, why); changed {
		return u.ClosePlan(ctx, p, closing)
	}
	return true, nil
}

// TimeOut closes a plan whose Deadline is over, as rules.TimesOut says.
func TimeOut[P any](ctx context.Context, u Closer[P], p P) error {
	v := u.PlanView(p)
	if !rules.TimesOut(v.State, v.Ending, v.Closing, v.Retrying) {
		return nil
	}
	_, err := Close(ctx, u, p, plan.ClosedByTimeout) // else somebody else has closed or ended it
	return err
}

// TaskEnded closes the plan of a task that ended with the outcome, and for the reason, if the plan is
// to stop then.
func TaskEnded[P any](ctx context.Context, u Closer[P], p P, o rules.Outcome, r plan.Reason) error {
	if !rules.StopsPlan(o, r, u.PlanView(p).OnFailure) {
		return nil
	}
	_, err := Close(ctx, u, p, plan.ClosedByFailure) // else somebody else has closed or ended it
	return err
}

// EndPlan ends a plan in which nothing is unfinished, or has it run its tasks of finally first.
func EndPlan[P any](ctx context.Context, u Closer[P], p P) error {
	v := u.PlanView(p)
	if !rules.MayEnd(v.State, v.Closing, v.Retrying) {
		return nil
	}
	all, broken, cancelled, err := u.Finished(ctx, p)
	if err != nil || !all {
		return err
	}
	verdict := rules.Verdict(v.Ending, v.Closing, broken, cancelled)
	if v.Holds() {
		return u.BeginFinally(ctx, p, verdict)
	}
	return u.EndPlan(ctx, p, verdict)
}
