package bench

import (
	"testing"
	"time"
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
