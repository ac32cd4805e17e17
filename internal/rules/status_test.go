package rules

import (
	"testing"

	"github.com/seed-1177d267/sluice/plan"
)

func TestWhatAStatusMeansToAStore(t *testing.T) {
	for _, c := range []struct {
		status                                          plan.Status
		pending, claimable, reports, stopsItems, noNode bool
		queued, active                                  int
	}{
		{status: plan.Orphaned},
		{status: plan.Cancelled, stopsItems: true, noNode: true},
		{status: plan.Held, pending: true, noNode: true},
		{status: plan.Terminated, stopsItems: true},
		{status: plan.Queued, pending: true, claimable: true, noNode: true, queued: 1},
		{status: plan.Claimed, active: 1},
		{status: plan.Running, reports: true, active: 1},
		{status: plan.Succeeded},
		{status: plan.Failed},
		{status: 7},
	} {
		s := c.status
		if Pending(s) != c.pending || Claimable(s) != c.claimable || Reports(s) != c.reports || StopsItems(s, false) != c.stopsItems || !StopsItems(s, true) {
			t.Errorf("%v: pending %v, claimable %v, reports %v, stops items %v", s, Pending(s), Claimable(s), Reports(s), StopsItems(s, false))
		}
		if got := (&Step{Status: s}).LosesNode(); got != c.noNode {
			t.Errorf("a step to %v takes the node: %v", s, got)
		}
		if Claimable(s) != s.CanBecome(plan.Claimed) {
			t.Errorf("%v: claimable %v, but it can become claimed: %v", s, Claimable(s), s.CanBecome(plan.Claimed))
		}
		q := plan.Queue{Queued: 5, Active: 5}
		if CountInQueue(&q, s, 2); q.Queued != 5+2*c.queued || q.Active != 5+2*c.active {
			t.Errorf("2 tasks that are %v: queued %d, active %d", s, q.Queued-5, q.Active-5)
		}
		if kept := KeptAs("q", s); kept.Status != min(s, plan.Failed) || kept.Queue != "q" {
			t.Errorf("%v is kept as %v", s, kept)
		}
	}
}

func TestSelectedStatuses(t *testing.T) {
	for _, c := range []struct {
		status plan.Status
		among  []plan.Status
		want   bool
	}{
		{plan.Held, nil, false},
		{plan.Held, []plan.Status{plan.Queued, plan.Held}, true},
		{plan.Running, []plan.Status{plan.Claimed, plan.Failed}, false},
		{plan.Failed, []plan.Status{plan.Failed}, true},
		{7, []plan.Status{plan.Failed}, true},
		{7, []plan.Status{7}, true},
		{7, []plan.Status{8}, false},
		{plan.Failed, []plan.Status{7}, false},
		{plan.Orphaned, []plan.Status{plan.Failed}, false},
	} {
		if got := Selected(c.status, c.among); got != c.want {
			t.Errorf("%v is among %v: %v", c.status, c.among, got)
		}
	}
}

func TestPlainSteps(t *testing.T) {
	for name, c := range map[string]struct {
		s    Step
		want bool
	}{
		"an attempt that succeeded":    {Step{Status: plan.Succeeded, Attempted: true}, true},
		"one with an output":           {Step{Status: plan.Succeeded, Attempted: true, Output: []byte("1")}, true},
		"a success without an attempt": {Step{Status: plan.Succeeded}, false},
		"one with a detail":            {Step{Status: plan.Succeeded, Attempted: true, Detail: "no items"}, false},
		"one with a reason":            {Step{Status: plan.Succeeded, Attempted: true, Reason: plan.ReasonError}, false},
		"one with an exit status":      {Step{Status: plan.Succeeded, Attempted: true, Exit: &plan.Exit{}}, false},
		"an attempt that failed":       {Step{Status: plan.Failed, Attempted: true}, false},
	} {
		if got := c.s.Plain(); got != c.want {
			t.Errorf("%s: plain %v", name, got)
		}
	}
}
