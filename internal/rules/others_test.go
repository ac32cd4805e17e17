package rules

import (
	"math"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/plan"
)

func TestTheEndThatAnotherProgramWroteCounts(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for name, c := range map[string]struct {
		end            OthersEnd
		counts, notice bool
	}{
		"a task that runs does not count":                    {OthersEnd{Status: plan.Running, Complete: true}, false, false},
		"an end counts with its output":                      {OthersEnd{Status: plan.Succeeded, Complete: true}, true, false},
		"a failure counts with its output":                   {OthersEnd{Status: plan.Failed + 3, Complete: true}, true, false},
		"an end that nobody has noticed waits":               {OthersEnd{Status: plan.Succeeded, Claimed: ago(time.Hour)}, false, true},
		"an end that was just noticed waits":                 {OthersEnd{Status: plan.Succeeded, Claimed: ago(time.Hour), Noticed: now}, false, false},
		"the wait is not over a moment before ten seconds":   {OthersEnd{Status: plan.Succeeded, Noticed: ago(OutputWait - 1)}, false, false},
		"after ten seconds the end counts without an output": {OthersEnd{Status: plan.Succeeded, Noticed: ago(OutputWait)}, true, false},
		"complete ends the wait":                             {OthersEnd{Status: plan.Succeeded, Complete: true, Noticed: now}, true, false},
		"a cancelled task counts after the wait":             {OthersEnd{Status: plan.Cancelled, Noticed: ago(OutputWait)}, true, false},
		"a task that was given up is a sweep's to judge":     {OthersEnd{Status: plan.Orphaned, Noticed: ago(time.Hour)}, false, false},
		"a task that was given up counts when it was judged": {OthersEnd{Status: plan.Orphaned, Complete: true}, true, false},
		"a notice of the future waits":                       {OthersEnd{Status: plan.Succeeded, Noticed: now.Add(time.Minute)}, false, false},
	} {
		if counts, notice := c.end.Counts(now), c.end.Notice(); counts != c.counts || notice != c.notice {
			t.Errorf("%s: counts %v, to be noticed %v; want %v, %v", name, counts, notice, c.counts, c.notice)
		}
	}
}

func TestTheTimesOfWhatAnotherProgramEnded(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	claimed, noticed := now.Add(-time.Hour), now.Add(-time.Minute)
	for name, c := range map[string]struct {
		end            OthersEnd
		started, ended time.Time
	}{
		"its claim, and when its end was noticed":       {OthersEnd{Complete: true, Claimed: claimed, Noticed: noticed}, claimed, noticed},
		"an end that is complete at first sight is now": {OthersEnd{Complete: true, Claimed: claimed}, claimed, now},
		"without complete its start is unknown":         {OthersEnd{Claimed: claimed, Noticed: noticed}, time.Time{}, noticed},
		"a program that wrote after its end, too":       {OthersEnd{Complete: true, Claimed: now, Noticed: noticed}, time.Time{}, noticed},
		"a clock that is ahead":                         {OthersEnd{Complete: true, Claimed: now.Add(time.Hour)}, time.Time{}, now},
	} {
		if started, ended := c.end.Times(now); !started.Equal(c.started) || !ended.Equal(c.ended) {
			t.Errorf("%s: %v to %v, want %v to %v", name, started, ended, c.started, c.ended)
		}
	}
}

func TestTheStatusesThatNumbersStandFor(t *testing.T) {
	for n, want := range map[float64]plan.Status{
		-6: plan.Orphaned, 0: plan.Running, 1: plan.Succeeded, 7: 7, -9: -9, 1.5: plan.Failed, 1e12: plan.Failed, 0.5: plan.Unknown, -1e12: plan.Unknown,
	} {
		if got := StatusOf(n, n == math.Trunc(n) && math.Abs(n) < 1<<31); got != want {
			t.Errorf("%v is %d, want %d", n, got, want)
		}
	}
}

func TestWhenAForeachTaskEndsItsItems(t *testing.T) {
	for _, c := range []struct {
		status plan.Status
		why    plan.Reason
		want   bool
	}{
		{plan.Cancelled, plan.ReasonSkipped, true},
		{plan.Failed, plan.ReasonInput, true},
		{plan.Failed, plan.ReasonItems, false},
		{plan.Terminated, plan.ReasonCancelled, true},
		{plan.Succeeded, "", false},
		{plan.Held, "", false},
	} {
		if got := EndsItems(c.status, c.why); got != c.want {
			t.Errorf("%v, %q: %v, want %v", c.status, c.why, got, c.want)
		}
	}
}
