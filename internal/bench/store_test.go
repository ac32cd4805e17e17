package bench

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/mongodb"
	"github.com/seed-1177d267/sluice/internal/store/sqlite"
	"github.com/seed-1177d267/sluice/internal/submit"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// A kind is where scenarios run.
type kind string

const (
	onSQLite  kind = "sqlite"
	onMongoDB kind = "mongodb"
)

// A database is a new, empty store.
type database struct {
	store.Store
	uri  string // as --store takes it
	drop func() error
}

// close closes the store and removes its data.
func (d *database) close() { check(errors.Join(d.Store.Close(), d.drop())) }

// SubmitBatch implements store.Batcher, as the store does.
func (d *database) SubmitBatch() int { return d.Store.(store.Batcher).SubmitBatch() }

// open makes a database of the scenario's kind, SQLite where it needs none.
func (m *measurement) open() *database {
	ctx := m.Context()
	if m.on == onMongoDB {
		uri := newMongoDB()
		return &database{must(mongodb.Open(ctx, uri, mongodb.Options{})), uri, func() error { return dropMongoDB(context.WithoutCancel(ctx), uri) }}
	}
	dir := m.TempDir()
	path := filepath.Join(dir, "sluice.db")
	return &database{must(sqlite.Open(ctx, path, sqlite.Options{})), "sqlite:" + path, func() error { return os.RemoveAll(dir) }}
}

func mongoServer() string { return os.Getenv("SLUICE_TEST_MONGODB") }

var databases atomic.Int32

// newMongoDB returns the URI of a database on the server that nothing used before.
func newMongoDB() string {
	u := must(url.Parse(mongoServer()))
	u.Path = fmt.Sprintf("/sluice_bench_%d_%d", os.Getpid(), databases.Add(1))
	return u.String()
}

// rawMongoDB opens the database of a URI by the driver itself, with a monitor of its commands, or none.
func rawMongoDB(uri string, m *event.CommandMonitor) (*mongo.Client, *mongo.Database) {
	client := must(mongo.Connect(options.Client().ApplyURI(uri).SetMonitor(m)))
	return client, client.Database(must(url.Parse(uri)).Path[1:])
}

func dropMongoDB(ctx context.Context, uri string) error {
	client, db := rawMongoDB(uri, nil)
	return errors.Join(db.Drop(ctx), client.Disconnect(ctx))
}

// settle leaves no garbage of earlier work to the measurement that follows.
func settle() { runtime.GC() }

// A meter stands between a node and its store and notes what the node asks.
type meter struct {
	store.Node
	mu             sync.Mutex
	turns, sweeps  int
	ended, working int // endings handed to turns, and turns that ended or claimed something
	beats          []time.Duration
	reached        int // what beats said of tasks, how far each was
}

// Turn implements store.Node.
func (m *meter) Turn(ctx context.Context, t protocol.Turn) (protocol.Turned, error) {
	turned, err := m.Node.Turn(ctx, t)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turns++
	m.ended += len(t.Ended)
	if len(t.Ended)+len(turned.Claimed) > 0 {
		m.working++
	}
	return turned, err
}

// Beat implements store.Node.
func (m *meter) Beat(ctx context.Context, b protocol.Beat) (protocol.Beaten, error) {
	start := time.Now()
	beaten, err := m.Node.Beat(ctx, b)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.beats = append(m.beats, time.Since(start))
	m.reached += len(b.Progress)
	return beaten, err
}

// Sweep implements store.Node.
func (m *meter) Sweep(ctx context.Context, s protocol.Sweep) (protocol.Swept, error) {
	m.mu.Lock()
	m.sweeps++
	m.mu.Unlock()
	return m.Node.Sweep(ctx, s)
}

// beaten returns how long each beat took so far.
func (m *meter) beaten() []time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.beats)
}

// told returns how many reports beats had so far.
func (m *meter) told() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.reached
}

// A drive is one plan run to its end.
type drive struct {
	submitted time.Duration // how long it took to submit it
	took      time.Duration // from the start of the node to its end
	processor time.Duration // of a whole process, and of the commands that it waited for
	tasks     int
	turn      float64 // endings in a turn, on average
}

// rate is how many tasks ran in a second.
func (d drive) rate() float64 { return perSecond(d.tasks, d.took) }

// each is how long a task took, in microseconds.
func (d drive) each() float64 { return 1e6 / d.rate() }

// submitted makes a plan of the spec, for a node of its own.
func (m *measurement) submitted(s store.Store, spec *plan.Spec) (plan.Plan, time.Duration) {
	settle()
	start := time.Now()
	p := must(submit.Submit(m.Context(), s, spec, true))
	return p, time.Since(start)
}

// runNew runs the spec on a new database.
func (m *measurement) runNew(spec *plan.Spec, threads int, with named) drive {
	db := m.open()
	defer db.close()
	return m.runPlan(db, &meter{Node: db}, spec, threads, with)
}

// runPlan submits the spec to the store and runs it to its end in a node inside this process.
func (m *measurement) runPlan(s store.Store, through *meter, spec *plan.Spec, threads int, with named) drive {
	p, took := m.submitted(s, spec)
	d := drive{submitted: took, tasks: len(spec.Tasks)}
	node := must(den.New(through, den.Config{Plugins: with.registry(), Name: "bench", Threads: threads, Plan: p.ID}))
	settle()
	start := time.Now()
	check(node.Run(m.Context()))
	d.took = time.Since(start)
	d.turn = float64(through.ended) / float64(max(1, through.working))
	m.succeeded(s, p.ID, len(spec.Tasks))
	return d
}

// succeeded checks that each task of a plan succeeded: another plan was not the work to measure.
func (m *measurement) succeeded(s store.Store, id plan.PlanID, tasks int) {
	p := must(s.Plan(m.Context(), id))
	if p.State != plan.PlanSucceeded || p.Counts.Succeeded != tasks || p.Counts.Total() != tasks {
		failf("the plan is %s with %d of %d tasks succeeded: this was not the work to measure", p.State, p.Counts.Succeeded, tasks)
	}
}

// named are plugins by name.
type named map[string]plugins.Plugin

func (n named) registry() *plugins.Registry {
	r := plugins.NewRegistry()
	for name, p := range n {
		r.Register(name, p)
	}
	return r
}
