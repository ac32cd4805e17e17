package engine

import (
	"context"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// Drivers use this file that end many tasks with one command. Other drivers settle each of the tasks.

// A Clearer is a unit that ends the tasks of a closed plan together.
type Clearer[P any] interface {
	PlanView(p P) PlanView

	// MarkActive notes that a person wants those tasks of the plan ended that nodes have.
	MarkActive(ctx context.Context, p P) error

	// EndWaiting writes for held and queued tasks of the plan the step of those that ran, which is
	// asked as rules.Settle asks it, or of those that did not. It reports whether none is left.
	// Foreach tasks that wait for nothing but the end of their items do not count.
	EndWaiting(ctx context.Context, p P, step func(ran bool) rules.Step) (done bool, err error)
}

// Clear ends the tasks that a plan does not start, if it is closed.
func Clear[P any](ctx context.Context, u Clearer[P], p P) (done bool, err error) {
	v := u.PlanView(p)
	if v.Closing == plan.Open || v.State.Ended() {
		return true, nil
	}
	if v.Closing.Stops() {
		if err := u.MarkActive(ctx, p); err != nil {
			return false, err
		}
	}
	return u.EndWaiting(ctx, p, func(ran bool) rules.Step { return rules.Halted(plan.Queued, ran, v.Closing) }) // or held
}

// NotStarted returns the step of tasks that were claimed before the unit saw that their plan is
// closed: they end as if nobody had claimed them. ran is as for EndWaiting.
func NotStarted(p PlanView, ran bool) rules.Step {
	s := rules.Halted(plan.Claimed, ran, p.Closing)
	s.Attempts = -1
	return s
}

// DropItems has end write the steps of held and queued items, as EndWaiting does, if their foreach
// task ended before them, or waits for nothing but their end (waits) and was cancelled, or more items
// failed than may (over). It reads Status, Reason, Cancel and Items of the foreach task.
func DropItems(of *plan.Task, waits, over bool, end func(step func(ran bool) rules.Step) (done bool, err error)) (done bool, err error) {
	switch {
	case of.Items > 0 && rules.EndsItems(of.Status, of.Reason), waits && of.Cancel:
	case waits && over:
		return end(func(ran bool) rules.Step { return rules.OverBudget(plan.Queued, ran) }) // or held
	default:
		return true, nil
	}
	return end(func(ran bool) rules.Step { return rules.Dropped(plan.Queued, ran, of.Status, of.Reason) }) // or held
}

// Stops reports whether the step, of a held task of the plan, closes the plan. The unit then writes
// the step and closes the plan before it settles the tasks after that one.
func Stops(p PlanView, s *rules.Step, lenient bool) bool {
	return p.Closing == plan.Open && p.Ending == plan.PlanRunning && s.Finishes() && rules.StopsPlan(rules.OutcomeOf(s.Status, s.Reason, lenient), s.Reason, p.OnFailure)
}
