package plan_test

import (
	"testing"

	"github.com/seed-1177d267/sluice/plan"
)

func TestAPlansStateIsReadAsItIsWritten(t *testing.T) {
	for _, c := range []struct {
		state plan.Lifecycle
		word  string
		ended bool
	}{
		{plan.PlanAbandoned, "abandoned", true}, {plan.PlanCancelled, "cancelled", true}, {plan.PlanSubmitting, "submitting", false},
		{plan.PlanRunning, "running", false}, {plan.PlanSucceeded, "succeeded", true}, {plan.PlanFailed, "failed", true},
	} {
		got, err := plan.ParseLifecycle(c.word)
		if err != nil || got != c.state || c.state.String() != c.word || c.state.Ended() != c.ended {
			t.Errorf("%q is read as %v (%v) and written as %q, ended: %v", c.word, got, err, c.state, c.state.Ended())
		}
	}
	if _, err := plan.ParseLifecycle("queued"); err == nil {
		t.Error("queued is not a plan's state, and was read as one")
	}
	if got := plan.Lifecycle(9).String(); got != "9" {
		t.Errorf("an unknown state prints as %q, want its number", got)
	}
}

func TestAPlanIsCalledByItsNameAndRun(t *testing.T) {
	p := plan.Plan{Name: "nightly", Run: 3}
	if got := p.Title(); got != "nightly#3" {
		t.Errorf("got %q, want nightly#3", got)
	}
}
