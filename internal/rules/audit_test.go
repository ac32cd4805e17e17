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

func TestWhatAHeldTaskWaitsFor(t *testing.T) {
	left := Items{Count: 2, Left: 1}
	for _, c := range []struct {
		name  string
		w     Waiter
		noted bool
		want  Hold
	}{
		{"a task without parents waits for nothing", Waiter{All: true}, false, ForNothing},
		{"in a plan that is being submitted it waits for the plan", Waiter{All: true, InPlan: true, State: plan.PlanSubmitting}, false, ForPlan},
		{"or for its instant", Waiter{All: true, Early: true}, false, ForInstant},
		{"but first for the plan", Waiter{All: true, Early: true, InPlan: true, State: plan.PlanSubmitting}, false, ForPlan},
		{"and before that for its parents", Waiter{Seen: OutcomeSucceeded, Early: true}, false, ForParents},
		{"a task all of whose parents succeeded can run", Waiter{Seen: OutcomeSucceeded, All: true, InPlan: true, State: plan.PlanRunning}, false, ForNothing},
		{"a task one of whose parents failed can be skipped while another one runs", Waiter{Seen: OutcomeFailed}, false, ForNothing},
		{"a task that is to be skipped waits for no instant", Waiter{Seen: OutcomeFailed, Early: true}, false, ForNothing},
		{"a task that runs in any case waits for all parents", Waiter{When: plan.AllDone, Seen: OutcomeFailed}, false, ForParents},
		{"a task of a closed plan ends", Waiter{InPlan: true, State: plan.PlanRunning, Closing: plan.ClosedByPerson}, false, ForNothing},
		{"an item waits for the others to be in", Waiter{Item: true, All: true, Alone: true}, false, ForOthers},
		{"and to be queued", Waiter{Item: true, All: true}, true, ForOthers},
		{"then for nothing", Waiter{Item: true, All: true}, false, ForNothing},
		{"or to be tried again", Waiter{Item: true, All: true, Early: true}, false, ForInstant},
		{"a foreach task waits until its items are made", Waiter{Making: true, All: true}, true, ForItems},
		{"unless nobody makes them", Waiter{Making: true, All: true}, false, ForNothing},
		{"then for its items, whatever its parents say", Waiter{Made: true, Items: left}, false, ForItems},
		{"also in a closed plan", Waiter{Made: true, Items: left, InPlan: true, State: plan.PlanRunning, Closing: plan.ClosedByPerson}, false, ForItems},
		{"and for their end only", Waiter{Made: true}, false, ForNothing},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.w.Status = plan.Held
			if got := c.w.For(c.noted); got != c.want {
				t.Errorf("it waits for %d, want %d", got, c.want)
			}
		})
	}
}
