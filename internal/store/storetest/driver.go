package storetest

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// A Driver is what the suite is run on.
type Driver struct {
	// Open returns a handle on a new, empty database, which goes when the test ends. The suite calls Close.
	Open func(t testing.TB, o Options) store.Store
	// Reopen returns another handle on the same database, as another process would have it. The suite calls Close.
	Reopen func(t testing.TB, s store.Store, o Options) store.Store
	// Pass is for drivers that read their server's clock and ignore Options.Now. It makes every
	// instant in the database d older, as if that time had passed.
	Pass func(t testing.TB, s store.Store, d time.Duration)
	// Foreign is given by drivers of databases that programs of other makers write as well.
	Foreign func(t testing.TB, s store.Store) Foreign

	// Left counts the records of work that is to be done, by their names, and the records that
	// belong to nothing in the store.
	Left func(t testing.TB, s store.Store) map[string]int

	// Damage changes some of the driver's bookkeeping at random: owners, notes, jobs, counters,
	// gates, marks and places in queues. It leaves the states of tasks and plans, which say what is
	// to be done. It returns what it changed, for who reads a failure. It takes chances from r
	// alone, and looks at what is there in an order that is the same each time. Params, outputs,
	// lists of items, needs and counts of plans that have ended are no bookkeeping.
	Damage func(t testing.TB, s store.Store, r *rand.Rand) []string

	// OneWriter says that nobody gets in between two writes of a call, since its writer has a lock: Hook is called while that is held.
	OneWriter bool

	// Served says that a server stands before the store, which knows itself who submits a plan.
	Served bool

	Keep time.Duration // how long plans, and tasks of queues, are kept that do not say it themselves; 0: for ever

	// AtOnce has cases run concurrently, as many as go test -parallel says, each on a database of
	// its own. The cases of scale run alone, because they measure time. It is for drivers whose
	// tests mostly wait for a server. Several goroutines then call Open, Reopen, Pass and Foreign.
	AtOnce bool

	// Only are the groups that run; none: all. It is for a driver that the whole suite tests over another store.
	Only []string

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
	Halfway int // others act before one in so many of the writes of a retry; 0: before each
	Walks   int // random walks; 0: 300
	Damaged int // random walks whose bookkeeping is damaged; 0: 300
	Steps   int // of each walk; 0: 150
	Late    int // writes that are held back while others do something; 0: each write, with all that others do
}

// Foreign acts on the database as the programs of Disbatch 4 do: it knows their fields only, and writes where they would. The times
// that it writes and compares are those of the store's clock.
type Foreign interface {
	// Register says that a node is there.
	Register(ctx context.Context, node plan.NodeName) error
	// Insert adds a queued task of no plan; its node is null, or -1 as older programs have it.
	Insert(ctx context.Context, q plan.QueueID, params json.RawMessage, minusOne bool) (plan.TaskID, error)
	// Claim takes the oldest task of a queue with status -2 whose node is null or -1: status -1 and the node's name. False: there
	// was none.
	Claim(ctx context.Context, q plan.QueueID, node plan.NodeName) (plan.TaskID, bool, error)
	// Params returns the task's params as a task runner reads them.
	Params(ctx context.Context, id plan.TaskID) (json.RawMessage, error)
	// Start, End and Output leave the time of the last change as it is: it stays that of the claim.

	// Start sets status 0 where id, node and status -1 match, and reports whether they did.
	Start(ctx context.Context, id plan.TaskID, node plan.NodeName) (bool, error)
	// End sets a final status where id, node and status 0 match, and reports whether they did. It is the first of two writes.
	End(ctx context.Context, id plan.TaskID, node plan.NodeName, s plan.Status) (bool, error)
	// Output sets stdout, stderr and complete: the second write.
	Output(ctx context.Context, id plan.TaskID, stdout, stderr string) error
	// Orphan sets -6 on all tasks of a node with status -1 that were not modified for five minutes, and returns how many.
	Orphan(ctx context.Context, node plan.NodeName) (int, error)
}
