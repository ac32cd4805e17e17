package rules

import (
	"cmp"
	"math"
	"slices"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/plan"
)

// A Sharer is a queue that has a share of the threads of a node.
type Sharer struct {
	Queue   plan.QueueID
	Weight  int           // 0 counts as 1
	Groups  []*plan.Group // that it is in: see GroupsOf
	Room    int           // how many of its tasks may start now; 0: it has no work, or a limit holds it up
	Running int           // how many the node runs
}

// A Sharing deals the free threads of a node to queues, by the weights of these and of their groups:
// see Deal. Each group deals what it is dealt to the queues and groups in it. Like plans, up to
// MostDealt queues get the starts of a claim, and more if these have too little work.
type Sharing struct {
	root   *sharing
	of     []*sharing // by the index of the sharer
	dealt  int        // queues that had a start since the others were left out
	closed []*sharing // those that are left out
}

// sharing is a group, a queue or the node itself.
type sharing struct {
	key     string
	above   *sharing
	in      []*sharing
	shares  map[string]protocol.Share // of what is in it
	weight  int
	sharer  int // the index of the queue; -1: it is none
	all     int // the room of what is in it together, as far as it is known; of a queue: its own
	lets    int // how many tasks its rate lets start now
	room    int // the lower of these
	running int
	most    int // how many of its tasks the node runs while others have work
	starts  bool
	kept    int // its room while it is left out
}

// Uneven reports whether a node runs more tasks of one queue than of others, of so many of the same
// weight. Then a claim deals its starts with a Sharing. Else it may give each queue as many, without a
// look at all of them. Where there are more queues than threads, one task is not more.
func Uneven(turn *protocol.Turn, queues int) bool {
	threads := turn.Threads()
	for _, n := range turn.Running {
		if n*queues > threads-turn.Slots && (n > 1 || queues <= threads) {
			return true
		}
	}
	return false
}

// NewSharing begins to deal the free threads of a node. threads is how many it has, those that are
// not free included. lets says how many tasks the rates of groups let start now, by the name of the
// group; a group without a rate is not in it. A group is dealt no more than that: what its rate lets
// start goes to its queues by weight, however many threads are free.
func NewSharing(s *protocol.Shares, queues []Sharer, threads int, lets map[string]int) *Sharing {
	d := &Sharing{root: &sharing{sharer: -1, lets: math.MaxInt, most: threads, shares: s.In("")}}
	groups := map[string]*sharing{}
	for i := range queues {
		q, above := &queues[i], d.root
		for _, g := range slices.Backward(q.Groups) {
			key := "group " + g.Name
			if groups[key] == nil {
				groups[key] = &sharing{key: key, above: above, sharer: -1, lets: math.MaxInt, weight: plan.WeightOf(g.Weight), shares: s.In(key)}
				if n, rated := lets[g.Name]; rated {
					groups[key].lets = n
				}
				above.in = append(above.in, groups[key])
			}
			above = groups[key]
		}
		one := &sharing{key: "queue " + q.Queue.String(), above: above, lets: math.MaxInt, weight: plan.WeightOf(q.Weight), sharer: i}
		above.in = append(above.in, one)
		d.of = append(d.of, one)
		one.count(q.Running, q.Room, 0)
	}
	d.root.join()
	return d
}

// join has those take turns that have work, and gives each its part of the threads.
func (s *sharing) join() {
	weights, there := 0, map[string]bool{}
	slices.SortFunc(s.in, func(a, b *sharing) int { return cmp.Compare(a.key, b.key) })
	for _, one := range s.in {
		if one.room > 0 {
			JoinTurns(s.shares, one.key, one.weight)
			weights += one.weight
			there[one.key] = true
		}
	}
	for key := range s.shares {
		if !there[key] {
			LeaveTurns(s.shares, key)
		}
	}
	forget(s.shares)
	for _, one := range s.in {
		if one.room > 0 {
			one.most = (s.most*one.weight + weights - 1) / weights
			one.join()
		}
	}
}

// Next returns the index of the queue that gets the next start, and counts it; -1 if none has work.
func (d *Sharing) Next() int {
	if d.root.room == 0 {
		d.open()
	}
	if d.root.room == 0 {
		return -1
	}
	at := d.root
	for at.sharer < 0 {
		next := at.next()
		PassTurn(at.shares, next.key, 1)
		at = next
	}
	at.count(1, -1, 1)
	if !at.starts {
		at.starts = true
		if d.dealt++; d.dealt == MostDealt {
			d.leaveOut()
		}
	}
	return at.sharer
}

// leaveOut leaves out the queues that had no start.
func (d *Sharing) leaveOut() {
	for _, one := range d.of {
		if !one.starts && one.room > 0 {
			one.kept = one.room
			one.count(0, -one.kept, 0)
			d.closed = append(d.closed, one)
		}
	}
}

// open takes in again those that were left out.
func (d *Sharing) open() {
	for _, one := range d.closed {
		one.count(0, one.kept, 0)
	}
	d.closed, d.dealt = nil, 0
}

// next returns whose turn it is: one that has not its part of the threads, if there is one.
func (s *sharing) next() (next *sharing) {
	for _, one := range s.in {
		if one.room > 0 && (next == nil || s.before(one, next)) {
			next = one
		}
	}
	return next
}

// before reports whether a, behind b in the order of keys, has its turn before b.
func (s *sharing) before(a, b *sharing) bool {
	if full, other := a.running >= a.most, b.running >= b.most; full != other {
		return other
	}
	return s.shares[a.key].Passed < s.shares[b.key].Passed
}

// count changes how many tasks of a queue run, and how much room it has. starts of these are counted
// by the rates of its groups, below 0 those that it gave back.
func (s *sharing) count(running, room, starts int) {
	for up := s; up != nil; up = up.above {
		had := up.room
		up.all += room
		up.lets -= starts
		up.room = min(up.all, up.lets)
		up.running += running
		room = up.room - had
	}
}

// Back takes back n starts of a queue that had no work for them, and it gets no more.
func (d *Sharing) Back(sharer, n int) {
	one := d.of[sharer]
	one.count(-n, n, -n)
	one.count(0, -one.room, 0)
	for up := one; up.above != nil; up = up.above {
		PassTurn(up.above.shares, up.key, -n)
	}
}
