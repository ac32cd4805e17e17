package plan_test

import (
	"maps"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/plan"
)

func TestAKeepSaysHowLongEachStatusStays(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct {
		name      string
		keep      plan.Keep
		byDefault time.Duration
		want      map[plan.Status]time.Duration
	}{
		{"nothing is said, and the store keeps all for ever", plan.Keep{}, 0, map[plan.Status]time.Duration{}},
		{"nothing is said, and the store has a default", plan.Keep{}, day, map[plan.Status]time.Duration{
			plan.Succeeded: day, plan.Failed: day, plan.Terminated: day, plan.Cancelled: day, plan.Orphaned: day,
		}},
		{"one status is limited where the default is for ever", plan.Keep{Failed: day}, 0, map[plan.Status]time.Duration{plan.Failed: day}},
		{"a status that is kept for ever has no limit, whatever the default", plan.Keep{Succeeded: 2 * day, Failed: -1, Orphaned: -5}, day,
			map[plan.Status]time.Duration{plan.Succeeded: 2 * day, plan.Terminated: day, plan.Cancelled: day}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.keep.Limits(c.byDefault); !maps.Equal(got, c.want) {
				t.Errorf("the limits are %v, want %v", got, c.want)
			}
		})
	}
	var k plan.Keep
	if *k.Of(plan.Failed + 40) = day; k.Failed != day {
		t.Errorf("a code above 1 is no failure: %+v", k)
	}
	if k.Of(plan.Held) != nil || k.Of(plan.Running) != nil {
		t.Error("a status that is not finished has a field")
	}
}
