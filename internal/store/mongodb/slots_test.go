package mongodb

import (
	"math"
	"slices"
	"testing"
)

func TestTheLowestFreeSlotsAreClaimed(t *testing.T) {
	at := func(slots ...int) (active []taskDoc) {
		for _, n := range slots {
			active = append(active, taskDoc{Slot: n})
		}
		return active
	}
	for _, c := range []struct {
		name          string
		active        []taskDoc
		threads, want int
		free          []int
	}{
		{"all are free", nil, 3, 9, []int{1, 2, 3}},
		{"no more than are asked for", nil, math.MaxInt, 2, []int{1, 2}},
		{"between those that are taken", at(2, 4), 6, 9, []int{1, 3, 5, 6}},
		{"a task without a slot uses up the highest", at(0, 2), 4, 9, []int{1, 3}},
		{"so does one beyond a limit that was lowered", at(1, 7), 3, 9, []int{2}},
		{"none is left", at(1, 0, 0), 2, 9, []int{}},
		{"a queue that is paused", nil, 0, 9, []int{}},
		{"a limit that means nothing", at(1), math.MinInt, 9, []int{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := lowestFree(c.active, queueSlot, c.threads, c.want); !slices.Equal(got, c.free) {
				t.Errorf("got %v, want %v", got, c.free)
			}
		})
	}
}
