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
		closed         bool
		unrun, running string
	}{
		{"a clean-up below what runs", []string{"a = running", "undo when any_failed: a = held"}, false, "undo", "a"},
		{"also behind what is skipped then", []string{"a = running", "b: a = held", "undo when any_failed: a, b = held", "b-undo when any_failed: b = held"}, false, "undo", "a"},
		{"and what always runs", []string{"a = queued", "b: a = held", "report when all_done: b = held"}, false, "report", ""},
		{"but not a clean-up where nothing would fail", []string{"a", "b: a = queued", "undo when any_failed: a, b = held"}, false, "", ""},
		{"nor what has run, or runs", []string{"a = failed", "undo when any_failed: a", "mail when any_failed: a = running"}, false, "", "mail"},
		{"nor what a person had cancelled", []string{"a = failed", "undo when any_failed: a = cancelled", "b = running"}, false, "", "b"},
		{"which in a plan that was closed was to run", []string{"a = failed", "undo when any_failed: a = skipped", "b = cancelled", "late when all_done: b = cancelled"}, true, "undo late", ""},
		{"a foreach task stands for its items", []string{"copy = held", "copy[0] of copy = running", "copy[1] of copy = queued", "undo when any_failed: copy = held"}, false, "undo", "copy"},
		{"which does not run while all of them wait, but may have run before", []string{"copy = held", "copy[0] of copy = queued", "copy[1] of copy", "undo when any_failed: copy = held"}, false, "undo", ""},
		{"what a clean-up leads to is no clean-up", []string{"a = running", "undo when any_failed: a = held", "told: undo = held"}, false, "undo", "a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tasks := graph(c.tasks...)
			for i := range tasks {
				tasks[i].Expanded = tasks[i].Name == "copy"
			}
			unrun, running := rules.Unrun(tasks, c.closed)
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
