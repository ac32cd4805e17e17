package rules

import (
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/plan"
)

// Lines that Sluice itself writes to a task's log, to separate its attempts where their numbers do
// not.
const (
	retriedText   = "retried by a person: attempts count from 1 again\n"
	givenBackText = "given back, since "
	stopsText     = givenBackText + "the node stops: this attempt does not count\n"
	notBegunText  = givenBackText + "its plugin could not begin: this attempt does not count\n"
	lacksText     = givenBackText + "this attempt did not begin, and does not count: "
	lossText      = "lost: this attempt does not count for retry\n"
)

// RetriedEntry is the entry that a retry by a person leaves in the log of a task that had been tried. It is of no attempt.
func RetriedEntry(at time.Time) plan.LogEntry {
	return plan.LogEntry{At: at, Stream: plan.System, Text: retriedText}
}

// GivenBackEntry is the last entry of an attempt whose node gives the task back: the next attempt has the same number.
func GivenBackEntry(at time.Time, attempt int) plan.LogEntry {
	return plan.LogEntry{At: at, Attempt: attempt, Stream: plan.System, Text: stopsText}
}

// NotBegunEntry is a GivenBackEntry for an attempt that could not begin. why is the detail of its
// ending. Without one its plugin is not there, or asks for another try.
func NotBegunEntry(at time.Time, attempt int, why string) plan.LogEntry {
	text := notBegunText
	if why != "" {
		text = lacksText + why + "\n"
	}
	return plan.LogEntry{At: at, Attempt: attempt, Stream: plan.System, Text: text}
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
	return e.Stream == plan.System && strings.HasPrefix(e.Text, givenBackText)
}
