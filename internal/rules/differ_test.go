package rules_test

import (
	"testing"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

func TestFieldsThatDifferAreNamed(t *testing.T) {
	is, want := plan.Counts{Held: 2, Failed: 1}, plan.Counts{Held: 3, Queued: 4, Failed: 1}
	if got := rules.Differ(is, want); got != "Held is 2, not 3, Queued is 0, not 4" {
		t.Errorf("got %q", got)
	}
	if got := rules.Differ(is, is); got != "" {
		t.Errorf("of the same: %q", got)
	}
}
