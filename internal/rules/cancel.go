package rules

import (
	"fmt"

	"github.com/seed-1177d267/sluice/internal/refusal"
	"github.com/seed-1177d267/sluice/internal/states"
	"github.com/seed-1177d267/sluice/plan"
)

// CheckCancelTask refuses to cancel a task that has finished, or whose status is no code, since another
// program wrote it: ErrConflict.
func CheckCancelTask(t *plan.Task) error {
	switch {
	case !t.Status.Valid():
		return refusal.New(plan.ErrConflict, "task %s has a status that Sluice does not know: the program that wrote it has to end the task", t.Key())
	case t.Status.Finished():
		return refusal.New(plan.ErrConflict, "task %s is %s already: there is nothing to cancel", t.Key(), states.OfTask(t))
	}
	return nil
}

// CheckCancelHeld refuses to cancel a task of finally that is held until the other tasks of its plan have
// ended: ErrConflict. w has what Cancel asks of the task, and Finally, Ending, State and Closing.
func CheckCancelHeld(t *plan.Task, w *Waiter) error {
	if w.AwaitsEnd() && Pending(w.Status) {
		return refusal.New(plan.ErrConflict, "task %s is one of finally, and waits for all others of its plan: it can be cancelled once these have ended", t.Key())
	}
	return nil
}

// CheckCancelPlan refuses to cancel a plan that has ended: ErrPlanEnded.
func CheckCancelPlan(p *plan.Plan) error {
	if p.State.Ended() {
		return fmt.Errorf("plan %s is %v: %w", p.Title(), p.State, plan.ErrPlanEnded)
	}
	return nil
}
