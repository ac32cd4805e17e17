package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/sqlite"
	"github.com/seed-1177d267/sluice/plan"
)

// A part is what this program does as a process of a scenario that measures several. The process
// gets it in a variable and not as an argument, because a URI may have a password.
type part struct {
	URI     string // of a MongoDB database; or the path of a file, and the process is busy
	Name    plan.NodeName
	Host    string // that it says it is on; "": this one
	Threads int
	Lease   time.Duration
	Beat    time.Duration
	Stuck   bool // its tasks do not end by themselves
	Bare    int  // if not 0, it is no node but a loop over that many queues

	Plan  plan.PlanID // of a busy process
	Lasts time.Duration
}

const partVariable = "SLUICE_BENCH_PART"

// partMain is this program as such a process. It does not return then. It prepares, says that it is
// ready, and waits for a line. Then it works until the end of its input, and reports.
func partMain() {
	text := os.Getenv(partVariable)
	if text == "" {
		return
	}
	err := try(func() {
		var p part
		check(json.Unmarshal([]byte(text), &p))
		work := clusterPart
		if p.Lasts > 0 {
			work = busyPart
		}
		ctx, stop := context.WithCancel(context.Background())
		defer stop()
		do := work(ctx, p)
		fmt.Println("ready")
		in := bufio.NewReader(os.Stdin)
		_ = must(in.ReadString('\n'))
		go func() { // it ends with the input, which nothing else reads
			_, _ = in.ReadString('\n') // a parent that is gone says the same
			stop()
		}()
		check(json.NewEncoder(os.Stdout).Encode(do(ctx)))
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// startParts starts a process for each part, and waits until all are ready.
func (m *measurement) startParts(parts []part) (all []*process) {
	for _, one := range parts {
		p := &process{Cmd: exec.CommandContext(m.Context(), must(os.Executable()))}
		p.Env, p.Stderr = append(os.Environ(), partVariable+"="+string(must(json.Marshal(one)))), &p.said
		p.in, p.out = must(p.StdinPipe()), bufio.NewReader(must(p.StdoutPipe()))
		check(p.Start())
		all = append(all, p)
	}
	for _, p := range all {
		_ = p.line()
	}
	return all
}

// line reads a line that a part writes.
func (p *process) line() string {
	line, err := p.out.ReadString('\n')
	if err != nil {
		failf("a process did not come up, or ended: %w: %s", errors.Join(err, p.Wait()), &p.said)
	}
	return line
}

// begin lets the parts work.
func begin(all []*process) {
	for _, p := range all {
		_ = must(io.WriteString(p.in, "go\n"))
	}
}

// reports waits for the report of each part, which it ends if that does not end by itself.
func reports[T any](all []*process, byItself bool) []T {
	for _, p := range all {
		if !byItself {
			check(p.in.Close())
		}
	}
	said := make([]T, len(all))
	for i, p := range all {
		check(json.Unmarshal([]byte(p.line()), &said[i]))
	}
	return said
}

// stop ends the parts that have not been killed.
func stop(all []*process) {
	for _, p := range all {
		p.stop()
	}
}

// busyBeat is how often an instance of a busy process beats that runs nothing.
const busyBeat = 20 * time.Millisecond

// busyReport is what a busy process says when it ends.
type busyReport struct {
	Hops, Beats []time.Duration
	Tasks       int // no-op tasks that it ran
}

// busy compares three processes on one file with one process alone. Each has a node that runs a plan
// of its own. The plan is a chain, whose hops are measured, and more no-op tasks without needs than
// the node can run in the time: a process alone gets those of all three. Each also has a second instance, which runs nothing, beats often and
// notes the duration of each heartbeat. The floors are for few threads; with many, each turn is
// large.
func busy(m *measurement) {
	lasts := size(3*time.Second, time.Second)
	m.repeat(func() {
		for _, threads := range []int{execJobs, 64} {
			hop, beat, rate := m.busyOnce(3, threads, lasts)
			hopAlone, beatAlone, _ := m.busyOnce(1, threads, lasts)
			m.pair(fmt.Sprintf("hop-p99-of-%d", threads), "ms", hop, "one process alone", hopAlone)
			m.pair(fmt.Sprintf("beat-longest-of-%d", threads), "ms", beat, "one process alone", beatAlone)
			m.note("3 processes of %d and 64 threads for %v each; with 64, they ran %.0f no-op tasks/s", execJobs, lasts, rate)
		}
	})
}

// busyOnce makes a file with a plan for each process and starts them together. It returns the 99th
// percentile of their hops, their longest beat, and their no-op tasks a second.
func (m *measurement) busyOnce(processes, threads int, lasts time.Duration) (hop, beat, rate float64) {
	db, noops := m.open(), size(450_000/processes, 10_000)
	defer db.close()
	parts := make([]part, processes)
	for i := range parts {
		spec := chain(size(20_000, 3_000)).spec("busy", "hop")
		for i := range noops {
			spec.Add(plan.TaskSpec{Name: fmt.Sprintf("n%d", i), Plugin: "noop"})
		}
		p, _ := m.submitted(db, spec)
		parts[i] = part{URI: strings.TrimPrefix(db.uri, "sqlite:"), Plan: p.ID, Threads: threads, Lasts: lasts}
	}
	all := m.startParts(parts)
	defer stop(all)
	begin(all)
	var hops, beats []time.Duration
	tasks := 0
	for _, r := range reports[busyReport](all, true) {
		if !testing.Short() && (r.Tasks >= noops || len(r.Hops) == 0) {
			failf("a process ran %d of %d tasks, and made %d hops: it was not busy to the end", r.Tasks, noops, len(r.Hops))
		}
		hops, beats, tasks = append(hops, r.Hops...), append(beats, r.Beats...), tasks+r.Tasks
	}
	return milliseconds(quantile(hops, 0.99)), milliseconds(quantile(beats, 1)), perSecond(tasks, lasts)
}

// busyPart is the program as a busy process, which runs its plan for a time.
func busyPart(ctx context.Context, p part) func(context.Context) any {
	s := must(sqlite.Open(ctx, p.URI, sqlite.Options{}))
	h, noop, through := &hops{}, &counting{}, &meter{Node: s}
	name := plan.NodeName(fmt.Sprintf("busy.%d", os.Getpid()))
	node := must(den.New(through, den.Config{Name: name, Threads: p.Threads, Plan: p.Plan, Plugins: named{"hop": h, "noop": noop}.registry()}))
	return func(ctx context.Context) any {
		ctx, cancel := context.WithTimeout(ctx, p.Lasts)
		defer cancel()
		var g errgroup.Group
		var beats []time.Duration
		g.Go(func() (err error) { beats, err = beatOften(ctx, s, name); return err })
		g.Go(func() error { return node.Run(ctx) })
		check(errors.Join(g.Wait(), s.Close()))
		return busyReport{h.all, append(beats, through.beats...), int(noop.ran.Load())}
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
