package rules

import (
	"slices"

	"github.com/seed-1177d267/sluice/plan"
)

// FirstStatus is the status of a task that was submitted, or made as an item.
const FirstStatus = plan.Held

// Pending reports whether a task with the status is held or queued. It has not ended, and no node has
// it.
func Pending(s plan.Status) bool { return s == plan.Held || s == plan.Queued }

// Claimable reports whether a node may claim a task with the status.
func Claimable(s plan.Status) bool { return s == plan.Queued }

// Reports reports whether an attempt at a task with the status tells its progress.
func Reports(s plan.Status) bool { return s == plan.Running }

// StopsItems reports whether a foreach task was cancelled or stopped, so that its items do not start
// any more. cancel says that a person wants the task ended, and that the task still waits for items.
func StopsItems(s plan.Status, cancel bool) bool {
	return cancel || s == plan.Cancelled || s == plan.Terminated
}

// HasRun reports whether an attempt of the task began, and may have done a part of its work: the
// task has Ran, runs, or has ended and was not cancelled.
func HasRun(t *plan.Task) bool { return t.Ran || t.Status == plan.Running || !ShowsRan(t.Status) }

// SkippedItself reports whether an attempt of the task ended as skipped, and not a rule: before any attempt,
// or while the task waited for an answer.
func SkippedItself(t *plan.Task) bool {
	return OutcomeOfTask(t) == OutcomeSkipped && Tried(t.Attempt, t.Rescues) > 0 && !TellsStop(t.Detail)
}

// ShowsRan reports whether readers see the Ran of a task with the status. Other statuses say
// themselves that the task ran.
func ShowsRan(s plan.Status) bool { return !s.Finished() || s == plan.Cancelled }

// Selected reports whether a query for some statuses finds a task with the status. plan.Failed stands
// for every code above 1, and any other code for itself.
func Selected(s plan.Status, among []plan.Status) bool {
	return slices.Contains(among, s) || slices.Contains(among, min(s, plan.Failed))
}

// CountInQueue counts in the queue n more (or, negative, fewer) tasks with the status.
func CountInQueue(q *plan.Queue, s plan.Status, n int) {
	switch {
	case Claimable(s):
		q.Queued += n
	case s.Active():
		q.Active += n
	}
}
