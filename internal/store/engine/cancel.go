package engine

import (
	"cmp"
	"context"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// A Canceller is the unit of a cancellation. T is a task, and P a plan, as the driver looked at it.
type Canceller[T, P any] interface {
	Worker
	Closer[P]

	// PlanToCancel and TaskToCancel look at what is to be cancelled, and return it as refusals name
	// it too, the task with Reason, Started and NotBefore. w has what rules.CheckCancelHeld asks of the task.
	PlanToCancel(ctx context.Context, id plan.PlanID) (p P, named plan.Plan, err error)
	TaskToCancel(ctx context.Context, id plan.TaskID) (t T, named plan.Task, w *rules.Waiter, err error)

	// Mark notes that a person wants a task ended, if the task is still as it was looked at. A node
	// has the task, or the task waits for its items. Cancel writes the step of any other task, if it still is as it was looked at, and
	// closes its plan if rules.StopsPlan says so. The unit remembers to cancel the items of a foreach
	// task.
	Mark(ctx context.Context, t T) (done bool, err error)
	Cancel(ctx context.Context, t T, s rules.Step) (done bool, err error)
}

// CancelPlan closes a plan because a person wants that. seen is as for rules.CancelsLate.
func CancelPlan[T, P any](ctx context.Context, u Canceller[T, P], id plan.PlanID, seen bool) error {
	for closed := false; !closed; {
		p, named, err := u.PlanToCancel(ctx, id)
		if err == nil {
			err = rules.CheckCancelPlan(&named)
		}
		if err == nil && rules.CancelsLate(&named, seen) {
			break
		}
		if err == nil {
			closed, err = Close(ctx, u, p, plan.ClosedByPerson)
		}
		if err != nil {
			return err
		}
	}
	_, err := Work(ctx, u)
	return err
}

// AnswerTask ends a task that waits for an approval, as rules.Answered says.
func AnswerTask[T, P any](ctx context.Context, u Canceller[T, P], id plan.TaskID, a *rules.Answer) error {
	for done := false; !done; {
		t, named, w, err := u.TaskToCancel(ctx, id)
		if err == nil {
			err = rules.CheckAnswer(&named, a)
		}
		if err == nil {
			done, err = u.Cancel(ctx, t, rules.Answered(w.Status, a))
		}
		if err != nil {
			return err
		}
	}
	_, err := Work(ctx, u)
	return err
}

// CancelTask cancels a task as rules.Cancel says.
func CancelTask[T, P any](ctx context.Context, u Canceller[T, P], id plan.TaskID) error {
	for done := false; !done; {
		t, named, w, err := u.TaskToCancel(ctx, id)
		if err == nil {
			err = cmp.Or(rules.CheckCancelTask(&named), rules.CheckCancelHeld(&named, w))
		}
		if err != nil {
			return err
		}
		if mark, step := rules.Cancel(w); mark {
			done, err = u.Mark(ctx, t)
		} else {
			done, err = u.Cancel(ctx, t, step)
		}
		if err != nil {
			return err
		}
	}
	_, err := Work(ctx, u)
	return err
}
