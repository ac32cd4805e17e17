package mongodb

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
)

// A server that keeps no order in indexes sorts all that a query matches. With 10,000 tasks of one plan in a queue it took 11 ms to find the
// first two. So a handle remembers of a plan a place behind these: a horizon. A read of no more tasks than are before the horizon asks for
// these alone, which took 2 ms. The answer is the same, whatever has changed meanwhile: what is new before the horizon is in it, and if too
// few tasks are left there, the handle asks for all.

const (
	farAhead     = 1000 // so many tasks are before a horizon when it is found: the two filters for these cost as much as to sort a thousand
	fewAhead     = 32   // reads of more tasks look for no horizon
	mostHorizons = 1000 // of so many plans in queues a handle remembers them
	seeksEach    = 16   // with one of so many reads that know no horizon a claim looks for one,
	seeksFirst   = 4    // from this one on: most plans are read less often
)

// ofPlan is a plan in a queue.
type ofPlan struct{ queue, plan bson.ObjectID }

// A horizon is a task, waiting or not any more, by its place in the order of a queue.
type horizon struct {
	rank  int64
	id    bson.ObjectID
	left  int // how many tasks that wait are before it, if nobody else takes any; 0: there is no horizon
	reads int // how many there were without one
}

type horizons map[ofPlan]horizon

// near returns the horizon for a read of so many tasks; nil if there is none, or too little before it. seeks is whether one
// is to be looked for.
func (all horizons) near(of ofPlan, ask int) (h *horizon, seeks bool) {
	known := all[of]
	if known.left >= ask {
		return &known, false
	}
	known.left = 0
	known.reads++
	if len(all) > mostHorizons {
		clear(all)
	}
	all[of] = known
	return nil, known.reads%seeksEach == seeksFirst && ask <= fewAhead
}

// claimed counts a task that was claimed.
func (all horizons) claimed(of ofPlan) {
	if h := all[of]; h.left > 0 {
		h.left--
		all[of] = h
	}
}

// found takes a horizon that has so many tasks before it.
func (all horizons) found(of ofPlan, rank int64, id bson.ObjectID, left int) {
	all[of] = horizon{rank: rank, id: id, left: left, reads: seeksFirst - 1}
}

// before are two filters that match what comes before the horizon. No task matches both.
func (h *horizon) before() bson.A {
	return bson.A{d("rank", d("$gt", h.rank)), d("rank", wire.OrNone(h.rank), "_id", d("$lte", h.id))}
}
