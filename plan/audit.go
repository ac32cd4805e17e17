package plan

import "time"

// AuditEvery is how often a store looks at what waits, without any note that there is something to do.
const AuditEvery = 3 * time.Minute

// AuditDue reports whether the next audit is due after the last one. A clock that was set back does not put it off.
func AuditDue(last, now time.Time) bool { return now.Sub(last) >= AuditEvery || now.Before(last) }

// A Waiting is what an audit knows of a task that is held.
type Waiting struct {
	When      When
	Seen      Outcome   // of its parents that have finished
	All       bool      // all of them have
	Delayed   bool      // it waits for an instant,
	NotBefore time.Time // this one
	Items     bool      // it is a foreach task that waits for its items,
	Making    bool      // which are still being made or queued
	Expanded  bool      // all of them are in
	ItemsHeld bool      // some of them were not let run
	ItemsLeft bool      // some of them have not finished
}

// Neglected reports whether a held task waits for nothing that will come to it by itself: so somebody has lost what was to be done next.
func (w *Waiting) Neglected() bool {
	switch {
	case w.Delayed:
		return w.NotBefore.IsZero()
	case w.Items && w.Making:
		return false // a sweep goes on with it
	case w.Items:
		return !w.Expanded || w.ItemsHeld || !w.ItemsLeft
	}
	return Decide(w.When, w.Seen, w.All) != Wait
}
