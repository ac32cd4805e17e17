package plan

import (
	"math"
	"slices"
	"strconv"
)

// Status is where a task is in its life. The codes are stored and are never renumbered; they are those of Disbatch 4 and of the
// DEN 1.1 document (where held is "blocked"). Any code above 1 is a failure that the plugin chose.
type Status int32

const (
	Orphaned   Status = -6 // lost with its node, and not to be queued again
	Cancelled  Status = -5 // not run: by a person, or skipped; see Reason
	Held       Status = -4 // waits for parents, a delay, its items or a gate
	Terminated Status = -3 // stopped while it ran, or before its next attempt
	Queued     Status = -2 // ready, and nobody's
	Claimed    Status = -1 // a node's, not yet started
	Running    Status = 0  // the zero value: decoders must insist that the field is there
	Succeeded  Status = 1
	Failed     Status = 2 // and every code above

	// Unknown is what readers say of a status that is no code, as another program may have written it. It is never stored.
	Unknown Status = math.MinInt32

	// Skipped is what a sluice.Change says of a task that was cancelled because it is skipped. It is never
	// stored: a Task has Cancelled, and its State tells.
	Skipped Status = math.MinInt32 + 1
)

// next is the whole life cycle; CanBecome is its only reader. A held task can end without having
// run in three cases. It is skipped or cancelled, its inputs cannot be made, or it is a foreach
// task whose items have all finished or been stopped.
var next = map[Status][]Status{
	Held:       {Queued, Cancelled, Succeeded, Failed, Terminated},
	Queued:     {Claimed, Running, Cancelled, Terminated, Held},
	Claimed:    {Running, Queued, Held, Succeeded, Failed, Terminated, Orphaned, Cancelled},
	Running:    {Queued, Held, Succeeded, Failed, Terminated, Orphaned, Cancelled},
	Succeeded:  {Held},
	Failed:     {Held},
	Terminated: {Held},
	Cancelled:  {Held},
	Orphaned:   {Held, Queued},
}

// CanBecome reports whether a task may go from one status to the other. Failed stands for every
// code above 1. From a finished status only a retry leads away, to held. From orphaned a rescue
// does too, if another program orphaned a plan's task.
func (s Status) CanBecome(to Status) bool {
	return s.Valid() && to.Valid() && slices.Contains(next[min(s, Failed)], min(to, Failed))
}

// Valid reports whether the code means anything.
func (s Status) Valid() bool { return s >= Orphaned }

// Finished reports whether the task has ended, as far as its status tells.
func (s Status) Finished() bool {
	return s > 0 || s == Terminated || s == Cancelled || s == Orphaned || s == Skipped
}

// Wrong reports whether a task with the status went wrong: it failed, was stopped or is lost.
func (s Status) Wrong() bool { return s.Finished() && s != Succeeded && s != Cancelled && s != Skipped }

// Active reports whether a node has the task: claimed or running.
func (s Status) Active() bool { return s == Claimed || s == Running }

var statusWords = map[Status]string{
	Orphaned: "orphaned", Cancelled: "cancelled", Held: "held", Terminated: "terminated", Queued: "queued", Claimed: "claimed",
	Running: "running", Succeeded: "succeeded", Failed: "failed", Unknown: unknown, Skipped: "skipped",
}

// unknown is shown, and never read.
const unknown = "unknown"

// String returns the word for a status; a code above 2 is "failed", one that is not known prints as its number.
func (s Status) String() string {
	if w, ok := statusWords[min(s, Failed)]; ok {
		return w
	}
	return strconv.Itoa(int(s))
}

// A Reason says why a task ended as it did, where the status alone does not.
type Reason string

const (
	ReasonNone      Reason = ""
	ReasonSkipped   Reason = "skipped"   // not run because of its when, a parent, or a plan that was stopped
	ReasonCancelled Reason = "cancelled" // a person ended it, or a plan that was stopped
	ReasonGone      Reason = "gone"      // an item that a retry skipped because its list has it no more
	ReasonTimeout   Reason = "timeout"   // it ran longer than it may
	ReasonSignal    Reason = "signal"    // a signal ended it
	ReasonLost      Reason = "lost"      // its node died, or its output vanished, and it may not, or not again, be queued
	ReasonInput     Reason = "input"     // its inputs could not be made; not tried again
	ReasonOutput    Reason = "output"    // its output is not JSON, or too large, or may not be kept; not tried again
	ReasonItems     Reason = "items"     // some of its items failed
	ReasonError     Reason = "error"     // its plugin could not run it
	ReasonApproval  Reason = "approval"  // held: a person is to answer its question
	ReasonRejected  Reason = "rejected"  // a person did not approve
	ReasonFatal     Reason = "fatal"     // it failed so that its plan was closed; not tried again
)

// State is what [Task.State] returns of a task with that status, for that reason.
func State(s Status, r Reason) string {
	if s == Cancelled && (r == ReasonSkipped || r == ReasonGone) {
		return string(ReasonSkipped)
	}
	return s.String()
}
