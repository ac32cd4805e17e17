package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/sqlite"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// Three processes share one file. Each has a node that runs a plan of its own: a chain, whose hops
// are measured, and more no-op tasks without needs than it can run in the time. Each also has a
// second instance, which runs nothing, beats often and notes the duration of each heartbeat.
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
	return []scenario{{
		name:  "busy/sqlite",
		about: "three busy processes on one file: a chain's hop, and how long a heartbeat waits",
		run:   busy,
	}}
}

// busyReport is what such a process says when it ends.
type busyReport struct {
	Hops  []time.Duration
	Beats []time.Duration
	Tasks int // no-op tasks that it ran
}

func busy(ctx context.Context, b *bench, add func(result)) error {
	for i, threads := range busyThreads {
		if err := busyWith(ctx, b, threads, i == 0, add); err != nil {
			return err
		}
	}
	return nil
}

func busyWith(ctx context.Context, b *bench, threads int, judged bool, add func(result)) error {
	lasts := 5 * time.Second
	if b.quick {
		lasts = time.Second
	}
	noops := b.size(100_000, 30_000)
	var p99s, beats []float64
	var all, flushed []time.Duration
	tasks, beaten := 0, 0
	for range b.repetitions(3) {
		reports, disk, err := busyOnce(ctx, b, threads, noops, lasts)
		if err != nil {
			return err
		}
		flushed = append(flushed, disk...)
		var hops []time.Duration
		var longest time.Duration
		for _, r := range reports {
			if r.Tasks >= noops {
				return fmt.Errorf("a process ran all its %d tasks before the time was over: it was not busy", noops)
			}
			if len(r.Hops) == 0 {
				return errors.New("a process made no hop at all in its chain")
			}
			hops = append(hops, r.Hops...)
			longest = max(longest, slices.Max(r.Beats))
			beaten += len(r.Beats)
			tasks += r.Tasks
		}
		all = append(all, hops...)
		p99s = append(p99s, milliseconds(quantile(hops, 0.99)))
		beats = append(beats, milliseconds(longest))
	}
	rate := perSecond(tasks, lasts*time.Duration(len(p99s)))
	note := fmt.Sprintf("%d processes of %d threads for %v, together %.0f no-op tasks/s beside; %d hops, p50 %.2f ms, longest %.1f ms",
		busyProcesses, threads, lasts, rate, len(all), milliseconds(median(all)), milliseconds(quantile(all, 1)))
	hop := result{What: fmt.Sprintf("hop p99, %d threads each", threads), Value: median(p99s), Unit: "ms", Note: note}
	beat := result{What: "heartbeat, longest", Value: slices.Max(beats), Unit: "ms", Floor: atMost(200), Note: fmt.Sprintf(
		"of %d beats; 8 KiB that were written to another file beside and flushed took up to %.1f ms", beaten, milliseconds(slices.Max(flushed)))}
	if judged {
		hop.Floor = atMost(20)
	}
	add(hop)
	add(beat)
	return nil
}

// busyOnce makes a file with a plan for each process and starts them together. It also returns how long the disk took meanwhile to make
// small writes to another file safe: what a beat waits for may be the disk.
func busyOnce(ctx context.Context, b *bench, threads, noops int, lasts time.Duration) (reports []busyReport, disk []time.Duration, err error) {
	db, err := b.open(ctx, onSQLite)
	if err != nil {
		return nil, nil, err
	}
	defer closing(ctx, db, &err)
	ctx, cancel := context.WithTimeout(ctx, lasts+time.Minute)
	defer cancel()
	var children []*child
	defer func() {
		for _, c := range children {
			err = errors.Join(err, c.stop())
		}
	}()
	for range busyProcesses {
		spec := chain(20_000).spec("busy", "hop")
		for i := range noops {
			spec.Add(plan.TaskSpec{Name: fmt.Sprintf("n%d", i), Plugin: "noop"})
		}
		p, _, err := submitted(ctx, db, spec)
		if err != nil {
			return nil, nil, err
		}
		c, err := startChild(ctx, busyWord, strings.TrimPrefix(db.uri, "sqlite:"), p.ID.String(), strconv.Itoa(threads), lasts.String())
		if err != nil {
			return nil, nil, err
		}
		children = append(children, c)
	}
	for _, c := range children {
		if err := c.ready(); err != nil {
			return nil, nil, err
		}
	}
	for _, c := range children {
		if err := c.tell("go"); err != nil {
			return nil, nil, err
		}
	}
	var g errgroup.Group
	done := make(chan struct{})
	g.Go(func() (err error) { disk, err = b.flushes(math.MaxInt, busyBeat, done); return err })
	for _, c := range children {
		var r busyReport
		if e := json.NewDecoder(c.out).Decode(&r); e != nil {
			err = errors.Join(err, fmt.Errorf("a busy process did not report: %w", e))
		}
		reports = append(reports, r)
	}
	close(done)
	err = errors.Join(err, g.Wait())
	return reports, disk, err
}

