package rules

import (
	"time"

	"github.com/seed-1177d267/sluice/plan"
)

// OutputWait is how long children wait for the output of a task that a program of another maker ended. The wait begins when a node of
// ours first saw the end.
const OutputWait = 10 * time.Second

// An OthersEnd is the end of a task as a program of another maker wrote it. Disbatch's task runner writes the status first, and what the
// task printed, with complete, in a second write. It writes no time in either.
type OthersEnd struct {
	Status   plan.Status
	Complete bool      // the output is in
	Noticed  time.Time // when a node of ours first saw the end, before it was complete; zero: none has
	Claimed  time.Time // the last time that the program wrote: Disbatch's programs write that of the claim
}

// Counts reports whether children may count on the end: its output is in, or it did not come within OutputWait. A task that another program
// gave up is a loss, which a sweep judges.
func (e *OthersEnd) Counts(now time.Time) bool {
	switch {
	case !e.Status.Finished():
		return false
	case e.Complete:
		return true
	}
	return !e.GivenUp() && !e.Noticed.IsZero() && now.Sub(e.Noticed) >= OutputWait
}

// GivenUp reports whether the other program gave the task up.
func (e *OthersEnd) GivenUp() bool { return e.Status == plan.Orphaned && !e.Complete }

// StatusOf returns the status that a number stands for, as another program may have written it. Any
// number above 1 that is no code is a failure as well.
func StatusOf(n float64, isCode bool) plan.Status {
	switch {
	case isCode:
		return plan.Status(n)
	case n > float64(plan.Succeeded):
		return plan.Failed
	}
	return plan.Unknown
}

// Notice reports whether a node that sees the end now has to note when it did.
func (e *OthersEnd) Notice() bool {
	return e.Status.Finished() && !e.GivenUp() && !e.Complete && e.Noticed.IsZero()
}

// Times returns when the task began and ended; now is when it is asked. A zero start is unknown: a program that does not say complete is
// none of Disbatch 4, and may write times at any step.
func (e *OthersEnd) Times(now time.Time) (started, ended time.Time) {
	if ended = e.Noticed; ended.IsZero() {
		ended = now
	}
	if e.Complete && !e.Claimed.After(ended) {
		started = e.Claimed
	}
	return started, ended
}
