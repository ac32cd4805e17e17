package main

import (
	"slices"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/compiler"
)

func TestListSchedule(t *testing.T) {
	ms := func(n ...int) []time.Duration {
		var all []time.Duration
		for _, m := range n {
			all = append(all, time.Duration(m)*time.Millisecond)
		}
		return all
	}
	for _, c := range []struct {
		name  string
		graph graph
		slots int
		want  time.Duration
	}{
		{"nothing takes no time", graph{}, 4, 0},
		{"a chain takes the sum whatever the slots", graph{chain(3).needs, ms(5, 7, 9)}, 4, 21 * time.Millisecond},
		{"what needs nothing fills the slots", graph{flat(5).needs, ms(10, 10, 10, 10, 10)}, 2, 30 * time.Millisecond},
		// By number the chain of tasks 2 and 3 would start after tasks 0 and 1 and end at 30 ms.
		{"the longest path goes first", graph{[][]int{nil, nil, nil, {2}}, ms(10, 10, 10, 10)}, 2, 20 * time.Millisecond},
		{"a join waits for its last parent", graph{[][]int{nil, nil, {0, 1}}, ms(3, 8, 4)}, 2, 12 * time.Millisecond},
		// Longest first is not always best: 5+3+3 and 4+3 would end at 9 as 5+4 and 3+3+3.
		{"it is greedy, not optimal", graph{flat(5).needs, ms(5, 4, 3, 3, 3)}, 2, 10 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.graph.listSchedule(c.slots); got != c.want {
				t.Errorf("makespan %v, want %v", got, c.want)
			}
		})
	}
}

func TestGraphsHaveTheShapeTheyAreNamedFor(t *testing.T) {
	for _, c := range []struct {
		name         string
		graph        *graph
		tasks, edges int
	}{
		{"flat", flat(10), 10, 0},
		{"chain", chain(10), 10, 9},
		{"layered: all but the first layer have three parents", layered(40, 10), 40, 90},
		{"fan-out", fanOut(10), 10, 9},
		{"fan-out and in", fanOutIn(10), 12, 20},
		{"stress: all but the first ten have ten parents", stress(100, 10), 100, 900},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.graph.tasks() != c.tasks || c.graph.edges() != c.edges {
				t.Errorf("%d tasks and %d needs, want %d and %d", c.graph.tasks(), c.graph.edges(), c.tasks, c.edges)
			}
			for i, parents := range c.graph.needs {
				seen := slices.Compact(slices.Sorted(slices.Values(parents)))
				if len(seen) != len(parents) || len(seen) > 0 && seen[len(seen)-1] >= i {
					t.Errorf("task %d needs %v: each once, and only tasks before it", i, parents)
				}
			}
			if err := compiler.Validate(c.graph.spec("test", "noop")); err != nil {
				t.Errorf("its plan is not valid: %v", err)
			}
		})
	}
}
