package rules

import (
	"time"

	"github.com/seed-1177d267/sluice/plan"
)

// Lines that Sluice itself writes to a task's log, to separate its attempts where their numbers do
// not.
const (
	retriedText   = "retried by a person: attempts count from 1 again\n"
	givenBackText = "given back, since the node stops: this attempt does not count\n"
	notBegunText  = "given back, since its plugin could not begin: this attempt does not count\n"
	lossText      = "lost: this attempt does not count for retry\n"
)

// RetriedEntry is the entry that a retry by a person leaves in the log of a task that had been tried. It is of no attempt.
func RetriedEntry(at time.Time) plan.LogEntry {
	return plan.LogEntry{At: at, Stream: plan.System, Text: retriedText}
}

// GivenBackEntry is the last entry of an attempt whose node gives the task back: the next attempt has the same number.
func GivenBackEntry(at time.Time, attempt int) plan.LogEntry {
	return plan.LogEntry{At: at, Attempt: attempt, Stream: plan.System, Text: givenBackText}
}

// NotBegunEntry is a GivenBackEntry for a task that is given back since its plugin is not there, or could not begin.
func NotBegunEntry(at time.Time, attempt int) plan.LogEntry {
	return plan.LogEntry{At: at, Attempt: attempt, Stream: plan.System, Text: notBegunText}
}

// LossEntry is the last entry of an attempt that was lost with its node, or with its output. The next
// attempt writes it.
func LossEntry(at time.Time, attempt int) plan.LogEntry {
	return plan.LogEntry{At: at, Attempt: attempt, Stream: plan.System, Text: lossText}
}

// IsLoss reports whether the entry is a LossEntry.
func IsLoss(e *plan.LogEntry) bool { return e.Stream == plan.System && e.Text == lossText }

// IsRetried reports whether the entry is a RetriedEntry.
func IsRetried(e *plan.LogEntry) bool {
	return e.Stream == plan.System && e.Attempt == 0 && e.Text == retriedText
}

// IsGivenBack reports whether the entry is a GivenBackEntry or a NotBegunEntry.
func IsGivenBack(e *plan.LogEntry) bool {
	return e.Stream == plan.System && (e.Text == givenBackText || e.Text == notBegunText)
}
