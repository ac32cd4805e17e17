package engine_test

import (
	"testing"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/engine"
	"github.com/seed-1177d267/sluice/plan"
)

func TestWhichStepStopsItsPlan(t *testing.T) {
	stops, closed, goesOn := engine.PlanView{OnFailure: plan.Stop}, engine.PlanView{OnFailure: plan.Stop, Closing: plan.ClosedByPerson}, engine.PlanView{}
	fails := rules.Step{Status: plan.Failed, Reason: plan.ReasonInput}
	for name, c := range map[string]struct {
		plan    engine.PlanView
		step    rules.Step
		lenient bool
		want    bool
	}{
		"a failure":                    {stops, fails, false, true},
		"one that the task allows":     {stops, fails, true, false},
		"one of a plan that goes on":   {goesOn, fails, false, false},
		"one of a plan that is closed": {closed, fails, false, false},
		"a skipped task":               {stops, rules.Skipped(plan.Held), false, false},
		"a task that is queued":        {stops, rules.Step{Status: plan.Queued}, false, false},
	} {
		if got := engine.Stops(c.plan, &c.step, c.lenient); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestWhichItemsAreDropped(t *testing.T) {
	for name, c := range map[string]struct {
		of    plan.Task
		waits bool
		over  bool
		want  plan.Reason // of the items; "": they go on
	}{
		"of a task that waits for them":            {plan.Task{Status: plan.Held, Items: 2}, true, false, ""},
		"of one that a person cancelled":           {plan.Task{Status: plan.Held, Items: 2, Cancel: true}, true, false, plan.ReasonCancelled},
		"of one that is cancelled and makes items": {plan.Task{Status: plan.Held, Items: 2, Cancel: true}, false, false, ""},
		"of one that was skipped":                  {plan.Task{Status: plan.Cancelled, Reason: plan.ReasonSkipped, Items: 2}, false, false, plan.ReasonSkipped},
		"of one that could not make all of them":   {plan.Task{Status: plan.Failed, Reason: plan.ReasonInput, Items: 2}, false, false, plan.ReasonSkipped},
		"of one that has none":                     {plan.Task{Status: plan.Cancelled}, false, false, ""},
		"of one of which too many failed":          {plan.Task{Status: plan.Held, Items: 2}, true, true, plan.ReasonSkipped},
		"of one that ended with them":              {plan.Task{Status: plan.Failed, Reason: plan.ReasonItems, Items: 2}, false, false, ""},
	} {
		var got rules.Step
		if done, err := engine.DropItems(&c.of, c.waits, c.over, func(step func(bool) rules.Step) (bool, error) { got = step(false); return true, nil }); err != nil || !done || got.Reason != c.want {
			t.Errorf("%s: %+v, %v, %v; want %q", name, got, done, err, c.want)
		}
	}
}
