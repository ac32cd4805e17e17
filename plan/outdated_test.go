package plan

import (
	"slices"
	"testing"
	"time"
)

func TestOutdated(t *testing.T) {
	id := func(n byte) TaskID { return TaskID{ID: ID{n}} }
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	// task ran from second to second; one that began at 0 has no beginning, as a foreach task without a list to make.
	task := func(n byte, name string, s Status, from, to int, needs ...TaskID) Task {
		t := Task{ID: id(n), Name: name, Status: s, Needs: needs, Ended: began.Add(time.Duration(to) * time.Second)}
		if from > 0 {
			t.Started = began.Add(time.Duration(from) * time.Second)
		}
		return t
	}
	const yes, no, skipped = Succeeded, Failed, Cancelled
	for _, c := range []struct {
		name  string
		tasks []Task
		want  []string
	}{
		{"in the order of the plan nothing is", []Task{task(1, "a", yes, 1, 2), task(2, "b", yes, 2, 2, id(1)), task(3, "c", yes, 3, 4, id(2))}, nil},
		{"what ended before a parent ran again is", []Task{task(1, "a", yes, 5, 6), task(2, "sum", yes, 3, 4, id(1))}, []string{"sum"}},
		{"also if that failed again", []Task{task(1, "a", no, 5, 6), task(2, "sum", yes, 3, 4, id(1))}, []string{"sum"}},
		{"or is a foreach task", []Task{task(1, "a", yes, 0, 6), task(2, "sum", yes, 3, 4, id(1))}, []string{"sum"}},
		{"what is below that is so by it", []Task{task(1, "a", yes, 5, 6), task(2, "sum", yes, 3, 4, id(1)), task(3, "c", yes, 4, 5, id(2))}, []string{"sum"}},
		{"a parent that was skipped again gives nothing, as before", []Task{task(1, "a", skipped, 0, 6), task(2, "sum", yes, 3, 4, id(1))}, nil},
		{"what ran again itself is not", []Task{task(1, "a", yes, 5, 6), task(2, "sum", yes, 7, 8, id(1))}, nil},
		{"what did not succeed has no output", []Task{task(1, "a", yes, 5, 6), task(2, "sum", no, 3, 4, id(1))}, nil},
		{"a clock that was set back is no retry", []Task{task(1, "a", yes, 2, 6), task(2, "sum", yes, 3, 4, id(1))}, nil},
		{"a parent that is gone is not known", []Task{task(2, "sum", yes, 3, 4, id(1))}, nil},
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
