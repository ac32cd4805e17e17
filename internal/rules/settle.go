package rules

import (
	"errors"
	"fmt"

	"github.com/seed-1177d267/sluice/plan"
)

// A Waiter is what a rule asks of a held or queued task, and of what the task waits for. A store that
// keeps what a task waits for apart from the task fills only the fields that can matter then.
type Waiter struct {
	Status plan.Status
	When   plan.When
	Seen   Outcome // the set of the outcomes of those parents that have finished
	All    bool    // every parent has finished
	Early  bool    // its NotBefore is still to come
	Ran    bool    // as plan.Task has it
	Allow  bool    // its failure counts as success (continue-on-error)
	Damage error   // the store cannot read what it needs of the task; mostly nil

	List   bool // it is a foreach task whose items come from its definition or its parents, and has made none
	Making bool // it is a foreach task whose items are being made
	Made   bool // it is a foreach task whose items are all in
	Items  Items
	Along  Along

	Item    bool // it is an item,
	Stopped bool // of a foreach task that a person cancelled, or that ended before its items
	Alone   bool // or whose items are not all in
	Over    bool // or of which more items failed than max_failures allows
	Leaves  bool // a retry found that it is not in its list any more
	Of      plan.Status
	OfWhy   plan.Reason // of the foreach task, if it is Stopped

	InPlan  bool
	State   plan.Lifecycle // of its plan
	Closing plan.Closing   // of its plan
	Finally bool           // it is one of finally
	Ending  plan.Lifecycle // of its plan, as plan.Plan has it
	Cancel  bool           // a person wants the foreach task ended
}

// Items is what a foreach task knows of its items.
type Items struct {
	Count  int
	Left   int // have not finished
	Failed int
	Seen   Outcome // the set of the outcomes of those that have finished

	Allowed int // how many may fail, as MaxFailures says
}

// Over reports whether more items of a foreach task with MaxFailures failed than may: no more of them start.
func (i *Items) Over() bool { return i.Failed > i.Allowed }

// Along is what a foreach task with Foreach.Each asks of the tasks that this names, its heads. The zero
// value is that of other tasks.
type Along struct {
	Is     bool    // it has heads
	Left   bool    // one of them has not finished
	Seen   Outcome // the set of the outcomes of those that have
	Items  int     // how many items a head has
	Differ bool    // two heads have different numbers of items
}

// See takes notice of a head. items is how many items it has if all of them are in, and 0 before. o is 0 for
// a head that has not finished. See reports whether the head counts for Seen and All of the Waiter, as
// other parents do: so does one without items. Each item then needs that head itself.
func (a *Along) See(items int, o Outcome) (counts bool) {
	a.Differ = a.Differ || items > 0 && a.Items > 0 && items != a.Items
	a.Is, a.Left, a.Seen = true, a.Left || o == 0, a.Seen|o
	a.Items = max(a.Items, items)
	return items == 0
}

// Ready reports whether a head has items, and all of its items are in.
func (a *Along) Ready() bool { return a.Items > 0 }

var errHeads = errors.New("the tasks that each names have different numbers of items")

// A Next is the next action of a store for a task.
type Next uint8

const (
	Leave  Next = iota // nothing: another event will bring the store back to the task
	Ready              // nothing before the plan runs; then look at the task again
	End                // write the step
	Skip               // write the step, with the reason why an item that the task needs is not made any more, if that is so
	Delay              // hold the task until its NotBefore
	Expand             // read the list of the foreach task, and begin to make its items
	Make               // continue to make the items
	Gather             // write the step, with the outputs of the items as the output
	Queue              // deliver the outputs of the parents, and queue the task
)

