package cli

import (
	"slices"
	"testing"

	"github.com/seed-1177d267/sluice/plan"
)

// TestForesee retries what failed in a plan of
//
//	list ─► copy[0..2] ─► verify ─► report (all_done)
//	                 └──► clean-up (any_failed)
func TestForesee(t *testing.T) {
	id := func(n byte) plan.TaskID { return plan.TaskID{ID: plan.ID{n}} }
	task := func(n byte, name string, s plan.Status, needs ...plan.TaskID) plan.Task {
		return plan.Task{ID: id(n), Name: name, Status: s, Needs: needs}
	}
	tasks := func(list, copy1, report plan.Status) []plan.Task {
		all := []plan.Task{
			task(1, "list", list), task(2, "copy", plan.Failed, id(1)),
			task(3, "copy[0]", plan.Succeeded), task(4, "copy[1]", copy1), task(5, "copy[2]", plan.Succeeded),
			task(6, "verify", plan.Cancelled, id(2)), task(7, "clean-up", plan.Succeeded, id(2)), task(8, "report", report, id(6)),
		}
		all[1].Foreach, all[1].Expanded, all[1].Items, all[1].Reason = &plan.Foreach{}, true, 3, plan.ReasonItems
		all[5].Reason = plan.ReasonSkipped
		for i := 2; i < 5; i++ {
			all[i].Of, all[i].Index = id(2), i-2
		}
		return all
	}
	plain := tasks(plan.Succeeded, plan.Failed, plan.Succeeded)
	halfway := tasks(plan.Succeeded, plan.Failed, plan.Succeeded)
	halfway[1].Expanded = false
	for _, c := range []struct {
		name       string
		tasks      []plan.Task
		chosen     []plan.TaskID
		downstream bool

		again, kept, dropped []string
	}{
		{
			"what succeeded below is kept, at any depth", plain, nil, false,
			[]string{"copy", "copy[1]", "verify"}, []string{"clean-up", "report"}, nil,
		},
		{
			"with downstream nothing is kept", plain, nil, true,
			[]string{"copy", "copy[1]", "verify", "clean-up", "report"}, nil, nil,
		},
		{
			"of what is named what failed below by itself is kept", tasks(plan.Succeeded, plan.Failed, plan.Failed), []plan.TaskID{id(2)}, false,
			[]string{"copy", "copy[1]", "verify"}, []string{"clean-up", "report"}, nil,
		},
		{
			"when the list is made again all items are dropped", plain, []plan.TaskID{id(1)}, true,
			[]string{"list", "copy", "verify", "clean-up", "report"}, nil, []string{"copy[0]", "copy[1]", "copy[2]"},
		},
		{
			"items that were not all in are dropped", halfway, nil, false,
			[]string{"copy", "verify"}, []string{"clean-up", "report"}, []string{"copy[0]", "copy[1]", "copy[2]"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			selected, err := plan.SelectRetry(c.tasks, c.chosen, c.downstream)
			if err != nil {
				t.Fatal(err)
			}
			f := foresee(c.tasks, selected)
			for _, kind := range []struct {
				name string
				got  []plan.Task
				want []string
			}{{"again", f.again, c.again}, {"kept", f.kept, c.kept}, {"dropped", f.dropped, c.dropped}} {
				var got []string
				for _, t := range kind.got {
					got = append(got, t.Name)
				}
				if !slices.Equal(got, kind.want) {
					t.Errorf("%s: %q, want %q", kind.name, got, kind.want)
				}
			}
		})
	}
}

// TestReacted looks at plans of
//
//	list ─► copy ─► verify ─► switch ─► report (all_done)
//	          └───────┴─► clean-up (any_failed)
func TestReacted(t *testing.T) {
	id := func(n byte) plan.TaskID { return plan.TaskID{ID: plan.ID{n}} }
	task := func(n byte, name string, w plan.When, s plan.Status, needs ...plan.TaskID) plan.Task {
		return plan.Task{ID: id(n), Name: name, Status: s, Needs: needs, Definition: plan.Definition{When: w}}
	}
	tasks := func(list, copied, verify, cleanUp, report plan.Status) []plan.Task {
		return []plan.Task{
			task(1, "list", "", list), task(2, "copy", "", copied, id(1)), task(3, "verify", "", verify, id(2)),
			task(4, "switch", "", plan.Cancelled, id(3)), task(5, "clean-up", plan.AnyFailed, cleanUp, id(2), id(3)),
			task(6, "report", plan.AllDone, report, id(1), id(3), id(4), id(5)),
		}
	}
	const yes, no, skipped = plan.Succeeded, plan.Failed, plan.Cancelled
	items := tasks(yes, no, skipped, yes, yes)
	items[1].Foreach, items[1].Expanded = &plan.Foreach{}, true
	files := tasks(yes, no, skipped, yes, yes)
	files[1].Foreach, files[1].Expanded, files[1].Needs = &plan.Foreach{Glob: "*"}, true, nil
	for _, c := range []struct {
		name                 string
		tasks                []plan.Task
		ran, cleaned, undone []string
	}{
		{"a clean-up may have undone what succeeded above it", tasks(yes, yes, no, yes, yes), []string{"clean-up", "report"}, []string{"clean-up"}, []string{"copy"}},
		{"what failed itself runs again anyway", tasks(yes, no, skipped, yes, yes), []string{"clean-up", "report"}, nil, nil},
		{"items that succeeded run again if their task is named", items, []string{"clean-up", "report"}, []string{"clean-up"}, []string{"copy"}},
		{"items of files as well", files, []string{"clean-up", "report"}, []string{"clean-up"}, []string{"copy"}},
		{"a report undoes nothing", tasks(yes, yes, no, skipped, yes), []string{"report"}, nil, nil},
		{"what failed below runs again by itself", tasks(yes, yes, no, no, no), nil, nil, nil},
		{"where all succeeded there is nothing to react to", tasks(yes, yes, yes, skipped, yes)[:3], nil, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := reacted(c.tasks, func(t *plan.Task) bool { return t.Status != plan.Succeeded })
			if !slices.Equal(got.Ran, c.ran) || !slices.Equal(got.Cleaned, c.cleaned) || !slices.Equal(got.Undone, c.undone) {
				t.Errorf("got %+v; want %v, cleaned %v, undone %v", got, c.ran, c.cleaned, c.undone)
			}
		})
	}
}
