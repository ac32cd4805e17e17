// River runs no-op jobs by River on PostgreSQL, as a peer of Sluice's benchmarks. It is a module of
// its own, so that Sluice does not depend on River. The benchmarks build it when somebody asks for it.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

type noop struct{}

func (noop) Kind() string { return "noop" }

type worker struct{ river.WorkerDefaults[noop] }

func (*worker) Work(context.Context, *river.Job[noop]) error { return nil }

func main() {
	uri := flag.String("postgres", "", "the URI of a PostgreSQL server; a database of its own is made there, and dropped")
	jobs := flag.Int("jobs", 10_000, "the number of jobs")
	workers := flag.Int("workers", 64, "how many run at once")
	flag.Parse()
	ran, err := measure(context.Background(), *uri, *jobs, *workers)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	_ = json.NewEncoder(os.Stdout).Encode(ran)
}

// Ran says how long the jobs took.
type Ran struct {
	Inserted time.Duration // to insert them
	Worked   time.Duration // from the start of the client until the store has the last ending
}

// measure inserts the jobs into a new database and works them off.
func measure(ctx context.Context, uri string, jobs, workers int) (ran Ran, err error) {
	server, err := pgx.Connect(ctx, uri)
	if err != nil {
		return ran, err
	}
	defer server.Close(ctx)
	name := fmt.Sprintf("sluice_bench_river_%d", os.Getpid())
	if _, err := server.Exec(ctx, "CREATE DATABASE "+name); err != nil {
		return ran, err
	}
	defer server.Exec(ctx, "DROP DATABASE "+name+" WITH (FORCE)")
	config, err := pgxpool.ParseConfig(uri)
	if err != nil {
		return ran, err
	}
	config.ConnConfig.Database = name
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return ran, err
	}
	defer pool.Close()
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	if err != nil {
		return ran, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return ran, err
	}
	all := river.NewWorkers()
	river.AddWorker(all, &worker{})
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		FetchCooldown: 2 * time.Millisecond, FetchPollInterval: 20 * time.Millisecond, // as River's own benchmark
		Queues:  map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: workers}},
		Workers: all, Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	})
	if err != nil {
		return ran, err
	}
	began := time.Now()
	for left := jobs; left > 0; left -= 1000 {
		batch := make([]river.InsertManyParams, min(left, 1000))
		for i := range batch {
			batch[i].Args = noop{}
		}
		if _, err := client.InsertManyFast(ctx, batch); err != nil {
			return ran, err
		}
	}
	ran.Inserted = time.Since(began)
	ended, cancel := client.SubscribeConfig(&river.SubscribeConfig{ChanSize: jobs, Kinds: []river.EventKind{river.EventKindJobCompleted}})
	defer cancel()
	began = time.Now()
	if err := client.Start(ctx); err != nil {
		return ran, err
	}
	for range jobs {
		<-ended // it comes when the ending is in the database
	}
	ran.Worked = time.Since(began)
	return ran, client.Stop(ctx)
}
