package plan

import "time"

// Lines that Sluice itself writes to a task's log, to separate its attempts where their numbers do
// not.
const (
	retriedText   = "retried by a person: attempts count from 1 again\n"
	givenBackText = "given back, since the node stops: this attempt does not count\n"
	notBegunText  = "given back, since its plugin could not begin: this attempt does not count\n"
)

// RetriedEntry is the entry that a retry by a person leaves in the log of a task that had been tried. It is of no attempt.
func RetriedEntry(at time.Time) LogEntry { return LogEntry{At: at, Stream: System, Text: retriedText} }

// GivenBackEntry is the last entry of an attempt whose node gives the task back: the next attempt has the same number.
func GivenBackEntry(at time.Time, attempt int) LogEntry {
	return LogEntry{At: at, Attempt: attempt, Stream: System, Text: givenBackText}
}

// NotBegunEntry is a GivenBackEntry for a task that is given back since its plugin is not there, or could not begin.
func NotBegunEntry(at time.Time, attempt int) LogEntry {
	return LogEntry{At: at, Attempt: attempt, Stream: System, Text: notBegunText}
}

// Retried reports whether the entry is a RetriedEntry.
func (e *LogEntry) Retried() bool {
	return e.Stream == System && e.Attempt == 0 && e.Text == retriedText
}

// GivenBack reports whether the entry is a GivenBackEntry or a NotBegunEntry.
func (e *LogEntry) GivenBack() bool {
	return e.Stream == System && (e.Text == givenBackText || e.Text == notBegunText)
}
