package rules

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/seed-1177d267/sluice/plan"
)

// A Step is one change of a task's status. A store writes all of it, or nothing.
//
// Some fields follow from the status alone. A task that finishes gets its end time, and loses
// NotBefore, Cancel and its claim. A task that is held or queued loses its node, its claim and its
// output. So does a task that is cancelled lose its node, since it was not run. Every step sets the
// time of the last change.
type Step struct {
	Status plan.Status

	// Reason and Detail replace those of the task, also where they are empty. With Keep they stay as
	// they are, since nothing happened that they would tell of.
	Reason plan.Reason
	Detail string
	Keep   bool

	// Attempted: an attempt ended, and Exit is its exit status, nil if it left none. Else the exit
	// status of the attempt before stays.
	Attempted bool
	Exit      *plan.Exit

	Output json.RawMessage // of a task that finishes; nil is null

	Attempts int // is added to the task's Attempt: -1 where the attempt does not count
	Rescues  int // is added to the task's Rescues

	Nobody bool // the task ends as if its node had given it back before, so that it names none

	Ran   bool              // Status is plan.Held or plan.Queued: the task gets Ran, which only a retry takes away
	Delay time.Duration     // Status is plan.Held: until the next attempt; else 0
	Items []json.RawMessage // Status is plan.Held: the items that the foreach task is to make; else nil
	Empty bool              // the foreach task ends, since it has no items: they count as made

	// Reset: the task also loses Attempt, Rescues, Cancel, Started, Ended, Progress, the outputs of its
	// parents in its params, and Ran unless the step says it. With, unless it is nil, replaces its
	// definition, params and queue.
	// Noted: its log gets a RetriedEntry.
	Reset bool
	// Leaves: it is an item that is to end as LeavesList says.
	With   *plan.Task
	Noted  bool
	Leaves bool
}

// Finishes reports whether the step ends the task.
func (s *Step) Finishes() bool { return s.Status.Finished() }

// Begins reports whether a task begins with the step: no node had the foreach task, and it makes its
// items. Started is then the instant of the step.
func (s *Step) Begins(was plan.Status) bool { return was == plan.Held && len(s.Items) > 0 }

// LosesNode reports whether the task names no node after the step.
func (s *Step) LosesNode() bool { return Pending(s.Status) || s.Status == plan.Cancelled || s.Nobody }

// Plain reports whether the step ends an attempt that succeeded, and left at most an output. Most
// tasks end so, and a store may write many of them together.
func (s *Step) Plain() bool {
	return s.Status == plan.Succeeded && s.Reason == "" && s.Detail == "" && s.Attempted && s.Exit == nil
}

// to returns the step, of a task that has the status was. A rule that leads where no task may go is a
// defect of this package: to panics.
func to(was plan.Status, s Step) Step {
	if !was.CanBecome(s.Status) {
		panic(fmt.Sprintf("rules: a task that is %v cannot become %v", was, s.Status))
	}
	return s
}

// InputFailed ends a task for which the parents' outputs, or the items, cannot be made.
func InputFailed(was plan.Status, why error) Step {
	return to(was, Step{Status: plan.Failed, Reason: plan.ReasonInput, Detail: why.Error()})
}

// NotKept ends an attempt that the store cannot keep with what the step says: its output, or the
// items that it found.
func NotKept(was plan.Status, s *Step, reason plan.Reason, why error) Step {
	return to(was, Step{Status: plan.Failed, Reason: reason, Detail: why.Error(), Attempted: s.Attempted, Exit: s.Exit})
}

// Skipped ends a held task whose parents do not let it run.
func Skipped(was plan.Status) Step {
	return to(was, Step{Status: plan.Cancelled, Reason: plan.ReasonSkipped})
}

// Barred ends a held task that ran before a retry, and that its parents do not let run again. The task
// is terminated, which counts as its failure, so that what cleans up after it runs.
func Barred(was plan.Status) Step {
	return to(was, Step{Status: plan.Terminated, Reason: plan.ReasonCancelled, Detail: ByParents, Nobody: true})
}

