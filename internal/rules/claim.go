package rules

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/plan"
)

// A Claim is what a rule asks of a claimed or running task.
type Claim struct {
	Status  plan.Status
	Cancel  bool         // a person wants it ended
	Ran     bool         // as plan.Task has it
	List    bool         // a foreach task: an attempt only reads its list, which has no effect
	Closing plan.Closing // of its plan, as far as the store knows
}

// Ended says what an ending makes of a task whose claim holds. The first rule that applies decides:
//
//  1. The task would go on, and a person cancelled it: it is stopped.
//  2. The ending has a finished status: so the task ends.
//  3. A node found the items of a foreach task, and these are too many: the task fails. If there are
//     none, the task succeeds with an empty list.
//  4. The plan of the task is closed: the task is not started again, and ends as Halted says.
//  5. The claim is given back: the task is queued, and the attempt does not count. If the node could
//     not begin the attempt, the Detail of the ending says why, and the task did not run. If the
//     attempt is lost all the same (plan.ReasonLost), it does count, and as a loss.
//  6. The node found items: the task is held until they have finished.
//  7. Another attempt follows: the task is held for the delay, or queued at once if there is none.
//
// Ended does not know whether the claim holds, which is the caller's to check.
func Ended(c Claim, e *protocol.Ending) Step {
	var s Step
	lost := e.Status == plan.Queued && e.Reason == plan.ReasonLost
	back := e.Status == plan.Queued && !lost
	unbegun := back && e.Detail != ""
	ran := c.Status == plan.Running && !c.List && !unbegun && e.Reason != plan.ReasonApproval // to ask has no effect
	if e.Expand {
		s = Listed(c.Status, e.Items, nil, e.Detail)
	}
	switch {
	case c.Cancel && !e.Status.Finished():
		if s = Stopped(c.Status, c.Ran, c.Closing); !back {
			s.Detail = cmp.Or(e.Detail, s.Detail)
		}
	case e.Status.Finished():
		s = Step{Status: e.Status, Reason: e.Reason, Detail: e.Detail, Output: e.Output}
	case e.Expand && s.Finishes():
	case c.Closing != plan.Open:
		if s = Halted(c.Status, c.Ran || ran && !e.Expand, c.Closing); back {
			s.Attempts = -1
		}
	case back:
		s = Step{Status: plan.Queued, Keep: !unbegun, Detail: e.Detail, Attempts: -1, Ran: ran}
	case e.Expand:
	case e.Delay > 0:
		s = Step{Status: plan.Held, Reason: e.Reason, Detail: e.Detail, Delay: e.Delay, Ran: ran}
	default:
		s = Step{Status: plan.Queued, Reason: e.Reason, Detail: e.Detail, Ran: ran}
	}
	if !back {
		s.Attempted, s.Exit = true, e.Exit
	}
	if lost {
		s.Rescues = 1
	}
	return to(c.Status, s)
}

// GivenBack says what becomes of a claim that its node does not know of, since the answer to its turn
// was lost. It is as if the node had given the claim back.
func GivenBack(c Claim) Step { return Ended(c, &protocol.Ending{Status: plan.Queued}) }

// Listed says what becomes of a foreach task whose items are known. The task is held while it makes
// them. It ends if they cannot be made (why), are too many, or there are none. none tells people why
// there are none.
func Listed(was plan.Status, items []json.RawMessage, why error, none string) Step {
	switch tooMany := CheckItems(len(items)); {
	case why != nil:
		return InputFailed(was, why)
	case tooMany != nil:
		return InputFailed(was, tooMany)
	case len(items) == 0:
		return NoItems(was, none)
	}
	return Step{Status: plan.Held, Items: items}
}

// ListedAlong is Listed for a foreach task whose heads may make no more items. Its items are those of the
// heads, which the store reads as it makes the items: those of the step are empty.
func ListedAlong(was plan.Status, a *Along) Step {
	return Listed(was, make([]json.RawMessage, a.Items), nil, "no items: what it goes along with has none")
}

