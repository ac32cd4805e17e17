package rules

import (
	"time"

	"github.com/seed-1177d267/sluice/plan"
)

// AuditEvery is how often a store checks the waiting tasks without any note of remaining work.
const AuditEvery = 3 * time.Minute

// AuditDue reports whether the next audit is due after the last one. A clock that was set back does not put it off.
func AuditDue(last, now time.Time) bool { return now.Sub(last) >= AuditEvery || now.Before(last) }

// A Waiting is what an audit knows of a task that is held.
type Waiting struct {
	When       plan.When
	Seen       plan.Outcome // of its parents that have finished
	All        bool         // all of them have
	Submitting bool         // its plan is being submitted
	Delayed    bool         // it is marked as waiting for an instant,
	NotBefore  time.Time    // this one
	Items      bool         // it is a foreach task that waits for its items,
	Item       bool         // or it is an item,
	Making     bool         // and the items are still being made or queued
	Expanded   bool         // all of them are in
	ItemsHeld  bool         // some of them were not let run
	ItemsLeft  bool         // some of them have not finished
}

// A Hold is what a held task waits for.
type Hold int

const (
	ForNothing Hold = iota // so somebody has lost what was to be done next
	ForParents             // some of them
	ForInstant             // NotBefore
	ForItems               // of a foreach task: that they are made, queued or end
	ForOthers              // of an item: that all of them are in, and queued
	ForPlan                // that it is ready
)

// For says what a held task waits for. It goes by the states of tasks and plans, and not by Delayed, which is a mark.
func (w *Waiting) For() Hold {
	switch {
	case w.Items && (w.Making || w.Expanded && !w.ItemsHeld && w.ItemsLeft):
		return ForItems
	case w.Items:
		return ForNothing
	case w.Item && (w.Making || !w.Expanded):
		return ForOthers
	}
	switch d := plan.Decide(w.When, w.Seen, w.All); {
	case d == plan.Wait:
		return ForParents
	case w.Submitting:
		return ForPlan
	case d == plan.Run && !w.NotBefore.IsZero():
		return ForInstant
	}
	return ForNothing
}

// Neglected reports whether a held task waits for nothing that will happen without an audit.
func (w *Waiting) Neglected() bool {
	if w.Delayed {
		return w.NotBefore.IsZero()
	}
	return w.For() == ForNothing
}
