package rules_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

func TestForesee(t *testing.T) {
	items := []string{
		"list", "copy: list = failed", "copy[0] of copy", "copy[1] of copy = failed", "copy[2] of copy", "verify: copy = skipped",
		"clean-up when any_failed: copy", "report when all_done: verify",
	}
	undo := func(backup, change, state string) []string {
		return []string{
			"list", "backup: list = " + backup, "change: backup = " + change, "switch: change = skipped",
			"undo when any_failed: backup, change = " + state, "report when all_done: list, change, switch, undo",
		}
	}
	for _, c := range []struct {
		name       string
		tasks      []string
		chosen     string
		downstream bool
		whole      bool // the items of foreach tasks are all in

		again, kept, dropped, cleaned, undone, skipped, stopped, missing string
	}{
		{
			name: "what depends on a failure is asked again, and items that succeeded stay", tasks: items, whole: true,
			again: "copy copy[1] verify clean-up report", cleaned: "clean-up", undone: "list",
		},
		{
			name: "a roll-back of finally may have undone all that is kept", whole: true,
			tasks: []string{"copy", "switch: copy = failed", "finally rollback when any_failed", "finally tell when all_done: rollback"},
			again: "switch rollback tell", cleaned: "rollback", undone: "copy",
		},
		{
			name: "with downstream what is above is kept, and may be undone", tasks: items, chosen: "copy", downstream: true, whole: true,
			again: "copy copy[0] copy[1] copy[2] verify clean-up report", cleaned: "clean-up", undone: "list",
		},
		{
			name: "what succeeded below by itself is kept", tasks: []string{"a = failed", "b: a", "c: b"}, chosen: "a", whole: true,
			again: "a", kept: "b c",
		},
		{
			name: "when the list is made again all items are dropped", tasks: items, chosen: "list", downstream: true, whole: true,
			again: "list copy verify clean-up report", dropped: "copy[0] copy[1] copy[2]",
		},
		{
			name: "items that were not all in are dropped", tasks: items,
			again: "copy verify clean-up report", dropped: "copy[0] copy[1] copy[2]", cleaned: "clean-up", undone: "list",
		},
		{
			name: "where items are left out, what goes along with a failure by items runs again", whole: true,
			tasks: []string{"copy = failed", "along: copy = skipped", "sum: copy, along = skipped"},
			again: "copy along sum",
		},
		{
			name: "without its items a foreach task counts as kept in part", whole: true,
			tasks: []string{"list", "copy: list = failed", "clean-up when any_failed: copy"},
			again: "copy clean-up", cleaned: "clean-up", undone: "list",
		},
		{
			name: "a foreach task of which nothing succeeded keeps nothing", whole: true,
			tasks: []string{"copy = failed", "copy[0] of copy = failed", "copy[1] of copy = failed", "clean-up when any_failed: copy"},
			again: "copy copy[0] copy[1] clean-up",
		},
		{
			name: "a clean-up may have undone what succeeded above it", tasks: undo("succeeded", "failed", "succeeded"),
			again: "change switch undo report", cleaned: "undo", undone: "backup",
		},
		{
			name:  "a clean-up that needs what succeeded undoes that, and nothing above it",
			tasks: []string{"backup", "convert: backup", "index: backup = failed", "check: convert, index = skipped", "undo when any_failed: check, convert, index"},
			again: "index check undo", cleaned: "undo", undone: "convert index",
		},
		{
			name:   "once that runs again, nothing is undone",
			tasks:  []string{"backup", "convert: backup", "index: backup = failed", "check: convert, index = skipped", "undo when any_failed: check, convert, index"},
			chosen: "convert", downstream: true,
			again: "convert check undo", skipped: "check", missing: "index",
		},
		{
			name:   "what needs a failure that stays is skipped, with what needs that",
			tasks:  []string{"a = failed", "b = failed", "c: b = skipped", "d: a, c = skipped", "e: d = skipped", "mail when all_done: e", "f when none_failed: b, a = skipped"},
			chosen: "a", again: "a d e mail f", skipped: "d e f", missing: "b",
		},
		{
			name:   "what ran and cannot run again counts as stopped for its clean-up",
			tasks:  []string{"a = failed", "alter: a = terminated", "undo when any_failed: alter = cancelled", "other when any_skipped: alter = skipped"},
			chosen: "alter", again: "alter undo other", stopped: "alter", missing: "a",
		},
		{
			name:   "what needs a task that nothing made necessary is skipped, without a failure in the way",
			tasks:  []string{"a", "b when any_failed: a = skipped", "c: b = skipped", "d: c = skipped"},
			chosen: "c", again: "c d", skipped: "c d",
		},
		{
			name: "a clean-up may have undone what succeeded above what it needs", tasks: undo("failed", "skipped", "succeeded"),
			again: "backup change switch undo report", cleaned: "undo", undone: "list",
		},
		{
			name: "nor did one without items", whole: true,
			tasks: []string{"a", "b: a = failed", "none when any_failed: a, b"},
			again: "b none",
		},
		{
			name: "where nothing above a clean-up succeeded nothing was undone", tasks: []string{"a = failed", "b: a = skipped", "undo when any_failed: a, b"},
			again: "a b undo",
		},
		{
			name: "a clean-up that did not run undid nothing", tasks: undo("succeeded", "failed", "skipped"),
			again: "change switch undo report",
		},
		{
			name:  "what failed is named with what was undone, unless it is below it",
			tasks: []string{"a", "b: a = failed", "c = failed", "undo when any_failed: a, b, c"},
			again: "b c undo", cleaned: "undo", undone: "a c",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			tasks := graph(c.tasks...)
			for i := range tasks {
				switch tasks[i].Name {
				case "copy":
					tasks[i].Foreach, tasks[i].Expanded, tasks[i].Items = &plan.Foreach{}, c.whole, 3
				case "none":
					tasks[i].Foreach, tasks[i].Expanded = &plan.Foreach{}, true
				case "along":
					tasks[i].Foreach, tasks[i].Expanded, tasks[i].Items = &plan.Foreach{Each: []string{"copy"}}, c.whole, 3
				}
				if _, index, is := strings.Cut(tasks[i].Name, "["); is {
					tasks[i].Index = int(index[0] - '0')
				}
			}
			var chosen []plan.TaskID
			if c.chosen != "" {
				chosen = append(chosen, tasks[slices.IndexFunc(tasks, func(t plan.Task) bool { return t.Name == c.chosen })].ID)
			}
			selected, err := rules.SelectRetry(tasks, chosen, c.downstream)
			if err != nil {
				t.Fatal(err)
			}
			f := rules.Foresee(tasks, selected)
			for _, list := range []struct {
				name string
				got  []plan.Task
				want string
			}{{"again", f.Again, c.again}, {"kept", f.Kept, c.kept}, {"dropped", f.Dropped, c.dropped}, {"cleaned", f.Cleaned, c.cleaned}, {"undone", f.Undone, c.undone}, {"skipped", f.Skipped, c.skipped}, {"stopped", f.Stopped, c.stopped}, {"missing", f.Missing, c.missing}} {
				var got []string
				for _, t := range list.got {
					got = append(got, t.Name)
				}
				if strings.Join(got, " ") != list.want {
					t.Errorf("%s: %q, want %q", list.name, got, list.want)
				}
			}
		})
	}
}
