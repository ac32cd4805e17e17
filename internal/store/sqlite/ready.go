package sqlite

import (
	"maps"
	"slices"

	"github.com/seed-1177d267/sluice/plan"
)

// A transaction keeps the tasks that it queues in memory, and may claim them, before it writes any
// of them. Most released tasks are claimed at once, which saves a write of the row and one of the
// index of queued tasks.

// ranked is where in its queue a task of rank one is.
func (t *tx) ranked(queue int64) int64 {
	if t.queue(queue).Sort == plan.SortDefault {
		return -1
	}
	return 0
}

// newcomers returns what was queued here in a queue's lane, of one plan or (0) any, that is not stopped.
func (t *tx) newcomers(queue, lane, only int64) (found []candidate) {
	for _, delivered := range []bool{false, true} {
		for _, c := range t.ready[place{queue, lane, delivered}] {
			if p := t.plan(c.plan); (only == 0 || c.plan == only) && (p == nil || !p.stopped()) {
				found = append(found, c)
			}
		}
	}
	return found
}

// newIn counts what was queued here in a queue.
func (t *tx) newIn(queue int64) (count int) {
	for at, ns := range t.ready {
		if at.queue == queue {
			count += len(ns)
		}
	}
	return count
}

// takeNew takes tasks of a queue out of what was queued here, by where they were; the others, which earlier transactions queued, are written.
func (t *tx) takeNew(queue int64, ns []int64) (taken map[place][]int64, written []int64) {
	if t.newIn(queue) == 0 {
		return nil, ns
	}
	taken = map[place][]int64{}
	left := make(map[int64]bool, len(ns))
	for _, n := range ns {
		left[n] = true
	}
	for at, ready := range t.ready {
		if at.queue != queue {
			continue
		}
		kept := ready[:0]
		for _, c := range ready {
			if left[c.n] {
				delete(left, c.n)
				taken[at] = append(taken[at], c.n)
			} else {
				kept = append(kept, c)
			}
		}
		t.ready[at] = kept
	}
	return taken, slices.Collect(maps.Keys(left))
}

// flushReady writes what was queued and not claimed.
func (t *tx) flushReady() {
	for at, ready := range t.ready {
		if len(ready) == 0 {
			continue
		}
		ns := each(ready, func(c *candidate) int64 { return c.n })
		t.execEach(`UPDATE tasks SET `+isReady+`, gate = 0, flags = flags | ?, lane = ?, prio = rank * ?, instance = 0, not_before = 0, modified = ?
			WHERE n`, ns, at.flag(), at.lane, t.ranked(at.queue), t.now)
		t.ready[at] = ready[:0]
	}
}