// NoItems ends a foreach task that has no items. detail says why, for people.
func NoItems(was plan.Status, detail string) Step {
	return to(was, Step{Status: plan.Succeeded, Detail: detail, Output: json.RawMessage("[]"), Empty: true})
}

// A Loss is what a rule asks of a task whose node is gone.
type Loss struct {
	Claim
	InPlan     bool
	Definition *plan.Definition
	Queue      plan.OnLost // of the task's queue, as the queue is now
	Rescues    int         // earlier losses
	Uncounted  bool        // another program has the claim, which added nothing to the task's Attempt
	Why        string      // for people: how the attempt was lost; default: its node died
}

// Lost says what becomes of a claimed or running task whose node is gone, or whose output is. A task that was only
// claimed had no effect yet: it is queued again, and neither the loss nor the attempt counts. The
// task says whether it may run again after it ran, then its queue does. If neither does, a task of
// a plan may run again. Each loss of a task that may run again is counted, and after MaxRescues of
// them the next loss is final. A task whose plan is closed is not queued again, and ends as Halted says.
//
// A task that another program orphaned counts as one that ran: that program knows nothing of plans.
func Lost(l Loss) Step {
	if l.Status == plan.Orphaned {
		l.Status = plan.Running
	}
	ran := l.Status == plan.Running
	switch {
	case l.Cancel && ran:
		s := Stopped(l.Status, true, l.Closing)
		s.Detail, s.Attempted = "its node died after it was cancelled", true
		return s
	case l.Cancel:
		return Stopped(l.Status, l.Ran, l.Closing)
	case ran && l.once():
		return l.orphaned("and it is not to run twice")
	case ran && l.Rescues >= cmp.Or(l.Definition.MaxRescues, plan.DefaultRescues):
		return l.orphaned(fmt.Sprintf("for the %s time", ordinal(l.Rescues+1)))
	}
	s := to(l.Status, Step{Status: plan.Queued, Reason: plan.ReasonLost, Detail: cmp.Or(l.Why, lostText), Keep: !ran, Ran: ran && !l.List})
	if l.Closing != plan.Open {
		s = Halted(l.Status, l.Ran || ran && !l.List, l.Closing)
	}
	switch {
	case ran:
		s.Rescues, s.Attempted = 1, true
		if l.Uncounted {
			s.Attempts = 1
		}
	case !l.Uncounted:
		s.Attempts = -1
	}
	return s
}

// A node that lost touch, for instance because the disk of its store was full, looks the same.
const lostText = "its node or task runner died, or lost touch with the store, while it ran"

// once reports whether the task must not run twice.
func (l *Loss) once() bool {
	said := cmp.Or(l.Definition.OnLost, l.Queue)
	return said == plan.OnLostFail || said == plan.OnLostDefault && !l.InPlan
}

func (l *Loss) orphaned(so string) Step {
	return to(plan.Running, Step{Status: plan.Orphaned, Reason: plan.ReasonLost, Attempted: true, Detail: cmp.Or(l.Why, lostText) + ", " + so})
}

func ordinal(n int) string {
	switch {
	case n%100/10 == 1:
		return fmt.Sprintf("%dth", n)
	case n%10 == 1:
		return fmt.Sprintf("%dst", n)
	case n%10 == 2:
		return fmt.Sprintf("%dnd", n)
	case n%10 == 3:
		return fmt.Sprintf("%drd", n)
	}
	return fmt.Sprintf("%dth", n)
}

// Claimed gives a queued task to a node. With start the attempt begins at once, inside the node.
func Claimed(start bool) Step {
	s := Step{Status: plan.Claimed, Keep: true, Attempts: 1}
	if start {
		s.Status = plan.Running
	}
	return to(plan.Queued, s)
}

// Started begins the attempt of a claimed task.
func Started() Step { return to(plan.Claimed, Step{Status: plan.Running, Keep: true}) }
