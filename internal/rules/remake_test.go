package rules_test

import (
	"testing"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

func TestARetryRemakesItems(t *testing.T) {
	for _, c := range []struct {
		name           string
		retried        plan.Retried
		task           plan.Task
		foreach, waits bool
		want           bool
	}{
		{"items that are all in stay", plan.Retried{}, plan.Task{Expanded: true, Items: 2}, true, false, false},
		{"a parent that runs again makes them anew", plan.Retried{}, plan.Task{Expanded: true, Items: 2}, true, true, true},
		{"so does the person who asks for it", plan.Retried{Anew: true}, plan.Task{Expanded: true, Items: 2}, true, false, true},
		{"items that were not all in are made anew", plan.Retried{}, plan.Task{Expanding: true, Items: 2}, true, false, true},
		{"a task that had none asks again", plan.Retried{}, plan.Task{Expanded: true}, true, false, true},
		{"a task that is no foreach task any more has none", plan.Retried{}, plan.Task{Expanded: true, Items: 2}, false, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := rules.Remakes(&c.retried, &c.task, c.foreach, c.waits); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}
