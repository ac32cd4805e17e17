package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/mongodb"
	"github.com/seed-1177d267/sluice/internal/store/sqlite"
	"github.com/seed-1177d267/sluice/plan"
)

// A database is a new store of one kind, with what the kind's raw driver needs to make another one.
type database struct {
	store.Store
	uri  string // as --store takes it
	drop func(context.Context) error
}

// close closes the store and removes its data.
func (d *database) close(ctx context.Context) {
	check(errors.Join(d.Store.Close(), d.drop(context.WithoutCancel(ctx))))
}

// lookEvery is how often a scenario looks what its processes have done. Its questions go to the same
// server.
const lookEvery = 20 * time.Millisecond

// over waits a moment and reports whether the plan has ended.
func (d *database) over(ctx context.Context, id plan.PlanID) bool {
	pause(ctx, lookEvery)
	return must(d.Plans(ctx, store.PlanQuery{Prefix: id.String(), NoCounts: true, NoParams: true, Limit: 1}))[0].State.Ended()
}

// active returns the tasks that have a status.
func (d *database) active(ctx context.Context, statuses ...plan.Status) []plan.Task {
	return must(store.AllTasks(ctx, d, store.TaskQuery{Statuses: statuses}))
}

// mostActive returns how many tasks are claimed or running in the queue that has most.
func (d *database) mostActive(ctx context.Context) (most int) {
	byQueue := map[plan.QueueID]int{}
	for _, t := range d.active(ctx, plan.Claimed, plan.Running) {
		byQueue[t.Queue]++
		most = max(most, byQueue[t.Queue])
	}
	return most
}

// A kind is where scenarios run.
type kind string

const (
	onSQLite  kind = "sqlite"
	onMongoDB kind = "mongodb"
)

// durability says what a finished write means on the kind.
func (k kind) durability() string {
	if k == onMongoDB {
		return "w:majority, j:true"
	}
	return "WAL, flushed before each answer"
}

// missing returns why the kind cannot be measured here, or nothing.
func (b *bench) missing(k kind) string {
	if k == onMongoDB && b.mongodb == "" {
		return "set SLUICE_TEST_MONGODB=mongodb://HOST:PORT/ (or: make test-mongodb stands a server up)"
	}
	return ""
}

// open makes a new, empty database.
func (t *trial) open(ctx context.Context) *database {
	if t.kind == onMongoDB {
		uri := t.newMongoDB()
		return &database{must(mongodb.Open(ctx, uri, mongodb.Options{})), uri, func(ctx context.Context) error { return dropMongoDB(ctx, uri) }}
	}
	dir := t.newDir()
	path := filepath.Join(dir, "sluice.db")
	return &database{must(sqlite.Open(ctx, path, sqlite.Options{})), "sqlite:" + path, func(context.Context) error { return os.RemoveAll(dir) }}
}

// newDir makes a folder that nothing used before.
func (b *bench) newDir() string {
	b.files++
	dir := filepath.Join(b.scratch, fmt.Sprint(b.files))
	check(os.Mkdir(dir, 0o700))
	return dir
}

// newFile writes a file of its own folder, which the caller removes.
func (b *bench) newFile(name string, text []byte) (dir string) {
	dir = b.newDir()
	check(os.WriteFile(filepath.Join(dir, name), text, 0o600))
	return dir
}

// newMongoDB returns the URI of a database on the server that nothing used before.
func (b *bench) newMongoDB() string {
	u, err := url.Parse(b.mongodb)
	if err != nil {
		failf("the MongoDB server's address is not a URI; write mongodb://HOST:PORT/: %w", err)
	}
	b.files++
	u.Path = fmt.Sprintf("/sluice_bench_%d_%d", os.Getpid(), b.files)
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
