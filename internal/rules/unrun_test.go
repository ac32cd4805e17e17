package rules_test

import (
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

func TestUnrun(t *testing.T) {
	for _, c := range []struct {
		name           string
		tasks          []string
		closing        plan.Closing
		unrun, running string
	}{
		{"a clean-up below what runs", []string{"a = running", "undo when any_failed: a = held"}, plan.Open, "undo", "a"},
		{"also behind what is skipped then", []string{"a = running", "b: a = held", "undo when any_failed: a, b = held", "b-undo when any_failed: b = held"}, plan.Open, "undo", "a"},
		{"and what always runs", []string{"a = queued", "b: a = held", "report when all_done: b = held"}, plan.Open, "report", ""},
		{"but not a clean-up where nothing would fail", []string{"a", "b: a = queued", "undo when any_failed: a, b = held"}, plan.Open, "", ""},
		{"nor what has run", []string{"a = failed", "undo when any_failed: a", "mail when any_failed: a = failed"}, plan.ClosedByPerson, "", ""},
		{"a clean-up that runs would be stopped, and is not to be", []string{"a = failed", "undo when any_failed: a = running", "told: undo = held", "b = running"}, plan.Open, "undo", "b"},
		{"and is no reason for the clean-up of a clean-up", []string{"a = failed", "undo when any_failed: a = running", "alert when any_failed: undo = held"}, plan.Open, "undo", ""},
		{"nor is one that waits for another attempt", []string{"a = failed", "began-undo when any_failed: a = queued", "alert when any_failed: began-undo = held"}, plan.Open, "began-undo", ""},
		{"one that was stopped", []string{"a = failed", "undo when any_failed: a = terminated", "told: undo = cancelled", "alert when any_failed: undo = cancelled", "log when all_done: told = cancelled"}, plan.ClosedByPerson, "undo log", ""},
		{"of which an item was stopped", []string{"a = failed", "undo when any_failed: a = failed", "undo[0] of undo = terminated"}, plan.ClosedByFailure, "undo", ""},
		{"but not what a person stopped while the plan went on", []string{"a = failed", "undo when any_failed: a = terminated", "b = running"}, plan.Open, "", "b"},
		{"nor work of the plan, whose clean-up is named", []string{"a", "alter when none_failed: a = terminated", "undo when any_failed: alter = cancelled"}, plan.ClosedByPerson, "undo", ""},
		{"nor what a person had cancelled", []string{"a = failed", "undo when any_failed: a = cancelled", "b = running"}, plan.Open, "", "b"},
		{"which in a plan that was closed was to run", []string{"a = failed", "undo when any_failed: a = skipped", "b = cancelled", "late when all_done: b = cancelled"}, plan.ClosedByPerson, "undo late", ""},
		{"a foreach task stands for its items", []string{"copy = held", "copy[0] of copy = running", "copy[1] of copy = queued", "undo when any_failed: copy = held"}, plan.Open, "undo", "copy"},
		{"which does not run while all of them wait, but may have run before", []string{"copy = held", "copy[0] of copy = queued", "copy[1] of copy", "undo when any_failed: copy = held"}, plan.Open, "undo", ""},
		{"or an item that waits for another attempt", []string{"copy = held", "began-copy[0] of copy = held", "undo when any_failed: copy = held"}, plan.Open, "undo", ""},
		{"but not if no item ran", []string{"copy = held", "copy[0] of copy = queued", "undo when any_failed: copy = held", "late when all_done: copy = held"}, plan.Open, "late", ""},
		{"nor if a node only claimed the task", []string{"a = claimed", "undo when any_failed: a = held"}, plan.Open, "", "a"},
		{"what was given back ran, and what only waits did not", []string{"began-a = queued", "b = queued", "undo-a when any_failed: began-a = held", "undo-b when any_failed: b = held"}, plan.Open, "undo-a", ""},
		{"nothing that only a failure below would lead to", []string{"a = running", "b = queued", "mail when none_failed: b = held", "all when all_failed: a, b = held"}, plan.Open, "", "a"},
		{"what a clean-up leads to runs with it", []string{"a = running", "undo when any_failed: a = held", "told: undo = held", "log when any_succeeded: told = held"}, plan.Open, "undo log", "a"},
		{"a failure that is allowed asks for no clean-up", []string{"allowed = running", "undo when any_failed: allowed = held", "late when all_done: allowed = held"}, plan.Open, "late", "allowed"},
		{"a plan that a failure closed skips the rest", []string{"a = failed", "began-b = running", "c = skipped", "undo when any_failed: began-b = held", "rest when any_skipped: c = skipped"}, plan.ClosedByFailure, "undo rest", "began-b"},
		{"a task of finally is neither left out nor to be stopped", []string{"a = failed", "finally undo when any_failed = running", "finally tell: undo = held"}, plan.Open, "", ""},
		{"what a clean-up leads to is no clean-up", []string{"a = running", "undo when any_failed: a = held", "told: undo = held"}, plan.Open, "undo", "a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tasks := graph(c.tasks...)
			for i := range tasks {
				tasks[i].Expanded, tasks[i].ContinueOnError = tasks[i].Name == "copy", tasks[i].Name == "allowed"
				if strings.HasPrefix(tasks[i].Name, "began-") {
					tasks[i].Ran = true
				}
			}
			unrun, running := rules.Unrun(tasks, c.closing)
			for _, list := range []struct {
				name string
				got  []plan.Task
				want string
			}{{"unrun", unrun, c.unrun}, {"running", running, c.running}} {
				var got []string
				for i := range list.got {
					got = append(got, list.got[i].Name)
				}
				if strings.Join(got, " ") != list.want {
					t.Errorf("%s: %q, want %q", list.name, got, list.want)
				}
			}
		})
	}
}
