package rules

import (
	"fmt"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/jsontext"
	"github.com/seed-1177d267/sluice/plan"
)

// Tried returns how many of the attempts of Retry a task has used up. attempts and rescues count
// from the task's begin or its last retry. An attempt that was lost with its node uses up none.
func Tried(attempt, rescues int) int { return attempt - rescues }

// Most returns how many attempts a task has at most, with those that were lost: what Attempt is shown against.
func Most(attempts, rescues int) int { return attempts + rescues }

// Conclude returns the ending of an attempt: the end of the task, or another attempt, if the task has
// not used up those of Retry. wait gives the delay after the failed attempt; the result's After may
// make it longer. A task that a person cancelled is not tried again; the store ensures that when it
// applies the ending. An output that is too large or not JSON fails the task for good. So does every
// result that is Final, or has ReasonInput or ReasonOutput, because the next attempt would end the
// same, and every failure that the task's Retry leaves out by On and NotOn. A result that is Fatal, which
// also closes the plan, has ReasonFatal from then on. An exit status of SkipOn ends the attempt as skipped,
// before anything else is asked of the failure. Halves of surrogate pairs in an output are replaced.
func Conclude(t *protocol.ClaimedTask, r plan.Result, wait func(r plan.Retry, tried int) time.Duration) protocol.Ending {
	tried := Tried(t.Attempt, t.Rescues)
	e := protocol.Ending{Claim: t.Claim, Status: r.Status, Reason: r.Reason, Detail: r.Detail, Exit: r.Exit, Output: r.Output}
	switch {
	case r.Status == plan.Succeeded && len(r.Output) > plan.MaxOutput:
		e.Status, e.Reason, e.Output = plan.Failed, plan.ReasonOutput, nil
		e.Detail = fmt.Sprintf("its output has more than the %d MiB that are kept: write a file and return its path", plan.MaxOutput>>20)
	case r.Status == plan.Succeeded && len(r.Output) > 0 && !jsontext.Valid(r.Output):
		e.Status, e.Reason, e.Output = plan.Failed, plan.ReasonOutput, nil
		e.Detail = fmt.Sprintf("its output is not JSON: %s; write one JSON value, a text in quotes", jsontext.Excerpt(r.Output))
	case r.Status == plan.Succeeded && jsontext.Depth(r.Output, plan.MaxOutputDepth) > plan.MaxOutputDepth:
		e.Status, e.Reason, e.Output = plan.Failed, plan.ReasonOutput, nil
		e.Detail = fmt.Sprintf("its output has arrays or objects within each other, more than %d deep: what reads it could not", plan.MaxOutputDepth)
	case r.Status > plan.Succeeded && r.Exit != nil && t.SkipOn.Have(r.Reason, r.Exit):
		e.Status, e.Reason = plan.Cancelled, plan.ReasonSkipped
		e.Detail = fmt.Sprintf("nothing to do: it ended with status %d, which skip_on has", r.Exit.Code)
	case r.Fatal && r.Status > plan.Succeeded:
		e.Reason = plan.ReasonFatal
	case r.Final, r.Reason == plan.ReasonInput, r.Reason == plan.ReasonOutput:
	case r.Status > plan.Succeeded && tried < t.Retry.Attempts && !retries(&t.Retry, &r):
		e.Detail = strings.TrimPrefix(CutDetail(r.Detail)+"; its retry leaves out such a failure", "; ")
	case r.Status > plan.Succeeded && tried < t.Retry.Attempts:
		delay := max(wait(t.Retry, tried), min(r.After, plan.MaxAfter))
		return protocol.Ending{Claim: t.Claim, Status: plan.Held, Reason: r.Reason, Detail: r.Detail, Exit: r.Exit, Delay: delay}
	}
	if e.Status != plan.Succeeded {
		e.Output = nil
	}
	e.Output = jsontext.Whole(e.Output)
	return e
}

// retries reports whether a retry takes the way in which an attempt failed.
func retries(by *plan.Retry, r *plan.Result) bool {
	if by.On != "" {
		return by.On.Have(r.Reason, r.Exit)
	}
	return !by.NotOn.Have(r.Reason, r.Exit)
}

// CutDetail returns the detail of an attempt as it is kept: at most plan.MaxDetail bytes, with a mark
// at the end of a longer one. A database may refuse to keep a very long one.
func CutDetail(detail string) string {
	const mark = "…"
	if len(detail) <= plan.MaxDetail {
		return detail
	}
	return strings.ToValidUTF8(detail[:plan.MaxDetail-len(mark)], "") + mark
}

// CheckEnding refuses an ending whose status is none that a claim can end with.
func CheckEnding(e *protocol.Ending) error {
	s := e.Status
	if e.Printed != nil && !s.Finished() {
		return fmt.Errorf("task %s goes on, and has no results yet", e.Task)
	}
	if Pending(s) || s.Valid() && s.Finished() {
		return nil
	}
	return fmt.Errorf("task %s cannot end as %v", e.Task, e.Status)
}

// FailedByItems reports whether a task with that status and reason is a foreach task that failed because some of its items did. These are
// what there is to tell, list and count of it: who tells failures leaves it out.
func FailedByItems(s plan.Status, r plan.Reason) bool {
	return s >= plan.Failed && r == plan.ReasonItems
}
