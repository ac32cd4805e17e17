package rules_test

import (
	"errors"
	"testing"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

func TestAJobPackIsPutBeforeTheTasksOfItsPlan(t *testing.T) {
	for _, c := range []struct {
		name string
		plan plan.Plan
		size int64
		want error
	}{
		{"a plan that is being submitted takes the largest pack", plan.Plan{State: plan.PlanSubmitting}, 256 << 20, nil},
		{"it takes no larger one", plan.Plan{State: plan.PlanSubmitting}, 256<<20 + 1, plan.ErrTooLarge},
		{"a plan that runs takes none", plan.Plan{State: plan.PlanRunning}, 1, plan.ErrConflict},
		{"nor does a submission that a person cancelled", plan.Plan{State: plan.PlanSubmitting, Closing: plan.ClosedByPerson}, 1, plan.ErrPlanEnded},
		{"nor does an abandoned one", plan.Plan{State: plan.PlanAbandoned}, 1, plan.ErrPlanEnded},
		{"nor does a plan that has ended", plan.Plan{State: plan.PlanSucceeded}, 1, plan.ErrPlanEnded},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := rules.CheckPack(&c.plan, c.size); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}