// Settle says what is to be done with a held or queued task. A store may ask at any time, and of any
// task. A task of finally is left alone as long as AwaitsEnd says so. For any other task, the first rule
// that applies decides:
//
//  1. A closed plan starts nothing: the task ends as Halted says. A foreach task whose items are in
//     goes on, and ends with the last of them. The items of a foreach task that a person cancelled
//     end by the next rule: the end of one that ran may have closed the plan.
//  2. The items of a foreach task that a person cancelled, or that ended before them, end as Dropped
//     says. So do those of one of which too many failed, as OverBudget says.
//  3. A queued task waits for its claim.
//  4. A task that is damaged in the store fails. An item that is not in its list any more ends as
//     LeavesList says.
//  5. A foreach task makes its items, then waits for them, and for the heads that it goes along with,
//     then ends as its items did. If a person cancelled it, it does not wait for the heads.
//  6. An item waits until all items are in.
//  7. The rule of the task, its When, decides whether it waits for more parents, is skipped, or runs.
//     Neither happens unless the plan runs. A task that may run waits for its NotBefore. A task
//     with Ran that is to be skipped ends as Barred says, unless it is a clean-up or may fail. A
//     foreach task whose heads have items makes its own once its other parents have finished, and
//     leaves the question to them, unless one of these parents answers it for all. The When of a task of
//     finally asks how the other tasks of the plan ended, once its parents have finished.
func Settle(w *Waiter) (Next, Step) {
	closed := w.InPlan && w.Closing != plan.Open
	switch {
	case w.AwaitsEnd():
		return Leave, Step{}
	case w.Item && w.Stopped && !(closed && w.Of.Finished()):
		return End, Dropped(w.Status, w.Ran, w.Of, w.OfWhy)
	case w.Item && w.Over && !closed:
		return End, OverBudget(w.Status, w.Ran)
	case closed && !w.Made:
		return End, Halted(w.Status, w.Ran, w.Closing)
	case w.Status != plan.Held:
		return Leave, Step{}
	case w.Damage != nil:
		return End, InputFailed(w.Status, w.Damage)
	case w.Leaves && (!w.InPlan || w.State == plan.PlanRunning):
		return End, LeavesList(w.Status)
	case w.Making:
		return Make, Step{}
	case w.Made && (w.Items.Left > 0 || w.Along.Left && !w.Cancel), w.Item && w.Alone:
		return Leave, Step{}
	case w.Made:
		return Gather, w.gather()
	}
	switch decision := w.decide(); {
	case decision == ToWait:
		return Leave, Step{}
	case w.InPlan && w.State != plan.PlanRunning:
		return Ready, Step{}
	case decision == ToSkip && w.Ran && bars(w.When, w.Allow):
		return End, Barred(w.Status)
	case decision == ToSkip:
		return Skip, Skipped(w.Status)
	case w.Along.Differ:
		return End, InputFailed(w.Status, errHeads)
	case w.Early:
		return Delay, Step{}
	case w.List:
		return Expand, Step{}
	}
	return Queue, to(w.Status, Step{Status: plan.Queued, Keep: true})
}

func (w *Waiter) decide() Decision {
	switch {
	case w.Finally:
		return DecideFinally(w.When, w.Ending, w.All)
	case !w.Along.Ready():
		return Decide(w.When, w.Seen, w.All)
	case w.Seen&^Waits(w.When) != 0:
		return ToSkip
	case !w.All:
		return ToWait
	}
	return ToRun
}

// gather says how a foreach task ends whose items have all finished. If some of the work is done and
// the rest was stopped, the foreach task counts as a task that was stopped while it ran. So it does if
// it has Ran of earlier items.
//
// Failures within MaxFailures do not fail the task. An item may have been skipped by its own attempt, and by
// Foreach.Each by its own When, which is no failure. The task is skipped if all items were. It is also
// skipped if one was and its When does not allow how a head ended, so that nothing below runs after a
// head that failed. In finally heads only order it.
func (w *Waiter) gather() Step {
	byPerson := w.Cancel || w.Closing.Stops()
	seen, s := w.Items.Seen, Step{Status: plan.Succeeded}
	if w.Items.Allowed > 0 && seen&OutcomeFailed != 0 && !w.Items.Over() {
		seen &^= OutcomeFailed
		s.Detail = fmt.Sprintf("with %d failures", w.Items.Failed)
		if w.Items.Failed == 1 {
			s.Detail = "with 1 failure"
		}
	}
	did := w.Ran || seen&OutcomeSucceeded != 0
	left := seen & (OutcomeCancelled | OutcomeSkipped)
	byItself := w.Closing == plan.Open || w.Along.Is && w.Closing != plan.ClosedByFailure
	if byItself {
		left &^= OutcomeSkipped
	}
	switch {
	case byPerson && seen&OutcomeFailed != 0,
		byPerson && left != 0 && did,
		w.Closing == plan.ClosedByFailure && left&OutcomeSkipped != 0 && did && seen&OutcomeFailed == 0:
		s = Step{Status: plan.Terminated, Reason: plan.ReasonCancelled, Detail: ByItems}
	case seen&OutcomeFailed != 0:
		s = Step{Status: plan.Failed, Reason: plan.ReasonItems, Detail: fmt.Sprintf("%d of %d items failed", w.Items.Failed, w.Items.Count)}
		if w.Items.Allowed > 0 {
			s.Detail += fmt.Sprintf(", and %d may", w.Items.Allowed)
		}
	case seen&OutcomeCancelled != 0:
		s = Step{Status: plan.Cancelled, Reason: plan.ReasonCancelled, Detail: "some of its items were cancelled"}
	case byItself && seen == OutcomeSkipped:
		s = Step{Status: plan.Cancelled, Reason: plan.ReasonSkipped, Detail: "all of its items were skipped"}
	case byItself && (w.Finally || w.Along.Seen&^Waits(w.When) == 0):
	case seen&OutcomeSkipped != 0:
		s = Step{Status: plan.Cancelled, Reason: plan.ReasonSkipped, Detail: "some of its items were skipped"}
	}
	return to(w.Status, s)
}
