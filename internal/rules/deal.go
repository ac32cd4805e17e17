package rules

import (
	"container/heap"

	"github.com/seed-1177d267/sluice/den/protocol"
)

// Candidates for the threads of a node take turns by start-time fair queueing (Goyal, Vin and
// Cheng, SIGCOMM 1996). A candidate has passed as far as its starts, divided by its weight. The next
// start goes to the candidate that has passed least.

// JoinTurns takes note that a candidate has work, and of its weight. A candidate that comes anew, or
// back, begins where the least of the others is, or where it was if that is further. So nobody
// collects turns without work, and nobody gets more turns by coming and going.
func JoinTurns[K comparable](shares map[K]protocol.Share, k K, weight int) {
	s, known := shares[k]
	if !known || s.Away {
		if least, any := leastPassed(shares); any {
			s.Passed = max(s.Passed, least)
		}
	}
	s.Weight, s.Away = weight, false
	shares[k] = s
}

// LeaveTurns takes note that a candidate has no work.
func LeaveTurns[K comparable](shares map[K]protocol.Share, k K) {
	if s, known := shares[k]; known {
		s.Away = true
		shares[k] = s
	}
}

// MostDealt is among how many candidates one claim deals its starts: each costs it a look of its own.
// The others have passed less than these after it, so that the next claims are theirs.
const MostDealt = 16

// Deal returns who gets the next n starts, in order, among up to so many candidates; none if nobody
// has work. Candidates that have passed as much come in the order of compare. Deal counts nothing:
// see PassTurn. It forgets candidates without work whom the others have caught up with.
func Deal[K comparable](shares map[K]protocol.Share, n, among int, compare func(a, b K) int) []K {
	forget(shares)
	h := dealing[K]{compare: compare}
	for k, s := range shares {
		if !s.Away {
			h.all = append(h.all, dealer[K]{key: k, Share: s})
		}
	}
	if len(h.all) == 0 || n <= 0 || among <= 0 {
		return nil
	}
	heap.Init(&h)
	dealt := make([]K, 0, n)
	for len(dealt) < n {
		next := &h.all[0]
		if !next.dealt && among == 0 {
			heap.Pop(&h)
			continue
		}
		if !next.dealt {
			next.dealt, among = true, among-1
		}
		dealt = append(dealt, next.key)
		next.Passed += 1 / float64(next.Weight)
		heap.Fix(&h, 0)
	}
	return dealt
}

// AnyTurns reports whether anybody has work.
func AnyTurns[K comparable](shares map[K]protocol.Share) bool {
	_, any := leastPassed(shares)
	return any
}

// PassTurn counts n starts of a candidate.
func PassTurn[K comparable](shares map[K]protocol.Share, k K, n int) {
	if s, known := shares[k]; known {
		s.Passed += float64(n) / float64(s.Weight)
		shares[k] = s
	}
}

// forget drops candidates without work whom the others have caught up with, and all if nobody has work.
func forget[K comparable](shares map[K]protocol.Share) {
	least, any := leastPassed(shares)
	for k, s := range shares {
		if s.Away && (!any || s.Passed <= least) {
			delete(shares, k)
		}
	}
}

// leastPassed returns the least that one with work has passed.
func leastPassed[K comparable](shares map[K]protocol.Share) (least float64, any bool) {
	for _, s := range shares {
		if !s.Away && (!any || s.Passed < least) {
			least, any = s.Passed, true
		}
	}
	return least, any
}

type dealer[K any] struct {
	key K
	protocol.Share
	dealt bool // a start
}

// dealing is a heap whose first is who gets the next start.
type dealing[K any] struct {
	all     []dealer[K]
	compare func(a, b K) int
}

func (h *dealing[K]) Len() int      { return len(h.all) }
func (h *dealing[K]) Swap(i, j int) { h.all[i], h.all[j] = h.all[j], h.all[i] }
func (h *dealing[K]) Push(any)      { panic("nobody joins while turns are dealt") }
func (h *dealing[K]) Pop() any {
	last := h.all[len(h.all)-1]
	h.all = h.all[:len(h.all)-1]
	return last
}
func (h *dealing[K]) Less(i, j int) bool {
	a, b := &h.all[i], &h.all[j]
	if a.Passed != b.Passed {
		return a.Passed < b.Passed
	}
	return h.compare(a.key, b.key) < 0
}
