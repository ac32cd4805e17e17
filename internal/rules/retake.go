package rules

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/seed-1177d267/sluice/internal/refusal"
	"github.com/seed-1177d267/sluice/internal/states"
	"github.com/seed-1177d267/sluice/plan"
)

// A Busy says why a task cannot be taken back, whatever its state is.
type Busy uint8

// Why a task is busy. The zero value says that it is not.
const (
	BusyCall Busy = 1 + iota // another call is about to change it
	BusyRoll                 // it is in a batch that is handed over
)

// CheckRetried refuses to take a task back that SelectRetry chose. The first rule that applies decides:
//
//  1. The task is busy: ErrConflict.
//  2. CheckReplaced refuses the new definition: ErrConflict.
//  3. The retry gives the task a queue that is not there: ErrNotFound.
//  4. The queue of the task was deleted, and the retry gives it no other one: ErrConflict. Nothing
//     would ever claim the task.
//
// with replaces the task, and is mostly nil. queues are all queues that there are.
func CheckRetried(t *plan.Task, busy Busy, with *plan.Task, queues map[plan.QueueID]bool) error {
	switch {
	case busy == BusyRoll:
		return refusal.New(plan.ErrConflict, "task %q is %s, and is being handed over to the receiver of its group: it cannot run again; its work can be added as a new task", t.Key(), states.OfTask(t))
	case busy != 0:
		return refusal.New(plan.ErrConflict, "task %q is %v, and another call is about to change it", t.Key(), t.Status)
	case with != nil && CheckReplaced(t, with) != nil:
		return CheckReplaced(t, with)
	case with != nil && !queues[with.Queue]:
		return fmt.Errorf("task %q: queue %s: %w", with.Key(), with.Queue, plan.ErrNotFound)
	case with == nil && !queues[t.Queue]:
		return refusal.New(plan.ErrConflict, "task %q cannot run again, since its queue was deleted; submit its plan again, or retry it with a plan file in which it has another queue", t.Key())
	}
	return nil
}

// CheckReplaced refuses a definition that makes a task of finally one of the others, or the reverse, or that
// gives it what CheckFinally refuses: ErrConflict.
func CheckReplaced(t, with *plan.Task) error {
	if with.Finally != t.Finally {
		return refusal.New(plan.ErrConflict, "task %q was moved to finally, or from there: submit the plan again", t.Key())
	}
	return CheckFinally(with)
}

// CheckBelow refuses to take back a parent of a task, or the foreach task of an item, while the task
// or the item is on its way and is not taken back itself. It returns ErrPlanActive if that task is
// claimed or running, and ErrConflict if it is too late to hold it. That is so for a queued task,
// and for a held task whose parents have already decided. decided says that a held task waits for an
// instant, or for its items. The error has the task's id, because the task may be of no plan.
func CheckBelow(t *plan.Task, decided bool) error {
	const remedy = "wait for it, or cancel it: sluice task cancel"
	switch {
	case t.Status.Active():
		return refusal.New(plan.ErrPlanActive, "task %q below is %s: %s %s", t.Key(), states.OfStatus(t.Status), remedy, t.ID)
	case t.Status == plan.Queued:
		return refusal.New(plan.ErrConflict, "task %q below is queued, and not among what is to run again: %s %s", t.Key(), remedy, t.ID)
	case t.Status == plan.Held && decided:
		return refusal.New(plan.ErrConflict, "task %q below waits to run, and is not among what is to run again: %s %s", t.Key(), remedy, t.ID)
	}
	return nil
}

// Remakes reports whether a retry that takes a foreach task back deletes its items. The task makes
// new items once its parents have finished. t is the task before the retry, of which Remakes reads
// Expanded and Items. foreach says that it is a foreach task after the retry too. waits says that
// one of its parents runs again or has not finished.
func Remakes(r *Retried, t *plan.Task, foreach, waits bool) bool {
	return r.Anew || !foreach || waits || !t.Expanded || t.Items == 0
}

// A TakenBack is what a rule asks of a task that a decided retry takes back.
type TakenBack struct {
	Status  plan.Status
	Attempt int
	Ran     bool       // as Retried has it
	With    *plan.Task // replaces its definition, params and queue; mostly nil
	Leaves  bool       // it is an item that is not in its list any more
}

// Retake takes a task back to held, as if no attempt had been made: only what its submitter said of
// it stays, what is known of its items, and Ran if the retry keeps it.
func Retake(t TakenBack) Step {
	s := Step{Status: plan.Held, Attempted: true, Reset: true, Ran: t.Ran, With: t.With, Noted: t.Attempt > 0, Leaves: t.Leaves}
	if t.Status != plan.Held {
		s = to(t.Status, s)
	}
	return s
}

// Reopen lets a plan run again for a retry that is made at that instant, with these params and this timeout
// unless they are nil. A plan that still runs does not begin again. Its Timeout does.
func Reopen(p *plan.Plan, params json.RawMessage, timeout *time.Duration, at time.Time) {
	if p.State.Ended() {
		p.Retried = at
	}
	p.State, p.Closing, p.Ending, p.Stopped, p.Ended = plan.PlanRunning, plan.Open, plan.PlanRunning, plan.Open, time.Time{}
	p.Edits++
	if timeout != nil {
		p.Timeout = *timeout
	}
	Begin(p, at)
	if params != nil {
		p.Params = params
	}
}
