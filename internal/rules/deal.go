package rules

import (
	"cmp"
	"slices"

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
func Deal[K comparable](shares map[K]protocol.Share, n, among int, compare func(a, b K) int) (dealt []K) {
	forget(shares)
	type dealer struct {
		key K
		protocol.Share
	}
	order := func(a, b dealer) int { return cmp.Or(cmp.Compare(a.Passed, b.Passed), compare(a.key, b.key)) }
	var all []dealer
	for k, s := range shares {
		if !s.Away {
			all = append(all, dealer{k, s})
		}
	}
	slices.SortFunc(all, order)
	for all = all[:min(len(all), among)]; len(all) > 0 && len(dealt) < n; {
		next := &all[0]
		for i := range all {
			if order(all[i], *next) < 0 {
				next = &all[i]
			}
		}
		dealt = append(dealt, next.key)
		next.Passed += 1 / float64(next.Weight)
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
