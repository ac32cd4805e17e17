package rules

import (
	"fmt"
	"time"

	"github.com/seed-1177d267/sluice/internal/refusal"
	"github.com/seed-1177d267/sluice/plan"
)

// AwaitsEnd reports whether a task of finally is held whatever happens, because other tasks of its plan
// have not ended. A submission that was closed never ran, so that its tasks of finally end with the
// others.
func (w *Waiter) AwaitsEnd() bool {
	return w.Finally && w.Ending == plan.PlanRunning && !(w.State == plan.PlanSubmitting && w.Closing != plan.Open)
}

// HeldFinally reports whether the task is one of finally that is held.
func HeldFinally(t *plan.Task) bool { return t.Finally && t.Status == plan.Held }

// KeptFinally reports whether a task of finally ended before the last retry of its plan, at retried. In a plan that
// holds such tasks, a retry for lists (SelectLists) left it so.
func KeptFinally(t *plan.Task, retried time.Time) bool {
	return t.Finally && t.Status.Finished() && !retried.IsZero() && !t.Ended.After(retried)
}

// HoldsFinally reports whether a plan in that state holds its tasks of finally. When nothing else in the
// plan is unfinished, they are released, in place of the plan's end.
func HoldsFinally(state, ending plan.Lifecycle) bool {
	return state == plan.PlanRunning && ending == plan.PlanRunning
}

// outcomeOfEnding returns what the When of a task of finally sees of the other tasks of its plan.
// Cancelled tasks and tasks that were stopped count as failed.
func outcomeOfEnding(ending plan.Lifecycle) Outcome {
	if ending == plan.PlanSucceeded {
		return OutcomeSucceeded
	}
	return OutcomeFailed
}

// DecideFinally is Decide for a task of finally that its plan does not hold. It asks ending once all of its
// parents have finished (all), however these ended. An item without a rule runs, because its foreach task
// has asked.
func DecideFinally(w plan.When, ending plan.Lifecycle, all bool) Decision {
	switch {
	case !all:
		return ToWait
	case w == "":
		return ToRun
	}
	return Decide(w, outcomeOfEnding(ending), true)
}

// MayRunFinally reports whether a task of finally with the rule ever runs.
func MayRunFinally(w plan.When) bool {
	return Decide(w, OutcomeSucceeded, true) == ToRun || Decide(w, OutcomeFailed, true) == ToRun
}

// CancelsLate reports whether a cancellation of the plan changes nothing, because its tasks of finally run
// by now and whoever cancelled had not seen that (seen).
func CancelsLate(p *plan.Plan, seen bool) bool { return p.InFinally() && !seen }

// CheckTakesTasks returns an ErrPlanEnded if the plan takes no tasks any more, and an ErrConflict while its
// tasks of finally run.
func CheckTakesTasks(p *plan.Plan) error {
	switch {
	case p.State.Ended(), p.Closing != plan.Open:
		return fmt.Errorf("plan %s is %v and takes no tasks: %w", p.Title(), p.State, plan.ErrPlanEnded)
	case p.InFinally():
		return refusal.New(plan.ErrConflict, "%s runs its tasks of finally, and takes no others: wait until they have ended", p.Title())
	}
	return nil
}
