package rules

import (
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/plan"
)

func TestAuditDue(t *testing.T) {
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		name string
		last time.Time
		want bool
	}{
		{"one that was just made", now, false},
		{"one that was made a moment too late", now.Add(-AuditEvery + 1), false},
		{"one that was made long enough ago", now.Add(-AuditEvery), true},
		{"one that was made by a clock that was set back since", now.Add(time.Hour), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := AuditDue(c.last, now); got != c.want {
				t.Errorf("the next audit is due: %v, want %v", got, c.want)
			}
		})
	}
}

func TestNeglected(t *testing.T) {
	for _, c := range []struct {
		name string
		w    Waiting
		want bool
	}{
		{"a task without parents waits for nothing", Waiting{All: true}, true},
		{"a task one of whose parents runs waits for it", Waiting{Seen: plan.OutcomeSucceeded}, false},
		{"a task all of whose parents succeeded can run", Waiting{Seen: plan.OutcomeSucceeded, All: true}, true},
		{"a task one of whose parents failed can be skipped while another one runs", Waiting{Seen: plan.OutcomeFailed}, true},
		{"a task that runs in any case waits for all parents", Waiting{When: plan.AllDone, Seen: plan.OutcomeFailed}, false},
		{"a delayed task waits for its instant", Waiting{Delayed: true, NotBefore: time.Unix(1, 0), All: true}, false},
		{"a delayed task without an instant waits for nothing", Waiting{Delayed: true, All: true}, true},
		{"a task whose items are being made is marked as such", Waiting{Items: true, Making: true, All: true}, false},
		{"a task whose items nobody makes waits for nothing", Waiting{Items: true, All: true}, true},
		{"a task whose items run waits for them", Waiting{Items: true, Expanded: true, ItemsLeft: true, All: true}, false},
		{"a task some of whose items nobody lets run waits for nothing", Waiting{Items: true, Expanded: true, ItemsHeld: true, ItemsLeft: true}, true},
		{"a task whose items have finished waits for nothing", Waiting{Items: true, Expanded: true}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.w.Neglected(); got != c.want {
				t.Errorf("it is neglected: %v, want %v", got, c.want)
			}
		})
	}
}

func TestWhatAHeldTaskWaitsFor(t *testing.T) {
	at := time.Unix(1, 0)
	for _, c := range []struct {
		name string
		w    Waiting
		want Hold
	}{
		{"a task without parents waits for nothing", Waiting{All: true}, ForNothing},
		{"in a plan that is being submitted it waits for the plan", Waiting{All: true, Submitting: true}, ForPlan},
		{"or for its instant", Waiting{All: true, NotBefore: at}, ForInstant},
		{"but first for the plan", Waiting{All: true, NotBefore: at, Submitting: true}, ForPlan},
		{"and before that for its parents", Waiting{Seen: plan.OutcomeSucceeded, NotBefore: at}, ForParents},
		{"a task that is to be skipped waits for no instant", Waiting{Seen: plan.OutcomeFailed, NotBefore: at}, ForNothing},
		{"a mark does not say that a task waits for an instant", Waiting{Delayed: true, All: true}, ForNothing},
		{"an item waits for the others to be in", Waiting{Item: true, All: true}, ForOthers},
		{"and to be queued", Waiting{Item: true, All: true, Expanded: true, Making: true}, ForOthers},
		{"then for nothing", Waiting{Item: true, All: true, Expanded: true}, ForNothing},
		{"or to be tried again", Waiting{Item: true, All: true, Expanded: true, NotBefore: at}, ForInstant},
		{"a foreach task waits for its items, whatever its parents say", Waiting{Items: true, Expanded: true, ItemsLeft: true}, ForItems},
		{"and for their end only", Waiting{Items: true, Expanded: true}, ForNothing},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.w.For(); got != c.want {
				t.Errorf("it waits for %d, want %d", got, c.want)
			}
		})
	}
}
