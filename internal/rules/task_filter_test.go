package rules_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

func TestAFilterChoosesTasks(t *testing.T) {
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	queue := plan.QueueID{ID: plan.ID{1}}
	waiting, active := []plan.Status{plan.Held, plan.Queued}, []plan.Status{plan.Held, plan.Queued, plan.Claimed, plan.Running}
	broken := []plan.Status{plan.Failed, plan.Terminated, plan.Orphaned}
	failed := func(reason plan.Reason, exit *plan.Exit) plan.Task {
		return plan.Task{Status: plan.Failed, Reason: reason, Exit: exit, Created: now.Add(-time.Hour)}
	}
	for _, c := range []struct {
		name     string
		what     rules.Bulk
		filter   rules.TaskFilter
		statuses []plan.Status
		kept     []plan.Task
		not      []plan.Task
	}{
		{"a cancellation takes what has not finished", rules.BulkCancel, rules.TaskFilter{Queue: queue}, active, []plan.Task{{Status: plan.Held}}, nil},
		{"a change takes what waits", rules.BulkSet, rules.TaskFilter{Subject: "order 7"}, waiting, []plan.Task{{Status: plan.Queued}}, nil},
		{"a retry takes what went wrong, and not what was cancelled", rules.BulkRetry, rules.TaskFilter{Queue: queue}, broken, []plan.Task{{Status: 7}}, nil},
		{"but what was cancelled if it is named", rules.BulkRetry, rules.TaskFilter{States: []string{"cancelled"}}, []plan.Status{plan.Cancelled},
			[]plan.Task{{Status: plan.Cancelled, Reason: plan.ReasonCancelled}}, []plan.Task{{Status: plan.Cancelled, Reason: plan.ReasonSkipped}}},
		{"a code is that code alone", rules.BulkRetry, rules.TaskFilter{States: []string{"7", "lost"}}, []plan.Status{7, plan.Orphaned}, []plan.Task{{Status: 7}}, nil},
		{"some states", rules.BulkCancel, rules.TaskFilter{States: []string{"running", "queued"}}, []plan.Status{plan.Running, plan.Queued}, []plan.Task{{Status: plan.Running}}, nil},
		{"an age", rules.BulkCancel, rules.TaskFilter{OlderThan: time.Hour}, active,
			[]plan.Task{{Created: now.Add(-time.Hour)}}, []plan.Task{{Created: now.Add(-time.Hour + 1)}, {Created: now.Add(time.Hour)}}},
		{"an exit status", rules.BulkRetry, rules.TaskFilter{Reasons: []string{"75", "1"}}, broken,
			[]plan.Task{failed("", &plan.Exit{Code: 75}), failed("", &plan.Exit{Code: 1})},
			[]plan.Task{failed("", &plan.Exit{Code: 7}), failed("", nil), failed(plan.ReasonTimeout, &plan.Exit{Code: 75})}},
		{"words", rules.BulkRetry, rules.TaskFilter{Reasons: []string{"timeout", "lost", "signal"}}, broken,
			[]plan.Task{failed(plan.ReasonTimeout, nil), failed(plan.ReasonLost, nil), failed(plan.ReasonSignal, &plan.Exit{Code: -1, Signal: "SIGKILL"})},
			[]plan.Task{failed(plan.ReasonOutput, nil), failed("", &plan.Exit{Code: 1})}},
		{"a list takes any task", rules.ListTasks, rules.TaskFilter{}, nil, []plan.Task{{Status: plan.Succeeded}, {Plan: plan.PlanID{ID: plan.ID{1}}}}, nil},
		{"a list of some states, by an age", rules.ListTasks, rules.TaskFilter{States: []string{"succeeded", "queued"}, OlderThan: time.Hour}, []plan.Status{plan.Succeeded, plan.Queued},
			[]plan.Task{{Status: plan.Succeeded, Created: now.Add(-time.Hour)}}, []plan.Task{{Status: plan.Succeeded, Created: now}}},
		{"all at once", rules.BulkRetry, rules.TaskFilter{Queue: queue, States: []string{"failed"}, OlderThan: time.Minute, Reasons: []string{"error"}}, []plan.Status{plan.Failed},
			[]plan.Task{failed(plan.ReasonError, nil)}, []plan.Task{{Status: plan.Failed, Reason: plan.ReasonError, Created: now}, failed(plan.ReasonFatal, nil)}},
		{"what waits for another attempt, by how the last one failed", rules.BulkSet, rules.TaskFilter{Reasons: []string{"timeout"}}, waiting,
			[]plan.Task{{Status: plan.Held, Reason: plan.ReasonTimeout}}, []plan.Task{{Status: plan.Held}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			statuses, keep, err := c.filter.Choose(c.what)
			if err != nil || !slices.Equal(statuses, c.statuses) {
				t.Fatalf("it asks for %v (%v), want %v", statuses, err, c.statuses)
			}
			for i := range c.kept {
				if !keep(&c.kept[i], now) {
					t.Errorf("it leaves out %+v", c.kept[i])
				}
			}
			for i := range c.not {
				if keep(&c.not[i], now) {
					t.Errorf("it takes %+v", c.not[i])
				}
			}
		})
	}
}