// busyMain is the program as a busy process: PATH PLAN THREADS DURATION.
func busyMain(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) != 4 {
		fmt.Fprintln(stderr, "bench: a busy process takes PATH PLAN THREADS DURATION")
		return 2
	}
	id, err := plan.ParseID(args[1])
	threads, threadsErr := strconv.Atoi(args[2])
	lasts, lastsErr := time.ParseDuration(args[3])
	if err = errors.Join(err, threadsErr, lastsErr); err == nil {
		err = beBusy(ctx, filepath.Clean(args[0]), plan.PlanID{ID: id}, threads, lasts, stdin, stdout)
	}
	if err != nil {
		fmt.Fprintln(stderr, "bench: busy process:", err)
		return 1
	}
	return 0
}

// beBusy says that it is there, waits for a line, runs the plan for a time and reports.
func beBusy(ctx context.Context, path string, id plan.PlanID, threads int, lasts time.Duration, stdin io.Reader, stdout io.Writer) (err error) {
	s, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	h, noop := &hops{}, &counting{}
	m := newMeter(s)
	name := plan.NodeName(fmt.Sprintf("busy.%d", os.Getpid()))
	node, err := den.New(m, den.Config{
		Name: name, Threads: threads, Plan: id, Plugins: registry(map[string]plugins.Plugin{"hop": h, "noop": noop}),
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(stdout, "ready")
	in := bufio.NewReader(stdin)
	if line, err := in.ReadString('\n'); err != nil {
		return fmt.Errorf("told to end (%q) before it began: %w", line, err)
	}
	ctx, cancel := context.WithTimeout(ctx, lasts)
	defer cancel()
	var beats []time.Duration
	var beatErr error
	var wg sync.WaitGroup
	wg.Go(func() { beats, beatErr = beatOften(ctx, s, name) })
	err = node.Run(ctx)
	wg.Wait()
	if err = errors.Join(err, beatErr); err != nil {
		return err
	}
	return json.NewEncoder(stdout).Encode(busyReport{Hops: h.all, Beats: append(beats, m.beats...), Tasks: int(noop.ran.Load())})
}

// beatOften registers an instance, beats for it until ctx ends and returns how long each beat took.
func beatOften(ctx context.Context, s store.Node, name plan.NodeName) ([]time.Duration, error) {
	me := plan.Instance{ID: plan.InstanceID{ID: plan.NewID(time.Now())}, Node: name, Lease: time.Minute, Process: plan.Process{PID: os.Getpid()}}
	if err := s.Register(ctx, me); err != nil {
		return nil, err
	}
	var took []time.Duration
	tick := time.NewTicker(busyBeat)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return took, s.Leave(context.WithoutCancel(ctx), me.ID)
		case <-tick.C:
		}
		start := time.Now()
		_, err := s.Beat(ctx, plan.Beat{Instance: me.ID})
		if err != nil && ctx.Err() == nil {
			return took, err
		}
		if err == nil {
			took = append(took, time.Since(start))
		}
	}
}
