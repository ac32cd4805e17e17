package rules

import (
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/plan"
)

func TestLeftExtrapolatesThePaceSoFar(t *testing.T) {
	const minute = time.Minute
	for _, c := range []struct {
		name     string
		from, to plan.Counts
		want     time.Duration // less than zero: nobody can tell
	}{
		{"half of the tasks took a minute", plan.Counts{}, plan.Counts{Succeeded: 10, Running: 2, Queued: 9}, minute * 10 / 11},
		{"a failure ran as well", plan.Counts{}, plan.Counts{Succeeded: 8, Failed: 2, Running: 2, Held: 9}, minute * 10 / 11},
		{"a skipped task took no time", plan.Counts{}, plan.Counts{Succeeded: 10, Skipped: 50, Cancelled: 7, Running: 2, Queued: 9}, minute * 10 / 11},
		{"a task that ended before the time does not count", plan.Counts{Succeeded: 100}, plan.Counts{Succeeded: 110, Claimed: 2, Queued: 9}, minute * 10 / 11},
		{"few tasks have run", plan.Counts{}, plan.Counts{Succeeded: 4, Running: 1, Queued: 9}, -1},
		{"nothing runs", plan.Counts{}, plan.Counts{Succeeded: 10, Queued: 9}, -1},
		{"all that is left runs", plan.Counts{}, plan.Counts{Succeeded: 10, Running: 2}, -1},
		{"all have ended", plan.Counts{}, plan.Counts{Succeeded: 10}, -1},
	} {
		left, ok := TimeLeft(c.from, c.to, minute)
		if !ok {
			left = -1
		}
		if left != c.want {
			t.Errorf("%s: %v, want %v", c.name, left, c.want)
		}
	}
}

func TestAPlanThatStoodStillHasNoEstimate(t *testing.T) {
	now := time.Now()
	counts := plan.Counts{Succeeded: 10, Running: 2, Queued: 9}
	for _, c := range []struct {
		name string
		plan plan.Plan
		ok   bool
	}{
		{"a plan that runs", plan.Plan{State: plan.PlanRunning}, true},
		{"a plan of which a person retried tasks", plan.Plan{State: plan.PlanRunning, Edits: 1}, false},
		{"a plan that a person cancelled", plan.Plan{State: plan.PlanRunning, Closing: plan.ClosedByPerson}, false},
		{"a plan that is being submitted", plan.Plan{State: plan.PlanSubmitting}, false},
	} {
		c.plan.Created, c.plan.Counts = now.Add(-time.Minute), counts
		if left, ok := PlanLeft(&c.plan, now); ok != c.ok {
			t.Errorf("%s: %v, %v", c.name, left, ok)
		}
	}
}

func TestTookCountsFromTheLastRetry(t *testing.T) {
	at := func(second int64) time.Time { return time.Unix(second, 0) }
	for _, c := range []struct {
		name string
		plan plan.Plan
		want time.Duration
	}{
		{"a plan that runs", plan.Plan{Created: at(10)}, 90 * time.Second},
		{"a plan that has ended", plan.Plan{Created: at(10), Ended: at(30)}, 20 * time.Second},
		{"a retried plan that runs", plan.Plan{Created: at(10), Retried: at(80)}, 20 * time.Second},
		{"a retried plan that has ended", plan.Plan{Created: at(10), Retried: at(80), Ended: at(85)}, 5 * time.Second},
		{"a clock that went back", plan.Plan{Created: at(10), Ended: at(5)}, 0},
	} {
		if got := Took(&c.plan, at(100)); got != c.want {
			t.Errorf("%s took %v, want %v", c.name, got, c.want)
		}
	}
}
