package engine_test

import (
	"testing"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/engine"
	"github.com/seed-1177d267/sluice/plan"
)

// TestTasksAfterAFailure has two plans, one of which a failure stops.
func TestTasksAfterAFailure(t *testing.T) {
	stops, goesOn := plan.PlanID{ID: plan.ID{1}}, plan.PlanID{ID: plan.ID{2}}
	var ends []engine.Settled
	end := func(of plan.PlanID, s rules.Step, lenient, waits bool) *rules.Step {
		on := plan.Stop
		if of == goesOn {
			on = plan.Continue
		}
		ends = append(ends, engine.Settled{Plan: of, OnFailure: on, Step: &s, Lenient: lenient, Waits: waits})
		return &s
	}
	fails, skipped := rules.Step{Status: plan.Failed, Reason: plan.ReasonInput}, rules.Skipped(plan.Held)
	none := []*rules.Step{
		end(goesOn, fails, false, true), end(goesOn, skipped, false, true), end(stops, fails, true, true), end(stops, skipped, false, true),
		end(stops, fails, false, true), end(stops, skipped, false, false), end(goesOn, skipped, false, true),
	}
	after := end(stops, skipped, false, true)
	engine.AfterFailures(ends)
	for i, s := range none {
		if s.Detail != "" {
			t.Errorf("step %d became %+v", i, *s)
		}
	}
	if want := rules.NotStarted(plan.Held, plan.ClosedByFailure); after.Reason != want.Reason || after.Detail != want.Detail {
		t.Errorf("after the failure: %+v, want %+v", *after, want)
	}
}

func TestWhichItemsAreDropped(t *testing.T) {
	for name, c := range map[string]struct {
		of    plan.Task
		waits bool
		want  plan.Reason // of the items; "": they go on
	}{
		"of a task that waits for them":            {plan.Task{Status: plan.Held, Items: 2}, true, ""},
		"of one that a person cancelled":           {plan.Task{Status: plan.Held, Items: 2, Cancel: true}, true, plan.ReasonCancelled},
		"of one that is cancelled and makes items": {plan.Task{Status: plan.Held, Items: 2, Cancel: true}, false, ""},
		"of one that was skipped":                  {plan.Task{Status: plan.Cancelled, Reason: plan.ReasonSkipped, Items: 2}, false, plan.ReasonSkipped},
		"of one that could not make all of them":   {plan.Task{Status: plan.Failed, Reason: plan.ReasonInput, Items: 2}, false, plan.ReasonSkipped},
		"of one that has none":                     {plan.Task{Status: plan.Cancelled}, false, ""},
		"of one that ended with them":              {plan.Task{Status: plan.Failed, Reason: plan.ReasonItems, Items: 2}, false, ""},
	} {
		var got rules.Step
		if done, err := engine.DropItems(&c.of, c.waits, func(s rules.Step) (bool, error) { got = s; return true, nil }); err != nil || !done || got.Reason != c.want {
			t.Errorf("%s: %+v, %v, %v; want %q", name, got, done, err, c.want)
		}
	}
}
