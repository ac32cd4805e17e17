package plan

import (
	"testing"
	"time"
)

func TestLeftExtrapolatesThePaceSoFar(t *testing.T) {
	const minute = time.Minute
	for _, c := range []struct {
		name     string
		from, to Counts
		want     time.Duration // less than zero: nobody can tell
	}{
		{"half of the tasks took a minute", Counts{}, Counts{Succeeded: 10, Running: 2, Queued: 9}, minute * 10 / 11},
		{"a failure ran as well", Counts{}, Counts{Succeeded: 8, Failed: 2, Running: 2, Held: 9}, minute * 10 / 11},
		{"a skipped task took no time", Counts{}, Counts{Succeeded: 10, Skipped: 50, Cancelled: 7, Running: 2, Queued: 9}, minute * 10 / 11},
		{"a task that ended before the time does not count", Counts{Succeeded: 100}, Counts{Succeeded: 110, Claimed: 2, Queued: 9}, minute * 10 / 11},
		{"few tasks have run", Counts{}, Counts{Succeeded: 4, Running: 1, Queued: 9}, -1},
		{"nothing runs", Counts{}, Counts{Succeeded: 10, Queued: 9}, -1},
		{"all that is left runs", Counts{}, Counts{Succeeded: 10, Running: 2}, -1},
		{"all have ended", Counts{}, Counts{Succeeded: 10}, -1},
	} {
		left, ok := Left(c.from, c.to, minute)
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
	counts := Counts{Succeeded: 10, Running: 2, Queued: 9}
	for _, c := range []struct {
		name string
		plan Plan
		ok   bool
	}{
		{"a plan that runs", Plan{State: PlanRunning}, true},
		{"a plan of which a person retried tasks", Plan{State: PlanRunning, Edits: 1}, false},
		{"a plan that a person cancelled", Plan{State: PlanRunning, Closing: ClosedByPerson}, false},
		{"a plan that is being submitted", Plan{State: PlanSubmitting}, false},
	} {
		c.plan.Created, c.plan.Counts = now.Add(-time.Minute), counts
		if left, ok := c.plan.Left(now); ok != c.ok {
			t.Errorf("%s: %v, %v", c.name, left, ok)
		}
	}
}
