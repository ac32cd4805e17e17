package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/submit"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// A meter stands between a node and its store and notes what the node asks.
type meter struct {
	store.Node
	mu      sync.Mutex
	calls   map[string]int
	ended   int           // endings handed to turns
	working int           // turns that ended or claimed something
	longest time.Duration // the longest turn
	beats   []time.Duration
	reached int // what beats said of tasks, how far each was
}

func newMeter(s store.Node) *meter { return &meter{Node: s, calls: map[string]int{}} }

func (m *meter) count(call string) {
	m.mu.Lock()
	m.calls[call]++
	m.mu.Unlock()
}

// of returns how often a call was made.
func (m *meter) of(call string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.calls[call]
}

// beaten returns how long each beat took so far.
func (m *meter) beaten() []time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.beats)
}

func (m *meter) Turn(ctx context.Context, t plan.Turn) (plan.Turned, error) {
	start := time.Now()
	turned, err := m.Node.Turn(ctx, t)
	took := time.Since(start)
	m.mu.Lock()
	m.calls["turn"]++
	m.ended += len(t.Ended)
	if len(t.Ended)+len(turned.Claimed) > 0 {
		m.working++
	}
	m.longest = max(m.longest, took)
	m.mu.Unlock()
	return turned, err
}

func (m *meter) Beat(ctx context.Context, b plan.Beat) (plan.Beaten, error) {
	start := time.Now()
	news, err := m.Node.Beat(ctx, b)
	took := time.Since(start)
	m.mu.Lock()
	m.calls["beat"]++
	m.beats = append(m.beats, took)
	m.reached += len(b.Progress)
	m.mu.Unlock()
	return news, err
}

func (m *meter) Sweep(ctx context.Context, s plan.Sweep) (plan.Swept, error) {
	m.count("sweep")
	return m.Node.Sweep(ctx, s)
}

func (m *meter) Instances(ctx context.Context) ([]plan.Instance, error) {
	m.count("instances")
	return m.Node.Instances(ctx)
}

func (m *meter) Register(ctx context.Context, i plan.Instance) error {
	m.count("register")
	return m.Node.Register(ctx, i)
}

func (m *meter) Leave(ctx context.Context, i plan.InstanceID) error {
	m.count("leave")
	return m.Node.Leave(ctx, i)
}

func (m *meter) Inputs(ctx context.Context, id plan.TaskID) ([]plan.Input, error) {
	m.count("inputs")
	return m.Node.Inputs(ctx, id)
}

func (m *meter) AppendLog(ctx context.Context, c plan.Claim, entries []plan.LogEntry) error {
	m.count("log")
	return m.Node.AppendLog(ctx, c, entries)
}

func (m *meter) Rescue(ctx context.Context, i plan.InstanceID, beats int64) (int, error) {
	m.count("rescue")
	return m.Node.Rescue(ctx, i, beats)
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
func effort(processor time.Duration, tasks int) float64 {
	return microseconds(processor) / float64(tasks)
}

// submitted makes a plan of the spec, for a node of its own.
func submitted(ctx context.Context, s store.Store, spec *plan.Spec) (plan.Plan, time.Duration, error) {
	settle()
	start := time.Now()
	p, err := submit.Submit(ctx, s, spec, true)
	return p, time.Since(start), err
}

// runPlan submits the spec to the store and runs it to its end in a node inside this process. A plan that does not succeed whole is
// an error: what was measured then was not the work.
func runPlan(ctx context.Context, s store.Store, spec *plan.Spec, with *plugins.Registry, threads int) (drive, error) {
	return runMetered(ctx, s, newMeter(s), spec, with, threads)
}

// runMetered is runPlan with a meter of the caller's.
func runMetered(ctx context.Context, s store.Store, m *meter, spec *plan.Spec, with *plugins.Registry, threads int) (drive, error) {
	p, took, err := submitted(ctx, s, spec)
	if err != nil {
		return drive{}, fmt.Errorf("submit: %w", err)
	}
	d := drive{submitted: took, tasks: len(spec.Tasks)}
	node, err := den.New(m, den.Config{Plugins: with, Name: "bench", Threads: threads, Plan: p.ID})
	if err != nil {
		return d, err
	}
	settle()
	before, start := processorTime(), time.Now()
	err = node.Run(ctx)
	d.took, d.processor = time.Since(start), processorTime()-before
	if err != nil {
		return d, err
	}
	d.turn, d.longest = float64(m.ended)/float64(max(1, m.working)), m.longest
	return d, succeeded(ctx, s, p.ID, len(spec.Tasks))
}

// succeeded checks that a plan has ended and that each of its tasks succeeded.
func succeeded(ctx context.Context, s store.Store, id plan.PlanID, tasks int) error {
	p, err := s.Plan(ctx, id)
	if err != nil {
		return err
	}
	if p.State != plan.PlanSucceeded || p.Counts.Succeeded != tasks || p.Counts.Total() != tasks {
		return fmt.Errorf("the plan is %s with %d of %d tasks succeeded: this was not the work to measure", p.State, p.Counts.Succeeded, tasks)
	}
	return nil
}

// A plain plugin returns always the same.
type plain struct {
	output json.RawMessage
}

// Run implements plugins.Plugin.
func (p plain) Run(context.Context, *plugins.Task) plan.Result {
	return plan.Result{Status: plan.Succeeded, Output: p.output}
}

// registry makes a registry of the plugins given by name.
func registry(all map[string]plugins.Plugin) *plugins.Registry {
	r := plugins.NewRegistry()
	for name, p := range all {
		r.Register(name, p)
	}
	return r
}
