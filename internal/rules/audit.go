package rules

import "time"

// AuditEvery is how often a store checks the waiting tasks without any note of remaining work.
const AuditEvery = 3 * time.Minute

// AuditDue reports whether the next audit is due after the last one. A clock that was set back does not put it off.
func AuditDue(last, now time.Time) bool { return now.Sub(last) >= AuditEvery || now.Before(last) }

// A Hold is what a held task waits for.
type Hold int

const (
	ForNothing Hold = iota // so somebody has lost what was to be done next
	ForParents             // some of them
	ForInstant             // NotBefore
	ForItems               // of a foreach task: that they are made, queued or end
	ForOthers              // of an item: that all of them are in, and queued
	ForPlan                // that it is ready
	ForEnd                 // of a task of finally: that all other tasks of its plan end
)

// For says what a held task waits for, by the states of tasks and plans. Early means that the task
// has a NotBefore. noted means that a note of work exists by which the items of the foreach task
// are made or queued, or the item is queued. Without that note nobody does it.
func (w *Waiter) For(noted bool) Hold {
	next, _ := Settle(w)
	switch {
	case w.AwaitsEnd():
		return ForEnd
	case noted && (w.Making || w.Made), next == Leave && w.Made:
		return ForItems
	case w.Item && (noted || w.Alone):
		return ForOthers
	case next == Leave:
		return ForParents
	case next == Ready:
		return ForPlan
	case next == Delay:
		return ForInstant
	}
	return ForNothing
}
