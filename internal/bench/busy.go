package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/sqlite"
	"github.com/seed-1177d267/sluice/plan"
)

// Three processes share one file. Each has a node that runs a plan of its own. The plan is a chain,
// whose hops are measured, and more no-op tasks without needs than the node can run in the time.
// Each also has a second instance, which runs nothing, beats often and notes the duration of each
// heartbeat.
const (
	busyProcesses = 3
	busyBeat      = 20 * time.Millisecond
)

// busyThreads are the threads of each node. The first number is that of the scenarios against
// ninja, for which the floors are. The second is far more than the machine has processors, so that
// each turn is large.
var busyThreads = []int{execJobs, 64}

// busyWord is the first argument of such a process.
const busyWord = "busy-child"

func busyScenarios() []scenario {
	return []scenario{{"busy/sqlite", "three busy processes on one file: a chain's hop, and how long a heartbeat waits", onSQLite, func(ctx context.Context, t *trial) {
		for _, threads := range busyThreads {
			busyWith(ctx, t, threads)
		}
	}}}
}

// A busyProcess says what such a process is: the first line that it reads.
type busyProcess struct {
	Path    string
	Plan    plan.PlanID
	Threads int
	Lasts   time.Duration
}

// busyReport is what such a process says when it ends.
type busyReport struct {
	Hops  []time.Duration
	Beats []time.Duration
	Tasks int // no-op tasks that it ran
}

func busyWith(ctx context.Context, t *trial, threads int) {
	lasts, noops := t.lasts(5*time.Second, time.Second), t.size(100_000, 30_000)
	var p99s, beats []float64
	var all, flushed []time.Duration
	tasks, beaten := 0, 0
	t.again(3, func() {
		reports, disk := busyOnce(ctx, t, threads, noops, lasts)
		flushed = append(flushed, disk...)
		var hops []time.Duration
		var longest time.Duration
		for _, r := range reports {
			if r.Tasks >= noops {
				failf("a process ran all its %d tasks before the time was over: it was not busy", noops)
			}
			if len(r.Hops) == 0 {
				failf("a process made no hop at all in its chain")
			}
			hops, longest = append(hops, r.Hops...), max(longest, slices.Max(r.Beats))
			beaten, tasks = beaten+len(r.Beats), tasks+r.Tasks
		}
		all = append(all, hops...)
		p99s = append(p99s, milliseconds(quantile(hops, 0.99)))
		beats = append(beats, milliseconds(longest))
	})
	t.add(result{
		What: fmt.Sprintf("hop p99, %d threads each", threads), Value: median(p99s), Unit: "ms",
		Note: fmt.Sprintf("%d processes of %d threads for %v, together %.0f no-op tasks/s beside; %d hops, p50 %.2f ms, longest %.1f ms", busyProcesses, threads, lasts,
			perSecond(tasks, lasts*time.Duration(len(p99s))), len(all), milliseconds(median(all)), milliseconds(quantile(all, 1))),
	})
	t.add(result{What: "heartbeat, longest", Value: slices.Max(beats), Unit: "ms", Note: fmt.Sprintf(
		"of %d beats; 8 KiB that were written to another file beside and flushed took up to %.1f ms", beaten, milliseconds(slices.Max(flushed)))})
}

// busyOnce makes a file with a plan for each process and starts them together. It also returns how
// long the disk took meanwhile to flush small writes to another file, since a beat may wait for the
// disk.
func busyOnce(ctx context.Context, t *trial, threads, noops int, lasts time.Duration) (all []busyReport, disk []time.Duration) {
	db := t.open(ctx)
	defer db.close(ctx)
	ctx, cancel := context.WithTimeout(ctx, lasts+time.Minute)
	defer cancel()
	parts := make([]busyProcess, busyProcesses)
	for i := range parts {
		spec := chain(20_000).spec("busy", "hop")
		for i := range noops {
			spec.Add(plan.TaskSpec{Name: fmt.Sprintf("n%d", i), Plugin: "noop"})
		}
		p, _ := submitted(ctx, db, spec)
		parts[i] = busyProcess{strings.TrimPrefix(db.uri, "sqlite:"), p.ID, threads, lasts}
	}
	children := startCrew(ctx, busyWord, parts)
	defer children.stop()
	children.ready()
	children.tell()
	var g errgroup.Group
	done := make(chan struct{})
	g.Go(func() (err error) { disk, err = t.flushes(math.MaxInt, busyBeat, done); return err })
	err := try(func() { all = reports[busyReport](children) })
	close(done)
	check(g.Wait())
	check(err)
	return all, disk
}

// busyMain is the program as a busy process, which runs its plan for a time.
func busyMain(ctx context.Context, part []byte) func(context.Context) any {
	var p busyProcess
	check(json.Unmarshal(part, &p))
	s := must(sqlite.Open(ctx, p.Path, sqlite.Options{}))
	h, noop, m := &hops{}, &counting{}, &meter{Node: s}
	name := plan.NodeName(fmt.Sprintf("busy.%d", os.Getpid()))
	node := must(den.New(m, den.Config{Name: name, Threads: p.Threads, Plan: p.Plan, Plugins: named{"hop": h, "noop": noop}.registry()}))
	return func(ctx context.Context) any {
		ctx, cancel := context.WithTimeout(ctx, p.Lasts)
		defer cancel()
		var g errgroup.Group
		var beats []time.Duration
		g.Go(func() (err error) { beats, err = beatOften(ctx, s, name); return err })
		g.Go(func() error { return node.Run(ctx) })
		check(errors.Join(g.Wait(), s.Close()))
		return busyReport{Hops: h.all, Beats: append(beats, m.beats...), Tasks: int(noop.ran.Load())}
	}
}

// beatOften registers an instance, beats for it until ctx ends and returns how long each beat took.
func beatOften(ctx context.Context, s store.Node, name plan.NodeName) (took []time.Duration, err error) {
	me := plan.Instance{ID: plan.InstanceID{ID: plan.NewID(time.Now())}, Node: name, Lease: time.Minute, Process: plan.Process{PID: os.Getpid()}}
	if err := s.Register(ctx, me); err != nil {
		return nil, err
	}
	for tick := time.NewTicker(busyBeat); ; {
		select {
		case <-ctx.Done():
			return took, s.Leave(context.WithoutCancel(ctx), me.ID)
		case <-tick.C:
		}
		start := time.Now()
		_, err := s.Beat(ctx, protocol.Beat{Instance: me.ID})
		if err != nil && ctx.Err() == nil {
			return took, err
		}
		if err == nil {
			took = append(took, time.Since(start))
		}
	}
}
