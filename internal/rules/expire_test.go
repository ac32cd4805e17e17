package rules_test

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

const day = 24 * time.Hour

func TestAPlanIsDeletedOnceItHasEnded(t *testing.T) {
	for _, c := range []struct {
		name     string
		deletion rules.Deletion
		want     string // of the error; "": none
	}{
		{"it is being submitted", rules.Deletion{State: plan.PlanSubmitting}, "is submitting"},
		{"it runs", rules.Deletion{State: plan.PlanRunning}, "is running"},
		{"it has ended", rules.Deletion{State: plan.PlanFailed}, ""},
		{"it was abandoned", rules.Deletion{State: plan.PlanAbandoned}, ""},
		{"it is taken back", rules.Deletion{State: plan.PlanFailed, Retrying: true}, "is being retried"},
		{"its deletion has begun", rules.Deletion{State: plan.PlanRunning, Begun: true}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.deletion.Title = "nightly#3"
			switch err := c.deletion.Check(); {
			case c.want == "" && err != nil:
				t.Errorf("it is refused: %v", err)
			case c.want != "" && (!errors.Is(err, plan.ErrPlanActive) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "nightly#3")):
				t.Errorf("the error is %v, want one of plan nightly#3 that says %q", err, c.want)
			}
		})
	}
}

func TestAPlanIsKeptAsLongAsItSaysOrElseAsTheStoreSays(t *testing.T) {
	ended := time.Unix(1e9, 0)
	for _, c := range []struct {
		name            string
		keep, byDefault time.Duration
		want            time.Time
	}{
		{"neither says anything", 0, 0, time.Time{}},
		{"the store has a default", 0, day, ended.Add(day)},
		{"the plan says less", time.Hour, day, ended.Add(time.Hour)},
		{"the plan says more", 3 * day, day, ended.Add(3 * day)},
		{"the plan is kept for ever", -1, day, time.Time{}},
		{"the store keeps for ever", 0, -1, time.Time{}},
	} {
		if got := rules.KeptUntil(ended, c.keep, c.byDefault); !got.Equal(c.want) {
			t.Errorf("%s: it is kept until %v, want %v", c.name, got, c.want)
		}
	}
}

func TestTasksOfNoPlanAreKeptByTheirQueueAndTheirStatus(t *testing.T) {
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
		{"one status is limited where the default is for ever", plan.Keep{Failed: plan.Duration(day)}, 0, map[plan.Status]time.Duration{plan.Failed: day}},
		{"a status that is kept for ever has no limit, whatever the default", plan.Keep{Succeeded: plan.Duration(2 * day), Failed: -1, Orphaned: -5}, day,
			map[plan.Status]time.Duration{plan.Succeeded: 2 * day, plan.Terminated: day, plan.Cancelled: day}},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := map[rules.Kept[string]]time.Duration{{Queue: "other", Status: plan.Failed}: time.Minute}
			for s, limit := range c.want {
				want[rules.Kept[string]{Queue: "q", Status: s}] = limit
			}
			other := plan.Keep{Succeeded: -1, Failed: plan.Duration(time.Minute), Terminated: -1, Cancelled: -1, Orphaned: -1}
			if got := rules.KeepLimits(map[string]plan.QueueSettings{"q": {Keep: c.keep}, "other": {Keep: other}}, nil, c.byDefault); !maps.Equal(got, want) {
				t.Errorf("the limits are %v, want %v", got, want)
			}
		})
	}
}
