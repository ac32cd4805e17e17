package plan_test

import (
	"testing"

	"github.com/seed-1177d267/sluice/plan"
)

var statuses = []plan.Status{
	plan.Orphaned, plan.Cancelled, plan.Held, plan.Terminated, plan.Queued, plan.Claimed, plan.Running, plan.Succeeded, plan.Failed, 7,
}

func TestTheLifeCycleAllowsTheseStepsAndNoOthers(t *testing.T) {
	allowed := map[[2]plan.Status]string{
		{plan.Held, plan.Queued}:        "its parents have finished",
		{plan.Held, plan.Cancelled}:     "it is skipped, or a person cancels it",
		{plan.Held, plan.Succeeded}:     "all items of a foreach task succeeded",
		{plan.Held, plan.Failed}:        "an item failed, or its input cannot be made",
		{plan.Held, plan.Terminated}:    "it is cancelled after an attempt, or while items of it run",
		{plan.Queued, plan.Claimed}:     "a node claims it",
		{plan.Queued, plan.Running}:     "a node claims and starts it in one write",
		{plan.Queued, plan.Cancelled}:   "a person cancels it",
		{plan.Queued, plan.Held}:        "a parent is retried",
		{plan.Claimed, plan.Running}:    "it is started",
		{plan.Queued, plan.Terminated}:  "it was given back, and it or its plan was stopped then",
		{plan.Claimed, plan.Queued}:     "it is given back",
		{plan.Claimed, plan.Held}:       "it could not be started, and is tried again later",
		{plan.Claimed, plan.Succeeded}:  "it ended before its start was written",
		{plan.Claimed, plan.Failed}:     "it could not be started",
		{plan.Claimed, plan.Terminated}: "it was stopped before its start was written",
		{plan.Claimed, plan.Orphaned}:   "another program orphaned it",
		{plan.Claimed, plan.Cancelled}:  "a person cancelled it before it was started",
		{plan.Running, plan.Queued}:     "its node died",
		{plan.Running, plan.Held}:       "it failed, and is tried again later",
		{plan.Running, plan.Succeeded}:  "it succeeded",
		{plan.Running, plan.Failed}:     "it failed",
		{plan.Running, plan.Terminated}: "it was stopped",
		{plan.Running, plan.Orphaned}:   "its node died, and it must not run twice",
		{plan.Running, plan.Cancelled}:  "a person cancelled it",
		{plan.Succeeded, plan.Held}:     "it is retried with what is above it",
		{plan.Failed, plan.Held}:        "it is retried",
		{plan.Terminated, plan.Held}:    "it is retried",
		{plan.Cancelled, plan.Held}:     "it is retried",
		{plan.Orphaned, plan.Held}:      "it is retried",
		{plan.Orphaned, plan.Queued}:    "another program orphaned a plan's task, and it is rescued",
	}
	for _, from := range statuses {
		for _, to := range statuses {
			why, want := allowed[[2]plan.Status{min(from, plan.Failed), min(to, plan.Failed)}]
			if got := from.CanBecome(to); got != want {
				t.Errorf("%v can become %v: got %v, want %v (%s)", from, to, got, want, why)
			}
		}
	}
}

func FuzzCanBecome(f *testing.F) {
	for _, s := range statuses {
		f.Add(int32(s), int32(plan.Held))
		f.Add(int32(plan.Running), int32(s))
	}
	f.Add(int32(-7), int32(1<<31-1))
	f.Fuzz(func(t *testing.T, a, b int32) {
		from, to := plan.Status(a), plan.Status(b)
		can := from.CanBecome(to)
		switch {
		case can && (!from.Valid() || !to.Valid()):
			t.Errorf("%d became %d, and one of them means nothing", from, to)
		case can && from == to:
			t.Errorf("%v became itself", from)
		case can && from.Finished() && to != plan.Held && !(from == plan.Orphaned && to == plan.Queued):
			t.Errorf("%v is final, yet became %v", from, to)
		case can && to.Active() && from.Finished():
			t.Errorf("%v became %v without being released", from, to)
		case can && to.Active() && from == plan.Held:
			t.Errorf("a held task became %v without being queued", to)
		case from > plan.Failed && can != plan.Failed.CanBecome(to), to > plan.Failed && can != from.CanBecome(plan.Failed):
			t.Errorf("%d to %d: a code above 2 is not what 2 is", from, to)
		case from.Valid() && !from.Finished() && !from.CanBecome(plan.Cancelled):
			t.Errorf("a person cannot cancel a task that is %v", from)
		}
	})
}

func TestAStatusIsFinishedActiveOrNeither(t *testing.T) {
	for s, want := range map[plan.Status]string{
		plan.Orphaned: "finished", plan.Cancelled: "finished", plan.Held: "", plan.Terminated: "finished", plan.Queued: "",
		plan.Claimed: "active", plan.Running: "active", plan.Succeeded: "finished", plan.Failed: "finished", 99: "finished",
	} {
		got := ""
		if s.Finished() {
			got += "finished"
		}
		if s.Active() {
			got += "active"
		}
		if got != want {
			t.Errorf("%v is %q, want %q", s, got, want)
		}
	}
}

func TestAStatusHasAName(t *testing.T) {
	for s, want := range map[plan.Status]string{7: "failed", -7: "-7"} {
		if got := s.String(); got != want {
			t.Errorf("status %d prints as %q, want %q", int(s), got, want)
		}
	}
}

func TestPeopleSeeSkippedForWhatWasCancelledForThat(t *testing.T) {
	for _, c := range []struct {
		status plan.Status
		reason plan.Reason
		want   string
	}{
		{plan.Cancelled, plan.ReasonSkipped, "skipped"},
		{plan.Cancelled, plan.ReasonCancelled, "cancelled"},
		{plan.Failed, plan.ReasonSkipped, "failed"},
		{plan.Queued, plan.ReasonNone, "queued"},
	} {
		task := plan.Task{Status: c.status, Reason: c.reason}
		if got := task.State(); got != c.want {
			t.Errorf("%v for reason %q is %q, want %q", c.status, c.reason, got, c.want)
		}
	}
}
