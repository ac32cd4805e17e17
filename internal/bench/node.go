package main

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/submit"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// A meter stands between a node and its store and notes what the node asks.
type meter struct {
	store.Node
	mu                       sync.Mutex
	turns, sweeps, instances int
	ended                    int           // endings handed to turns
	working                  int           // turns that ended or claimed something
	longest                  time.Duration // the longest turn
	beats                    []time.Duration
	reached                  int // what beats said of tasks, how far each was
}

// beaten returns how long each beat took so far.
func (m *meter) beaten() []time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.beats)
}

// timedCall makes a call, and notes it.
func timedCall[T any](m *meter, call func() (T, error), note func(T, time.Duration)) (T, error) {
	start := time.Now()
	v, err := call()
	took := time.Since(start)
	m.mu.Lock()
	defer m.mu.Unlock()
	note(v, took)
	return v, err
}

// Turn implements store.Node.
func (m *meter) Turn(ctx context.Context, t protocol.Turn) (protocol.Turned, error) {
	return timedCall(m, func() (protocol.Turned, error) { return m.Node.Turn(ctx, t) }, func(turned protocol.Turned, took time.Duration) {
		m.turns++
		m.ended += len(t.Ended)
		if len(t.Ended)+len(turned.Claimed) > 0 {
			m.working++
		}
		m.longest = max(m.longest, took)
	})
}

// Beat implements store.Node.
func (m *meter) Beat(ctx context.Context, b protocol.Beat) (protocol.Beaten, error) {
	return timedCall(m, func() (protocol.Beaten, error) { return m.Node.Beat(ctx, b) }, func(_ protocol.Beaten, took time.Duration) {
		m.beats = append(m.beats, took)
		m.reached += len(b.Progress)
	})
}

// Sweep implements store.Node.
func (m *meter) Sweep(ctx context.Context, s protocol.Sweep) (protocol.Swept, error) {
	return timedCall(m, func() (protocol.Swept, error) { return m.Node.Sweep(ctx, s) }, func(protocol.Swept, time.Duration) { m.sweeps++ })
}

// Instances implements store.Node.
func (m *meter) Instances(ctx context.Context) ([]plan.Instance, error) {
	return timedCall(m, func() ([]plan.Instance, error) { return m.Node.Instances(ctx) }, func([]plan.Instance, time.Duration) { m.instances++ })
}

// A drive is one plan run to its end.
type drive struct {
	submitted time.Duration // how long it took to submit it
	took      time.Duration // from the start of the node to its end
	processor time.Duration // what this process used of the processors meanwhile, where that is known
	tasks     int
	turn      float64 // endings in a turn, on average
	longest   time.Duration
}

// effort is what one task took of the processors, in microseconds: unlike the time that went by, it hardly changes with what else runs.
func (d *drive) effort() float64 { return microseconds(d.processor) / float64(d.tasks) }

// submitted makes a plan of the spec, for a node of its own.
func submitted(ctx context.Context, s store.Store, spec *plan.Spec) (plan.Plan, time.Duration) {
	settle()
	start := time.Now()
	p := must(submit.Submit(ctx, s, spec, true))
	return p, time.Since(start)
}

// runNew runs the spec on a new database.
func (t *trial) runNew(ctx context.Context, spec *plan.Spec, threads int, with named) drive {
	db := t.open(ctx)
	defer db.close(ctx)
	return runPlan(ctx, db, &meter{Node: db}, spec, threads, with)
}

// runPlan submits the spec to the store and runs it to its end in a node inside this process. A plan that does not succeed whole is
// an error: what was measured then was not the work.
func runPlan(ctx context.Context, s store.Store, m *meter, spec *plan.Spec, threads int, with named) drive {
	p, took := submitted(ctx, s, spec)
	d := drive{submitted: took, tasks: len(spec.Tasks)}
	node := must(den.New(m, den.Config{Plugins: with.registry(), Name: "bench", Threads: threads, Plan: p.ID}))
	settle()
	before, start := processorTime(), time.Now()
	err := node.Run(ctx)
	d.took, d.processor = time.Since(start), processorTime()-before
	check(err)
	d.turn, d.longest = float64(m.ended)/float64(max(1, m.working)), m.longest
	succeeded(ctx, s, p.ID, len(spec.Tasks))
	return d
}

// succeeded checks that a plan has ended and that each of its tasks succeeded.
func succeeded(ctx context.Context, s store.Store, id plan.PlanID, tasks int) {
	p := must(s.Plan(ctx, id))
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
