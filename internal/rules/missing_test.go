package rules_test

import (
	"testing"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

func TestMissingItem(t *testing.T) {
	for _, c := range []struct {
		what string
		of   *plan.Task
		want rules.Outcome
	}{
		{"an item whose foreach task was deleted counts as cancelled", nil, rules.OutcomeCancelled},
		{"an item is waited for while its foreach task has made none", &plan.Task{Status: plan.Held}, 0},
		{"and while a node makes them", &plan.Task{Status: plan.Running}, 0},
		{"and while they are being inserted, however many", &plan.Task{Status: plan.Held, Expanding: true, Items: 1}, 0},
		{"an item that a longer list has is about to be there", &plan.Task{Status: plan.Held, Expanded: true, Items: 3}, 0},
		{"an item that a shorter list lacks counts as skipped", &plan.Task{Status: plan.Held, Expanded: true, Items: 2}, rules.OutcomeSkipped},
		{"also once the foreach task has ended", &plan.Task{Status: plan.Succeeded, Expanded: true, Items: 2}, rules.OutcomeSkipped},
		{"so does each item of a foreach task that ended without any", &plan.Task{Status: plan.Cancelled}, rules.OutcomeSkipped},
	} {
		if got := rules.MissingItem(c.of, 2); got != c.want {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
	of := &plan.Task{Name: "copy", Expanded: true, Items: 2}
	if got, want := rules.MissingDetail(of, 2), "it needs copy[2], and copy has 2 items since it was retried"; got != want {
		t.Errorf("the reason is %q, want %q", got, want)
	}
	of.Items = 1
	if got, want := rules.MissingDetail(of, 2), "it needs copy[2], and copy has 1 item since it was retried"; got != want {
		t.Errorf("the reason is %q, want %q", got, want)
	}
}
