package plan_test

import (
	"testing"

	"github.com/seed-1177d267/sluice/plan"
)

func TestAPlanIsSettledOnceItsForeachTasksHaveGathered(t *testing.T) {
	for _, c := range []struct {
		counts plan.Counts
		want   bool
	}{
		{plan.Counts{Succeeded: 2, Gathered: 1}, true},
		{plan.Counts{Succeeded: 2, Gathering: 1}, false},
		{plan.Counts{Succeeded: 2, Claimed: 1}, false},
		{plan.Counts{}, true},
	} {
		if got := c.counts.Settled(); got != c.want {
			t.Errorf("%+v is settled: %v, want %v", c.counts, got, c.want)
		}
	}
}
