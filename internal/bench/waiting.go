package main

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
)

// waitingScenarios measure the cost of watching a plan.
func waitingScenarios() []scenario {
	return append(onBoth("waiting", "processor time of sluice plan wait, and of the node that runs the plan's no-op tasks meanwhile", waiting),
		scenario{"watching/run", "processor time of sluice plan run, whose log has no line for a success, against sluice plan run --quiet: SQLite", onSQLite, watchingRun},
		scenario{"watching/events", "processor time of a server whose listener is told of counts, and of the node that runs the plan's no-op tasks meanwhile: SQLite", onSQLite, watchingEvents},
	)
}

// watched submits a plan of n no-op tasks to a new database, and calls do with that.
func watched(ctx context.Context, t *trial, n int, do func(*database)) {
	db := t.open(ctx)
	defer db.close(ctx)
	submitted(ctx, db, flat(n).spec("watched", "demo"))
	do(db)
}

// worker starts a node that runs no-op tasks.
func (t *trial) worker(ctx context.Context, db *database) *process {
	return t.start(ctx, db, "worker", "--allow", "demo", "--threads", strconv.Itoa(mostThreads))
}

// watchingRun compares runs of the same plan, which differ in what they show of it. The one that is quiet reads the plan's counts alone.
func watchingRun(ctx context.Context, t *trial) {
	n := t.size(60_000, 500)
	t.again(5, func() {
		for series, more := range map[string][]string{"quiet": {"--quiet"}, "shown": nil} {
			watched(ctx, t, n, func(db *database) {
				args := append([]string{"plan", "run", "--resume", "watched", "--threads", strconv.Itoa(mostThreads), "--store", db.uri}, more...)
				t.sample(series, milliseconds(timed(ctx, "", must(t.binary()), args...).processor))
			})
		}
	})
	t.line("shown", "quiet", result{
		What: "sluice plan run, redirected, processor time", Unit: "ms", Peer: "--quiet", Note: fmt.Sprintf("%d no-op tasks, %d threads; the node is in the process", n, mostThreads),
	})
}

// watchingEvents compares a server that tells a listener of a plan's counts with the node that runs the plan.
func watchingEvents(ctx context.Context, t *trial) {
	n := t.size(60_000, 500)
	t.again(3, func() {
		watched(ctx, t, n, func(db *database) {
			s := t.serve(ctx, db)
			defer s.stop()
			node := t.worker(ctx, db)
			defer node.stop()
			check(get(ctx, http.DefaultClient, s.url+"/plans/watched/events?counts=true")) // it ends with the plan
			node.stop()
			s.stop()
			t.sample("told", milliseconds(s.used()))
			t.sample("ran", milliseconds(node.used()))
		})
	})
	t.line("told", "ran", result{
		What: "events with counts of a plan, the server's processor time", Unit: "ms", Peer: "sluice worker",
		Note: fmt.Sprintf("%d no-op tasks, %d threads, one listener; both are whole processes, of which the server's start counts", n, mostThreads),
	})
}

// waiting compares a process that waits for a plan with the one that runs it.
func waiting(ctx context.Context, t *trial) {
	n := t.size(60_000, 500)
	t.again(3, func() {
		watched(ctx, t, n, func(db *database) {
			settle()
			wait := t.start(ctx, db, "plan", "wait", "watched")
			defer wait.stop()
			node := t.worker(ctx, db)
			defer node.stop()
			wait.await()
			node.stop()
			t.sample("waited", milliseconds(wait.used()))
			t.sample("ran", milliseconds(node.used()))
		})
	})
	t.line("waited", "ran", result{
		What: "sluice plan wait, processor time", Unit: "ms", Peer: "sluice worker", Note: fmt.Sprintf("%d no-op tasks, %d threads; both are whole processes", n, mostThreads),
	})
}