// bars reports whether a task with the rule that ran before a retry is barred, and not skipped, where
// its parents do not let it run. A clean-up is not, since its question was asked again. Nor is a task
// with continue-on-error, since what is below it would run.
func bars(w plan.When, allow bool) bool { return !TellsResults(w) && !allow }

// ByPerson is the detail of a task that ran and that a person stopped; ByFailure that of any task
// whose plan a failure stopped; ByTimeout that of any task that was stopped, or did not start, since the time of its plan was over; ByForeach that of an item that ran and whose foreach task failed;
// ByBudget that of an item that OverBudget ends;
// ByItems that of a foreach task that was stopped with some of its items, by a person or a failure;
// ByParents that of a task that ends as Barred says.
const (
	ByPerson  = "a person stopped it"
	ByFailure = "the plan was stopped by a failure"
	ByTimeout = "the time of the plan was over"
	ByForeach = "its foreach task ended before it did"
	ByBudget  = "more items failed than max_failures allows"
	ByItems   = "it was stopped before all of its items had ended"
	ByParents = "it ran before a retry, and its parents do not let it run again"
)

// TellsStop reports whether the detail of a task that was stopped says why. Any other detail of such
// a task is from its attempt.
func TellsStop(detail string) bool {
	switch detail {
	case ByPerson, ByFailure, ByTimeout, ByForeach, ByBudget, ByItems, ByParents:
		return true
	}
	return false
}

// Halted ends a task that does not end by itself. Its plan closed for that reason, or a person
// cancelled the task (plan.ClosedByPerson). A task that ran is terminated, which counts as its
// failure, even if it waits for the next attempt, or has Ran from before a retry. Any other task is
// cancelled, or skipped if its plan closed by a failure.
func Halted(was plan.Status, ran bool, why plan.Closing) Step {
	s := Step{Status: plan.Cancelled, Reason: plan.ReasonCancelled}
	if ran {
		s.Status, s.Detail, s.Nobody = plan.Terminated, ByPerson, true
	}
	switch why {
	case plan.ClosedByTimeout:
		s.Detail = ByTimeout
	case plan.ClosedByFailure:
		if s.Detail = ByFailure; !ran {
			s.Reason = plan.ReasonSkipped
		}
	}
	return to(was, s)
}

// Stopped ends a claim that a person cancelled, or the time of its plan (plan.ClosedByTimeout), if the task
// would otherwise continue. ran says that an earlier attempt ran.
func Stopped(was plan.Status, ran bool, why plan.Closing) Step {
	if why != plan.ClosedByTimeout {
		why = plan.ClosedByPerson
	}
	s := Halted(was, ran || was == plan.Running, why)
	s.Nobody = s.Nobody && was != plan.Running
	return s
}

// EndsItems reports whether a foreach task that has items, and finished so, ended before they did.
func EndsItems(s plan.Status, why plan.Reason) bool {
	return StopsItems(s, false) || s == plan.Failed && why == plan.ReasonInput
}

// OverBudget ends a held or queued item of a foreach task of which more items failed than max_failures
// allows. An item that ran counts as stopped, and any other one as skipped.
func OverBudget(was plan.Status, ran bool) Step {
	s := Dropped(was, ran, plan.Failed, plan.ReasonItems)
	s.Detail = ByBudget
	return s
}

// Dropped ends a held or queued item. The foreach task ended before the item, or a person cancelled
// the foreach task while it waits for its items. of and why are the foreach task's status and reason.
// The item ends as Halted says, but is skipped if it did not run and no person ended the foreach task.
func Dropped(was plan.Status, ran bool, of plan.Status, why plan.Reason) Step {
	s := Halted(was, ran, plan.ClosedByPerson)
	switch byPerson := of != plan.Failed && why != plan.ReasonSkipped; {
	case byPerson:
	case ran:
		s.Detail = ByForeach
	default:
		s.Reason = plan.ReasonSkipped
	}
	return s
}
