// Package storetest is what a store is, as tests: every sentence of package store is a case, and every driver runs them all, the
// one in memory too. A limit of a driver is a field of Driver, never a case left out.
package storetest

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/store"
)

// A Driver is what the suite is run on.
type Driver struct {
	// Open returns a handle on a new, empty database, which goes when the test ends. The suite calls Close.
	Open func(t testing.TB, o Options) store.Store
	// Reopen returns another handle on the same database, as another process would have it. The suite calls Close.
	Reopen func(t testing.TB, s store.Store, o Options) store.Store
	// Pass is given by drivers that read their server's clock, and so take no notice of Options.Now: it makes every instant that
	// the database keeps d older, as if that time had passed.
	Pass func(t testing.TB, s store.Store, d time.Duration)
	// Foreign is given by drivers of databases that programs of other makers write as well.
	Foreign func(t testing.TB, s store.Store) Foreign

	// Left counts what the driver keeps of work that is to be done, by what it is called, and what belongs to nothing that is there.
	Left func(t testing.TB, s store.Store) map[string]int

	// Damage changes at random some of what the driver keeps beside the states of tasks and plans, which say what is to be done: owners, notes,
	// jobs, counters, gates, marks and places in queues. It returns what it changed, for who reads a failure. It takes chances from r alone, and
	// looks at what is there in an order that is the same each time. Params, outputs, lists of items, needs and counts of plans that
	// have ended are no bookkeeping.
	Damage func(t testing.TB, s store.Store, r *rand.Rand) []string

	// Mended is given by drivers whose audits change nothing where nothing was damaged: it says how many faults those of the handle mended.
	Mended func(s store.Store) int

	// OneWriter says that nobody gets in between two writes of a call, since its writer has a lock: Hook is called while that is held.
	OneWriter bool

	// Served says that a server stands before the store, which knows itself who submits a plan.
	Served bool

	Keep time.Duration // how long plans, and tasks of queues, are kept that do not say it themselves; 0: for ever

	// AtOnce has cases run beside each other, as many as go test -parallel says, each on a database of its own; but for those of scale, which
	// measure what they take. It is for drivers whose tests mostly wait for a server. Several goroutines then call Open, Reopen, Pass and Foreign.
	AtOnce bool

	Sizes
}

// Options are what the suite wants of a handle.
type Options struct {
	Now  func() time.Time
	Hook store.Hook // may be nil
}

// Sizes are the sizes of the cases about growth, and the numbers of those that kill the store. A
// store behind a network may have smaller ones; docs/design.md has a table of them.
type Sizes struct {
	FanIn   int // parents of one task; 0: 10,000
	FanOut  int // children of one task; 0: 100,000
	Items   int // of the largest foreach; 0: plan.MaxItems
	Tasks   int // that concurrent claimers share; 0: 2,000
	Deaths  int // at about how many of its writes, spread evenly, the crash workload is hit; 0: at all of them
	Walks   int // random walks; 0: 300
	Damaged int // random walks whose bookkeeping is damaged; 0: 300
	Steps   int // of each walk; 0: 150
	Late    int // writes that are held back while others do something; 0: each write, with all that others do
}

// A testCase is a sentence and what shows it. It gets a world with an empty store.
type testCase struct {
	name string
	run  func(w *world)
}

// groups are the cases by what they are about.
var groups = []struct {
	name  string
	cases []testCase
}{
	{"plans", planCases},
	{"tasks", taskCases},
	{"turns", turnCases},
	{"rules", ruleCases},
	{"instances", instanceCases},
	{"take", takeCases},
	{"cancel", cancelCases},
	{"foreach", foreachCases},
	{"retry", retryCases},
	{"retry half-way", halfwayCases},
	{"queues", queueCases},
	{"read", readCases},
	{"shown", shownCases},
	{"changes", changeCases},
	{"delete", deleteCases},
	{"expire", expireCases},
	{"concurrent", concurrentCases},
	{"crash", crashCases},
	{"walks", walkCases},
	{"late", lateCases},
	{"scale", scaleCases},
}

// Run runs the suite on a driver.
func Run(t *testing.T, d Driver) {
	for _, g := range groups {
		run(t, &d, g.name, g.cases)
	}
	if d.Damage != nil {
		run(t, &d, "damage", damageCases)
	}
	if d.Foreign != nil {
		run(t, &d, "foreign", foreignCases)
	}
}

func run(t *testing.T, d *Driver, group string, cases []testCase) {
	t.Run(group, func(t *testing.T) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				if d.AtOnce && group != "scale" {
					t.Parallel()
				}
				w := newWorld(t, d)
				c.run(w)
				w.check()
			})
		}
	})
}
