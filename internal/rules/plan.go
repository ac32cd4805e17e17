package rules

import (
	"time"

	"github.com/seed-1177d267/sluice/plan"
)

// StateSeen returns the state of a plan as the expression plan.state gives it to a task that runs. To a
// task of finally it is how the other tasks ended, and "timed out" if the timeout of the plan stopped them.
func StateSeen(p *plan.Plan) string {
	switch {
	case p.Stopped == plan.ClosedByTimeout:
		return "timed out"
	case p.Ending != plan.PlanRunning:
		return p.Ending.String()
	}
	return p.State.String()
}

// Close returns the reason for which a plan is closed after a request to close it. changed is false
// if the plan stays as it is. A plan that has ended does not change. A reason for which running tasks
// are stopped replaces that of a failure, and then stays: of a person and a timeout the first counts.
// No failure closes a plan whose tasks of finally run (ending), so that each of these gets its turn.
func Close(state, ending plan.Lifecycle, now, why plan.Closing) (closing plan.Closing, changed bool) {
	if state.Ended() || now == why || now.Stops() || why == plan.ClosedByFailure && ending != plan.PlanRunning {
		return now, false
	}
	return why, true
}

// StopsPlan reports whether a task that ended with the outcome, and for the reason, closes its plan.
func StopsPlan(o Outcome, r plan.Reason, does plan.OnFailure) bool {
	return o == OutcomeFailed && (does == plan.Stop || r == plan.ReasonFatal)
}

// MayEnd reports whether a plan ends once nothing in it is unfinished. The plan must not have
// ended, and no retry of it may be in progress. A plan that is being submitted ends only if it was
// closed.
func MayEnd(state plan.Lifecycle, c plan.Closing, retrying bool) bool {
	return !state.Ended() && !retrying && (state != plan.PlanSubmitting || c != plan.Open)
}

// Begin notes when the time of a plan is over that begins at that instant, or begins again by a retry.
func Begin(p *plan.Plan, at time.Time) {
	if p.Deadline = (time.Time{}); p.Timeout > 0 {
		p.Deadline = at.Add(p.Timeout)
	}
}

// TimesOut reports whether a plan is closed once its Deadline is over. Its tasks of finally have as long as
// they take.
func TimesOut(state, ending plan.Lifecycle, c plan.Closing, retrying bool) bool {
	return state == plan.PlanRunning && ending == plan.PlanRunning && !c.Stops() && !retrying
}

// Overdue reports whether the Deadline of a plan is over, and no node has closed the plan yet. The next node does that before it
// claims anything.
func Overdue(p *plan.Plan, now time.Time) bool {
	return TimesOut(p.State, p.Ending, p.Closing, false) && !p.Deadline.IsZero() && !p.Deadline.After(now)
}

// Verdict returns how a plan ends whose tasks have all finished. broken says that some failed and
// the plan does not allow that. cancelled says that a person cancelled some. For a foreach task
// with items, the items decide. ending is that of a plan whose tasks of finally have finished too. The
// first row that applies decides.
//
//	ending failed or cancelled     the same
//	closed by a person             cancelled
//	closed by its timeout          failed
//	a task broken                  failed
//	a task cancelled by a person   cancelled
//	otherwise                      succeeded, skipped tasks or not
func Verdict(ending plan.Lifecycle, c plan.Closing, broken, cancelled bool) plan.Lifecycle {
	switch {
	case ending == plan.PlanFailed, ending == plan.PlanCancelled:
		return ending
	case c == plan.ClosedByPerson:
		return plan.PlanCancelled
	case c == plan.ClosedByTimeout, broken:
		return plan.PlanFailed
	case cancelled:
		return plan.PlanCancelled
	}
	return plan.PlanSucceeded
}

// Cancel says what becomes of a task that a person cancels, and that has not finished. A task that a
// node has is marked, and so is a foreach task that waits for its items: the step is none. Any other
// task ends as Halted says. Cancel reads Status, Ran and Made.
func Cancel(w *Waiter) (mark bool, s Step) {
	if w.Status.Active() || w.Made {
		return true, Step{}
	}
	return false, Halted(w.Status, w.Ran, plan.ClosedByPerson)
}
