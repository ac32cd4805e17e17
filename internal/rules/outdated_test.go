package rules

import (
	"slices"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/plan"
)

func TestOutdated(t *testing.T) {
	id := func(n byte) plan.TaskID { return plan.TaskID{ID: plan.ID{n}} }
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	// task ran from second to second; one that began at 0 has no beginning, as a foreach task without a list to make.
	task := func(n byte, name string, s plan.Status, from, to int, needs ...plan.TaskID) plan.Task {
		t := plan.Task{ID: id(n), Name: name, Status: s, Needs: needs, Ended: began.Add(time.Duration(to) * time.Second)}
		if from > 0 {
			t.Started = began.Add(time.Duration(from) * time.Second)
		}
		return t
	}
	const yes, no, skipped = plan.Succeeded, plan.Failed, plan.Cancelled
	for _, c := range []struct {
		name  string
		tasks []plan.Task
		want  []string
	}{
		{"in the order of the plan nothing is", []plan.Task{task(1, "a", yes, 1, 2), task(2, "b", yes, 2, 2, id(1)), task(3, "c", yes, 3, 4, id(2))}, nil},
		{"what ended before a parent ran again is", []plan.Task{task(1, "a", yes, 5, 6), task(2, "sum", yes, 3, 4, id(1))}, []string{"sum"}},
		{"also if that failed again", []plan.Task{task(1, "a", no, 5, 6), task(2, "sum", yes, 3, 4, id(1))}, []string{"sum"}},
		{"or is a foreach task", []plan.Task{task(1, "a", yes, 0, 6), task(2, "sum", yes, 3, 4, id(1))}, []string{"sum"}},
		{"what is below that is so by it", []plan.Task{task(1, "a", yes, 5, 6), task(2, "sum", yes, 3, 4, id(1)), task(3, "c", yes, 4, 5, id(2))}, []string{"sum"}},
		{"a parent that was skipped again gives nothing, as before", []plan.Task{task(1, "a", skipped, 0, 6), task(2, "sum", yes, 3, 4, id(1))}, nil},
		{"what ran again itself is not", []plan.Task{task(1, "a", yes, 5, 6), task(2, "sum", yes, 7, 8, id(1))}, nil},
		{"what did not succeed has no output", []plan.Task{task(1, "a", yes, 5, 6), task(2, "sum", no, 3, 4, id(1))}, nil},
		{"a clock that was set back is no retry", []plan.Task{task(1, "a", yes, 2, 6), task(2, "sum", yes, 3, 4, id(1))}, nil},
		{"a parent that is gone is not known", []plan.Task{task(2, "sum", yes, 3, 4, id(1))}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, t := range Outdated(c.tasks) {
				got = append(got, t.Name)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
