package plan

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/seed-1177d267/sluice/internal/jsontext"
)

// A Result is how one attempt went, as its plugin says.
type Result struct {
	Status Status // Succeeded, Failed or above; Terminated if it was stopped
	Reason Reason
	Detail string
	Exit   *Exit
	Output json.RawMessage // nil: null
}

// Conclude returns the ending of an attempt: the end of the task, or another attempt. wait gives
// the delay after the failed attempt. A task that a person cancelled is not tried again; the store
// ensures that when it applies the ending. An output that is too large or not JSON fails the task
// for good. So does every result with ReasonInput or ReasonOutput, because the next attempt would
// end the same.
func Conclude(t *ClaimedTask, r Result, wait func(r Retry, attempt int) time.Duration) Ending {
	e := Ending{Claim: t.Claim, Status: r.Status, Reason: r.Reason, Detail: r.Detail, Exit: r.Exit, Output: r.Output}
	switch {
	case r.Status == Succeeded && len(r.Output) > MaxOutput:
		e.Status, e.Reason, e.Output = Failed, ReasonOutput, nil
		e.Detail = fmt.Sprintf("its output has more than the %d MiB that are kept: write a file and return its path", MaxOutput>>20)
	case r.Status == Succeeded && len(r.Output) > 0 && !jsontext.Valid(r.Output):
		e.Status, e.Reason, e.Output = Failed, ReasonOutput, nil
		e.Detail = fmt.Sprintf("its output is not JSON: %s; write one JSON value, a text in quotes", jsontext.Excerpt(r.Output))
	case r.Status == Succeeded && jsontext.Depth(r.Output, MaxOutputDepth) > MaxOutputDepth:
		e.Status, e.Reason, e.Output = Failed, ReasonOutput, nil
		e.Detail = fmt.Sprintf("its output has arrays or objects within each other, more than %d deep: what reads it could not", MaxOutputDepth)
	case r.Reason == ReasonInput, r.Reason == ReasonOutput:
	case r.Status > Succeeded && t.Attempt < t.Retry.Attempts:
		return Ending{Claim: t.Claim, Status: Held, Reason: r.Reason, Detail: r.Detail, Exit: r.Exit, Delay: wait(t.Retry, t.Attempt)}
	}
	if e.Status != Succeeded {
		e.Output = nil
	}
	return e
}

// Check refuses an ending whose status is none that a claim can end with.
func (e *Ending) Check() error {
	s := e.Status
	if e.Printed != nil && !s.Finished() {
		return fmt.Errorf("task %s goes on, and has no results yet", e.Task)
	}
	if s == Queued || s == Held || s.Valid() && s.Finished() {
		return nil
	}
	return fmt.Errorf("task %s cannot end as %v", e.Task, e.Status)
}

// FailedByItems reports whether a task with that status and reason is a foreach task that failed because some of its items did. These are
// what there is to tell, list and count of it: who tells failures leaves it out.
func FailedByItems(s Status, r Reason) bool { return s >= Failed && r == ReasonItems }
