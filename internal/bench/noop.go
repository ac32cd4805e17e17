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
	kind    kind
	shape   string
	make    func(n int) *graph
	tasks   int // of a plan to measure
	quick   int
	reps    int
	threads int
	floor   float64 // tasks a second; 0: none
}

// mostThreads is the number of threads for which there are floors. Other figures are for fewer
// threads.
const mostThreads = 256

func noopScenarios() []scenario {
	var all []scenario
	for _, l := range []load{
		{kind: onSQLite, shape: "flat", make: flat, tasks: 60_000, quick: 2_000, reps: 5, floor: 45_000},
		{kind: onSQLite, shape: "layered", make: layers, tasks: 40_000, quick: 3_000, reps: 5, floor: 25_000},
		{kind: onMongoDB, shape: "flat", make: flat, tasks: 6_000, quick: 600, reps: 3, floor: 2_500},
		{kind: onMongoDB, shape: "layered", make: layers, tasks: 4_000, quick: 2_000, reps: 3, floor: 1_000},
		{kind: inMemory, shape: "flat", make: flat, tasks: 60_000, quick: 2_000, reps: 3},
		{kind: inMemory, shape: "layered", make: layers, tasks: 40_000, quick: 3_000, reps: 3},
	} {
		for _, threads := range []int{8, 64, mostThreads} {
			l := l
			if l.threads = threads; threads < mostThreads {
				l.floor = 0
			}
			if threads == 8 {
				l.tasks /= 4 // which are as good for a rate, and as slow as all of them with more threads
			}
			if threads < mostThreads && l.kind == inMemory {
				continue
			}
			all = append(all, scenario{
				name:  fmt.Sprintf("noop/%s/%s/%d", l.kind, l.shape, l.threads),
				about: fmt.Sprintf("no-op tasks through claim, run in process, finish and release: %s plan, %s, %d threads", l.shape, l.kind, l.threads),
				run:   l.run,
			})
		}
	}
	return all
}

// layers is a layered plan of eight layers at least, which are 1,000 wide if there are tasks enough.
func layers(n int) *graph { return layered(n, min(1000, n/8)) }

// run measures the load, in turn with the bare driver loop; at most threads submission has a line of its own.
func (l load) run(ctx context.Context, b *bench, add func(result)) error {
	if why := b.missing(l.kind); why != "" {
		add(result{What: "no-op tasks", Skipped: why})
		return nil
	}
	g := l.make(b.size(l.tasks, l.quick))
	var rates, bare, efforts, bareEfforts, submits, fills []float64
	var last drive
	for range b.repetitions(l.reps) {
		d, err := l.once(ctx, b, g)
		if err != nil {
			return err
		}
		last = d
		rates = append(rates, perSecond(d.tasks, d.took))
		efforts = append(efforts, effort(d.processor, d.tasks))
		submits = append(submits, perSecond(d.tasks, d.submitted))
		if l.kind == inMemory {
			continue
		}
		d, err = l.bare(ctx, b, g)
		if err != nil {
			return fmt.Errorf("bare driver loop: %w", err)
		}
		bare = append(bare, perSecond(d.tasks, d.took))
		bareEfforts = append(bareEfforts, effort(d.processor, d.tasks))
		fills = append(fills, perSecond(d.tasks, d.submitted))
	}
	r := result{
		What: "no-op tasks", Value: median(rates), Unit: "tasks/s",
		Note: fmt.Sprintf("%d tasks, %d needs; %.0f endings a turn, longest turn %.1f ms; %.1f µs of processor a task",
			g.tasks(), g.edges(), last.turn, milliseconds(last.longest), median(efforts)),
	}
	if l.floor > 0 {
		r.Floor = atLeast(l.floor)
	}
	if len(bare) > 0 {
		r.Peer, r.PeerVal = "bare driver", median(bare)
		r.Note += fmt.Sprintf(", bare %.1f; bare: %d a turn", median(bareEfforts), l.threads)
	}
	r.Note += "; " + l.kind.durability()
	add(r)
	if l.threads < mostThreads {
		return nil
	}
	r = result{What: "submission", Value: median(submits), Unit: "tasks/s", Note: fmt.Sprintf("%d tasks, %d needs, from a plan in memory", g.tasks(), g.edges())}
	if len(fills) > 0 {
		r.Peer, r.PeerVal = "bare inserts", median(fills)
	}
	add(r)
	return nil
}

// once runs the graph on a new database.
func (l load) once(ctx context.Context, b *bench, g *graph) (d drive, err error) {
	db, err := b.open(ctx, l.kind)
	if err != nil {
		return drive{}, err
	}
	defer closing(ctx, db, &err)
	p := &counting{}
	if g.edges() > 0 {
		p.output = smallOutput
	}
	d, err = runPlan(ctx, db, g.spec("noop", "noop"), registry(map[string]plugins.Plugin{"noop": p}), l.threads)
	if err != nil {
		return d, err
	}
	// Each need is in the child's params twice, in needs and in args.
	if want := int64(2 * g.edges()); p.seen.Load() != want {
		return d, fmt.Errorf("children got %d copies of their parents' outputs, not %d", p.seen.Load(), want)
	}
	return d, nil
}

// bare does the same inserts, claims, finishes and releases by the raw driver.
func (l load) bare(ctx context.Context, b *bench, g *graph) (d drive, err error) {
	var raw interface {
		fill(ctx context.Context, g *graph) error
		loop(ctx context.Context, batch int) (finished int, err error)
		close(ctx context.Context) error
	}
	if l.kind == onMongoDB {
		raw, err = b.newBareMongoDB(ctx)
	} else {
		raw, err = b.newBareSQLite(ctx)
	}
	if err != nil {
		return drive{}, err
	}
	defer closing(ctx, raw, &err)
	settle()
	start := time.Now()
	if err := raw.fill(ctx, g); err != nil {
		return drive{}, err
	}
	d.submitted = time.Since(start)
	settle()
	before, start := processorTime(), time.Now()
	d.tasks, err = raw.loop(ctx, l.threads)
	d.took, d.processor = time.Since(start), processorTime()-before
	if err == nil && d.tasks != g.tasks() {
		err = fmt.Errorf("it finished %d of %d tasks", d.tasks, g.tasks())
	}
	return d, err
}

// closing closes what a deferred call is given and keeps the error, if there is no earlier one.
func closing(ctx context.Context, c interface{ close(context.Context) error }, err *error) {
	if e := c.close(ctx); e != nil && *err == nil {
		*err = e
	}
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
