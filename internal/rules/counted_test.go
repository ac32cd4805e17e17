package rules_test

import (
	"testing"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// counted are tasks in every state that there is, and what counts them.
var counted = []struct {
	task rules.Counted
	want plan.Counts
}{
	{rules.Counted{Status: plan.Held}, plan.Counts{Held: 1}},
	{rules.Counted{Status: plan.Held, ContinueOnError: true}, plan.Counts{Held: 1}},
	{rules.Counted{Status: plan.Queued}, plan.Counts{Queued: 1}},
	{rules.Counted{Status: plan.Claimed}, plan.Counts{Claimed: 1}},
	{rules.Counted{Status: plan.Running, ContinueOnError: true}, plan.Counts{Running: 1}},
	{rules.Counted{Status: plan.Succeeded, ContinueOnError: true}, plan.Counts{Succeeded: 1}},
	{rules.Counted{Status: plan.Failed}, plan.Counts{Failed: 1}},
	{rules.Counted{Status: plan.Failed + 7, Reason: plan.ReasonSignal}, plan.Counts{Failed: 1}},
	{rules.Counted{Status: plan.Failed + 7, ContinueOnError: true}, plan.Counts{Allowed: 1}},
	{rules.Counted{Status: plan.Terminated, Reason: plan.ReasonCancelled}, plan.Counts{Terminated: 1}},
	{rules.Counted{Status: plan.Terminated, ContinueOnError: true}, plan.Counts{Allowed: 1}},
	{rules.Counted{Status: plan.Orphaned}, plan.Counts{Orphaned: 1}},
	{rules.Counted{Status: plan.Orphaned, ContinueOnError: true}, plan.Counts{Allowed: 1}},
	{rules.Counted{Status: plan.Cancelled, Reason: plan.ReasonSkipped, ContinueOnError: true}, plan.Counts{Skipped: 1}},
	{rules.Counted{Status: plan.Cancelled, Reason: plan.ReasonCancelled, ContinueOnError: true}, plan.Counts{Cancelled: 1}},
	{rules.Counted{Status: plan.Held, Items: true}, plan.Counts{Gathering: 1}},
	{rules.Counted{Status: plan.Succeeded, Items: true}, plan.Counts{Gathered: 1}},
	{rules.Counted{Status: plan.Failed, Reason: plan.ReasonItems, Items: true}, plan.Counts{Gathered: 1}},
	{rules.Counted{Status: plan.Cancelled, Reason: plan.ReasonSkipped, Items: true}, plan.Counts{Gathered: 1}},
	{rules.Counted{Status: plan.Unknown}, plan.Counts{}},
}

func TestEachTaskIsCountedOnce(t *testing.T) {
	var all plan.Counts
	for _, c := range counted {
		var got plan.Counts
		if rules.Count(&got, c.task, 2); got != (plan.Counts{}).Plus(c.want, 2) {
			t.Errorf("two tasks %+v are counted as %+v, want each as %+v", c.task, got, c.want)
		}
		rules.Count(&all, c.task, 1)
	}
	want := rules.Sums{Tasks: 15, Done: 10, Broken: 4}
	if got := rules.SumsOf(all); got != want || all.Unfinished() != 5 || all.Stored() != 20-1 {
		t.Errorf("%+v sum up to %+v with %d unfinished of %d that are stored, want %+v, 5 and 19", all, got, all.Unfinished(), all.Stored(), want)
	}
	if all.Done()+all.Unfinished() != all.Total() || all.Succeeded+all.Failed+all.Allowed+all.Terminated+all.Orphaned+all.Skipped+all.Cancelled != all.Done() {
		t.Errorf("%+v do not add up", all)
	}
	for _, c := range counted {
		rules.Count(&all, c.task, -1)
	}
	if all != (plan.Counts{}) {
		t.Errorf("what was taken away again left %+v", all)
	}
}
