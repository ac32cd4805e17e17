package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// smallOutput is what a no-op task of a layered plan returns to its children.
var smallOutput = json.RawMessage(`{"value":"0123456789"}`)

// A load is a kind of no-op work on one store.
type load struct {
	kind               kind
	shape              string
	make               func(n int) *graph
	tasks, quick, reps int // tasks of a plan to measure
	threads            int
}

// mostThreads is the number of threads for which there are floors. Other figures are for fewer
// threads.
const mostThreads = 256

func noopScenarios() []scenario {
	var all []scenario
	for _, l := range []load{
		{kind: onSQLite, shape: "flat", make: flat, tasks: 60_000, quick: 2_000, reps: 5},
		{kind: onSQLite, shape: "layered", make: layers, tasks: 40_000, quick: 3_000, reps: 5},
		{kind: onMongoDB, shape: "flat", make: flat, tasks: 6_000, quick: 600, reps: 3},
		{kind: onMongoDB, shape: "layered", make: layers, tasks: 4_000, quick: 2_000, reps: 3},
	} {
		for _, threads := range []int{8, 64, mostThreads} {
			l := l
			if l.threads = threads; threads == 8 {
				l.tasks /= 4 // which are as good for a rate, and as slow as all of them with more threads
			}
			all = append(all, scenario{
				fmt.Sprintf("noop/%s/%s/%d", l.kind, l.shape, l.threads),
				fmt.Sprintf("no-op tasks through claim, run in process, finish and release: %s plan, %s, %d threads", l.shape, l.kind, l.threads), l.kind, l.run,
			})
		}
	}
	return all
}

// layers is a layered plan of eight layers at least, which are 1,000 wide if there are tasks enough.
func layers(n int) *graph { return layered(n, min(1000, n/8)) }

// run measures the load, in turn with the bare driver loop; at most threads submission has a line of its own.
func (l load) run(ctx context.Context, t *trial) {
	g := l.make(t.size(l.tasks, l.quick))
	var last drive
	t.again(l.reps, func() {
		last = l.once(ctx, t, g)
		t.sample("rate", perSecond(last.tasks, last.took))
		t.sample("effort", last.effort())
		t.sample("submit", perSecond(last.tasks, last.submitted))
		d := l.bare(ctx, t, g)
		t.sample("bare", perSecond(d.tasks, d.took))
		t.sample("bare effort", d.effort())
		t.sample("inserts", perSecond(d.tasks, d.submitted))
	})
	note := fmt.Sprintf("%d tasks, %d needs; %.0f endings a turn, longest turn %.1f ms; %.1f µs of processor a task, bare %.1f; bare: %d a turn",
		g.tasks(), g.edges(), last.turn, milliseconds(last.longest), t.median("effort"), t.median("bare effort"), l.threads)
	t.line("rate", "bare", result{What: "no-op tasks", Unit: "tasks/s", Peer: "bare driver", Note: note + "; " + l.kind.durability()})
	if l.threads == mostThreads {
		t.line("submit", "inserts", result{
			What: "submission", Unit: "tasks/s", Peer: "bare inserts", Note: fmt.Sprintf("%d tasks, %d needs, from a plan in memory", g.tasks(), g.edges()),
		})
	}
}

// once runs the graph on a new database.
func (l load) once(ctx context.Context, t *trial, g *graph) drive {
	p := &counting{}
	if g.edges() > 0 {
		p.output = smallOutput
	}
	d := t.runNew(ctx, g.spec("noop", "noop"), l.threads, named{"noop": p})
	// Each need is in the child's params twice, in needs and in args.
	if want := int64(2 * g.edges()); p.seen.Load() != want {
		failf("children got %d copies of their parents' outputs, not %d", p.seen.Load(), want)
	}
	return d
}

// bare does the same inserts, claims, finishes and releases by the raw driver.
func (l load) bare(ctx context.Context, t *trial, g *graph) (d drive) {
	var raw interface {
		fill(ctx context.Context, g *graph)
		loop(ctx context.Context, batch int) (finished int)
		close(ctx context.Context)
	}
	if l.kind == onMongoDB {
		raw = t.newBareMongoDB(ctx)
	} else {
		raw = t.newBareSQLite()
	}
	defer raw.close(ctx)
	settle()
	start := time.Now()
	raw.fill(ctx, g)
	d.submitted = time.Since(start)
	settle()
	before, start := processorTime(), time.Now()
	d.tasks = raw.loop(ctx, l.threads)
	d.took, d.processor = time.Since(start), processorTime()-before
	if d.tasks != g.tasks() {
		failf("the bare driver loop finished %d of %d tasks", d.tasks, g.tasks())
	}
	return d
}

// counting is a plain plugin that counts its tasks, and the copies of its output among the params they are given.
type counting struct {
	output json.RawMessage
	seen   atomic.Int64
	ran    atomic.Int64
}

// Run implements plugins.Plugin.
func (c *counting) Run(_ context.Context, t *plugins.Task) plan.Result {
	c.ran.Add(1)
	if c.output != nil {
		c.seen.Add(int64(bytes.Count(t.Params, c.output)))
	}
	return plan.Result{Status: plan.Succeeded, Output: c.output}
}
