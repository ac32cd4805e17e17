package memory

import (
	"bytes"
	"cmp"
	"container/heap"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/seed-1177d267/sluice/plan"
)

// Damage changes some of what the store keeps beside the states of tasks and plans.
func (s *Store) Damage(r *rand.Rand) (did []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	say := func(format string, args ...any) { did = append(did, fmt.Sprintf(format, args...)) }
	one := func() bool { return r.IntN(3) == 0 }
	counter := func(n *int, what string, args ...any) {
		if one() {
			was := *n
			*n += r.IntN(5) - 2
			say("%s: %d in place of %d", fmt.Sprintf(what, args...), *n, was)
		}
	}
	for s.due.head < len(s.due.tasks) && one() {
		say("%s is not due", s.due.pop().Name)
	}
	for _, p := range slices.SortedFunc(maps.Values(s.plans), func(a, b *planRow) int { return cmp.Compare(a.n, b.n) }) {
		if p.State.Ended() {
			continue
		}
		for _, n := range []*int{&p.Counts.Held, &p.Counts.Queued, &p.Counts.Running, &p.Counts.Succeeded, &p.Counts.Allowed, &p.Counts.Gathering, &p.Counts.Cancelled} {
			counter(n, "a count of plan %d", p.n)
		}
		if one() {
			delete(s.submitting, p.ID)
			say("plan %d is not listed as being submitted", p.n)
		}
	}
	for _, q := range slices.SortedFunc(maps.Values(s.queues), func(a, b *queue) int { return cmp.Compare(a.Name, b.Name) }) {
		counter(&q.Queued, "queued of %s", q.Name)
		counter(&q.Active, "active of %s", q.Name)
		for _, p := range s.plans {
			if l := q.lanes[p.ID]; l != nil && p.n%2 == 0 {
				l.closed = !l.closed
				l.moved()
			}
		}
	}
	for _, t := range slices.SortedFunc(maps.Values(s.tasks), func(a, b *task) int { return bytes.Compare(a.ID.ID[:], b.ID.ID[:]) }) {
		if t.Status.Finished() {
			continue
		}
		counter(&t.waiting, "parents that %s waits for", t.Name)
		counter(&t.done, "items of %s that ended", t.Name)
		counter(&t.failed, "items of %s that failed", t.Name)
		counter(&t.bytes, "bytes of items of %s", t.Name)
		if one() {
			t.seen ^= plan.Outcome(r.IntN(16))
			say("%s has seen %v", t.Name, t.seen)
		}
		switch {
		case !one():
		case t.delayed:
			heap.Remove(&s.delays, t.due)
			t.delayed = false
			say("%s waits for no instant", t.Name)
		case t.lane != nil:
			heap.Remove(t.lane, t.pos)
			t.lane.moved()
			t.lane = nil
			say("%s is in no lane", t.Name)
		case t.Status.Active() && r.IntN(2) == 0:
			t.Instance = plan.InstanceID{ID: plan.NewID(t.Created)}
			say("%s is owned by nobody who is there", t.Name)
		case t.Status.Active():
			if i := s.instances[t.Instance]; i != nil {
				delete(i.tasks, t.ID)
				say("%s is not listed by its owner", t.Name)
			}
		default:
			s.due.push(t)
			say("%s is due", t.Name)
		}
	}
	return did
}
