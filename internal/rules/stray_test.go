package rules_test

import (
	"testing"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

func TestAStrayIsClaimedForAnInstanceThatIsNotRegistered(t *testing.T) {
	known, unknown := plan.InstanceID{ID: plan.ID{1}}, plan.InstanceID{ID: plan.ID{2}}
	tasks := []plan.Task{
		{Name: "of a node", Status: plan.Running, Instance: known},
		{Name: "of another program", Status: plan.Running},
		{Name: "ended", Status: plan.Succeeded, Instance: unknown},
		{Name: "claimed", Status: plan.Claimed, Instance: unknown},
		{Name: "running", Status: plan.Running, Instance: unknown},
	}
	got := rules.Registered{known: true}.Strays(tasks)
	if len(got) != 2 || got[0].Name != "claimed" || got[1].Name != "running" {
		t.Errorf("the strays are %v, want the last two", got)
	}
}
