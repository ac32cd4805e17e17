package protocol

import (
	"encoding/json"
	"time"

	"github.com/seed-1177d267/sluice/plan"
)

// A Token is what a claim is fenced by: a store mints a new one for each claim, or for all claims of one turn.
type Token [12]byte

// A Claim is one node's right to one attempt of a task. Every write of ours about that attempt names it.
type Claim struct {
	Task    plan.TaskID
	Attempt int
	Token   Token
}

// A ClaimedTask is a task as its node gets it.
type ClaimedTask struct {
	Claim
	Plan      plan.PlanID
	PlanName  string // with its run number, as in "nightly#3"; may be empty in stores that would have to look it up
	Name      string
	Queue     plan.QueueID
	QueueName string
	Plugin    string
	Settings  plan.QueueSettings // of its queue, at the claim
	plan.Definition
	Params      json.RawMessage // with needs and args, unless ByReference
	ByReference bool            // the parents' outputs are too large to copy: ask the store for Inputs
	Reason      plan.Reason     // of the attempt before: plan.ReasonLost if it was lost
	Rescues     int
	Index       int
}

// An Ending is what becomes of a claim: the task's end, a delay, or the queue again.
type Ending struct {
	Claim
	// Status is a finished status, Held (again after Delay), or Queued. Queued gives the task back, and
	// the attempt does not count. With plan.ReasonLost it is lost instead, and with any other Detail it
	// did not begin.
	Status plan.Status
	Reason plan.Reason
	Detail string          // for people, at most a few lines
	Exit   *plan.Exit      //
	Output json.RawMessage // valid JSON of at most plan.MaxOutput bytes; nil: null
	Delay  time.Duration   // with Held
	Items  []json.RawMessage
	Expand bool            // with Held: the claim was for making the items of a foreach task, and Items are they; without any, Detail is plan.Foreach.NoItems
	Log    []plan.LogEntry // what was captured and not yet appended
	// Printed is all that the attempt printed, where GFS.Along lets it go with a finished status; nil says nothing of it.
	Printed *Printed
}

// Printed is all that an attempt printed: what PutResults keeps, where it is small. A nil stream is null.
type Printed struct {
	Stdout, Stderr []byte
}

// Of returns the output on the stream.
func (p *Printed) Of(s plan.Stream) []byte {
	if s == plan.Stderr {
		return p.Stderr
	}
	return p.Stdout
}

// Reached is the progress of the attempt that a claim is of.
type Reached struct {
	Claim
	plan.Progress
}