func TestAFilterThatIsNoneIsRefused(t *testing.T) {
	for _, c := range []struct {
		name, condition, wrong string
		what                   rules.Bulk
		filter                 rules.TaskFilter
	}{
		{name: "nothing", what: rules.BulkCancel, wrong: "the filter names nothing, and would take every task"},
		{name: "an empty list of states", what: rules.BulkRetry, filter: rules.TaskFilter{States: []string{}}, wrong: "names nothing"},
		{name: "an unknown state", what: rules.BulkCancel, filter: rules.TaskFilter{States: []string{"runing"}}, condition: "state", wrong: `"runing" is not a task's state`},
		{name: "a state that does not fit", what: rules.BulkCancel, filter: rules.TaskFilter{States: []string{"queued", "failed"}}, condition: "state", wrong: "failed: no cancel is made"},
		{name: "a change of what runs", what: rules.BulkSet, filter: rules.TaskFilter{States: []string{"running"}}, condition: "state", wrong: "it takes those that are waiting, queued"},
		{name: "a retry of what waits", what: rules.BulkRetry, filter: rules.TaskFilter{States: []string{"-4"}}, condition: "state", wrong: "waiting: no retry is made"},
		{name: "a retry of what succeeded", what: rules.BulkRetry, filter: rules.TaskFilter{States: []string{"1"}}, condition: "state", wrong: "succeeded: no retry is made"},
		{name: "a long subject", what: rules.BulkCancel, filter: rules.TaskFilter{Subject: strings.Repeat("x", 201)}, condition: "subject", wrong: "201 bytes"},
		{name: "a negative age", what: rules.BulkCancel, filter: rules.TaskFilter{OlderThan: -1}, condition: "older_than", wrong: "negative"},
		{name: "an exit status of success", what: rules.BulkRetry, filter: rules.TaskFilter{Reasons: []string{"1", "0"}}, condition: "reason", wrong: `"0" is no way to fail; give exit statuses`},
		{name: "an unknown reason", what: rules.BulkRetry, filter: rules.TaskFilter{Reasons: []string{"bored"}}, condition: "reason", wrong: "timeout, signal, lost"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := c.filter.Choose(c.what)
			if err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Fatalf("got %v, want %q", err, c.wrong)
			}
			var of *rules.FilterError
			switch is := errors.As(err, &of); {
			case c.condition == "" && !errors.Is(err, rules.ErrNoCondition):
				t.Errorf("%v is not ErrNoCondition", err)
			case c.condition != "" && (!is || of.Condition != c.condition):
				t.Errorf("%v is not of %s", err, c.condition)
			}
		})
	}
}

func TestTheQueuesOfAGroup(t *testing.T) {
	id := func(n byte) plan.QueueID { return plan.QueueID{ID: plan.ID{n}} }
	groups := []plan.Group{{Name: "acme"}, {Name: "mail", GroupSettings: plan.GroupSettings{Parent: "acme"}}, {Name: "empty"}}
	queues := []plan.Queue{{ID: id(1), Name: "imap"}, {ID: id(2), Name: "files"}, {ID: id(3), Name: "free"}}
	queues[0].Group, queues[1].Group = "mail", "acme"
	for _, c := range []struct {
		group string
		want  map[plan.QueueID]bool
	}{
		{"acme", map[plan.QueueID]bool{id(1): true, id(2): true}},
		{"mail", map[plan.QueueID]bool{id(1): true}},
		{"empty", map[plan.QueueID]bool{}},
	} {
		if got, err := rules.FilterQueues(groups, queues, c.group); err != nil || !maps.Equal(got, c.want) {
			t.Errorf("%s: %v (%v), want %v", c.group, got, err, c.want)
		}
	}
	if got, err := rules.FilterQueues(groups, queues, "acne"); !errors.Is(err, plan.ErrNotFound) || got != nil {
		t.Errorf("an unknown group: %v, %v; want that it is not found", got, err)
	}
}
