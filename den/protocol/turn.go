package protocol

import (
	"time"

	"github.com/seed-1177d267/sluice/plan"
)

// DefaultBudget is how many documents one turn changes at most, beyond the endings it is handed: about 10 ms on SQLite.
const DefaultBudget = 1000

// A Turn is one round of a node's loop: what ended is finished, children are released, what fits is claimed.
type Turn struct {
	Instance plan.InstanceID
	Ended    []Ending       // what ended since the last turn
	Slots    int            // how many tasks the node can take; 0: claim nothing
	Plugins  []string       // whose queues it serves,
	Active   []plan.QueueID // and of these only those, if there are any,
	Ignored  []plan.QueueID // else all but those
	Plan     plan.PlanID    // claim tasks of this plan only, if it is not none
	Start    bool           // tasks go to running at once: the node starts them inside itself
	Budget   int            // 0: DefaultBudget
	Shares   *Shares        // what the node has started so far; nil: nothing is known
	Running  Tally          // how many tasks the node runs of each queue
}

// Threads returns how many tasks the node runs and can take.
func (t *Turn) Threads() int {
	threads := t.Slots
	for _, n := range t.Running {
		threads += n
	}
	return threads
}

// Serves reports whether the turn, of an instance of the node, may claim tasks of the queue, as plan.Instance.Serves has it.
func (t *Turn) Serves(q *plan.Queue, n plan.NodeName) bool {
	return (&plan.Instance{Node: n, Plugins: t.Plugins, Active: t.Active, Ignored: t.Ignored}).Serves(q)
}

// An EndedPlan is how a plan ended: succeeded, failed or cancelled. A retry may have begun it again since.
type EndedPlan struct {
	ID    plan.PlanID
	State plan.Lifecycle
}

// Turned is what a turn did.
type Turned struct {
	Lost    []plan.TaskID // endings that were refused, since the claim was no longer the caller's
	Claimed []ClaimedTask // by claim order: rank, then oldest
	Queued  int           // tasks that this turn queued
	More    bool          // release work is left: turn again at once
	Ended   []EndedPlan   // plans that ended with this turn
	Over    bool          // the turn's Plan has ended or was deleted, by anybody
	Refused []string      // which tasks could not be claimed or ended as they should be, and why: for the log
	Delay   time.Duration // until the first delay that this turn began is over; 0: it began none
	Rest    time.Duration // until the rate of a queue with work lets the next task start; 0: no rate holds one up
}

// A Take asks to move a task to another instance of its node's name, a runner, which runs it. The
// node has claimed the task and has not started it.
type Take struct {
	Instance plan.InstanceID
	Task     plan.TaskID
	Start    bool // it goes to running at once
}

// A Sweep asks a store to put right what nothing else will.
type Sweep struct {
	Instance plan.InstanceID
	Plan     plan.PlanID   // as in its turns
	Holding  []plan.TaskID // every task that the instance has in memory
	Budget   int           // 0: DefaultBudget
}

// Swept is what a sweep did.
type Swept struct {
	Queued  int           // delays over, claims given back that the instance did not know of, tasks of vanished instances
	Ended   []EndedPlan   // plans that ended with this sweep
	Over    bool          // as of a turn
	More    bool          // sweep or turn again at once
	Refused []string      // as of Turned
	Pending time.Duration // until the next delay, or the time of the next plan, is over; 0: none is known
}

// A Beat says that an instance lives.
type Beat struct {
	Instance plan.InstanceID
	Plan     plan.PlanID // as in its turns
	Running  Tally       // how many tasks it runs of each queue, for who looks on
	Plugins  []string    // those that it has now, if they are others than it registered with, or a beat said; nil: they are the same

	// Pauses are of all queues with tasks that it could not begin, in place of what a beat said before; nil: nothing is new.
	Pauses []plan.Pause

	// Progress is of all its attempts that said how far they are, in place of what a beat said before; nil: nothing is new.
	Progress []Reached
}

// A Tally counts tasks by their queues.
type Tally map[plan.QueueID]int

// Beaten is what the store has to tell an instance.
type Beaten struct {
	Cancel     []plan.TaskID // claimed or running tasks of the instance that a person wants ended
	MaxThreads int           // the node's limit over all its instances as a person set it, which turns keep to; < 0: none
	Wake       int64         // changes when somebody queued more than it can run
	Over       bool          // as of a turn

	// Due is how long it is until the first schedule is due, below 0 if that was before; nil: no
	// schedule will be due.
	Due *time.Duration
}

// A Role is work that one instance of all does.
type Role string

const (
	RoleBalance  Role = "balance"  // it sets the threads of queues by the balance document
	RoleSchedule Role = "schedule" // it starts what schedules say
	RoleRoll     Role = "roll"     // it hands over finished tasks before they are deleted
)

// Expired is the number of deleted objects whose time to keep was over.
type Expired struct {
	Plans int  // with all their tasks
	Tasks int  // of no plan
	More  bool // more is to be deleted now
}
