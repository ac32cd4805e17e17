//go:build !race

// In Go 1.26 a synctest bubble and the race detector do not work together. Timers that fire in a
// bubble now and then crash the detector (golang.org/issue/78156). Tests for the detector run in
// real time, in race_test.go.

package den_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// A line is a node's connection to the store. It can be cut, after which every call fails, or counted.
type line struct {
	Store
	cut          atomic.Bool
	turns, beats atomic.Int64
	sweeps       atomic.Int64
}

var errCut = errors.New("the line is cut")

func (l *line) Turn(ctx context.Context, t protocol.Turn) (protocol.Turned, error) {
	l.turns.Add(1)
	if l.cut.Load() {
		return protocol.Turned{}, errCut
	}
	return l.Store.Turn(ctx, t)
}

func (l *line) Sweep(ctx context.Context, s protocol.Sweep) (protocol.Swept, error) {
	l.sweeps.Add(1)
	if l.cut.Load() {
		return protocol.Swept{}, errCut
	}
	return l.Store.Sweep(ctx, s)
}

func (l *line) Beat(ctx context.Context, b protocol.Beat) (protocol.Beaten, error) {
	l.beats.Add(1)
	if l.cut.Load() {
		return protocol.Beaten{}, errCut
	}
	return l.Store.Beat(ctx, b)
}

func (l *line) Register(ctx context.Context, i plan.Instance) error {
	if l.cut.Load() {
		return errCut
	}
	return l.Store.Register(ctx, i)
}

func (l *line) Leave(ctx context.Context, i plan.InstanceID) error {
	if l.cut.Load() {
		return errCut
	}
	return l.Store.Leave(ctx, i)
}

func TestAnIdleNodeAsksNoMoreThanTheBackoffAllows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		l := &line{Store: w.store}
		w.stopped(w.on(l, den.Config{}), 10*time.Minute)
		// 12 polls until the wait is 10 s, 30 s after the start, and then one each 10 s. A sweep goes with a poll, but for the first.
		if got := l.turns.Load(); got > 70 {
			t.Errorf("%d turns in 10 minutes with nothing to do, want at most 70", got)
		}
		if got := l.sweeps.Load(); got > 70 {
			t.Errorf("%d sweeps in 10 minutes with nothing to do, want at most 70", got)
		}
		if got := l.beats.Load(); got < 599 || got > 601 {
			t.Errorf("%d beats in 10 minutes, want one a second", got)
		}
	})
}

func TestANodeThatLosesTouchStopsBeforeItsLeaseIsOverAndAnotherGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var running, most atomic.Int64
		w.register("alone", func(ctx context.Context, t *plugins.Task) (any, error) {
			if n := running.Add(1); n > most.Load() {
				most.Store(n)
			}
			defer running.Add(-1)
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(time.Minute):
				return nil, nil
			}
		})
		s := plan.New("lost")
		s.Add(plan.TaskSpec{Name: "a", Plugin: "alone"})
		p := w.submit(s)
		first := &line{Store: w.store}
		ctx, stop := context.WithCancel(t.Context())
		var nodes sync.WaitGroup
		nodes.Go(func() { _ = w.on(first, den.Config{Name: "first"}).Run(ctx) })
		time.Sleep(10 * time.Second)
		first.cut.Store(true)
		cut := time.Now()
		nodes.Go(func() { _ = w.node(den.Config{Name: "second"}).Run(ctx) })
		time.Sleep(7 * time.Second)
		if n := running.Load(); n != 0 {
			t.Errorf("%d attempts still run two thirds of the lease after the line was cut, want none", n)
		}
		for {
			time.Sleep(100 * time.Millisecond)
			if got := w.task(p, "a"); got.Status == plan.Succeeded {
				if got.Attempt != 2 || got.Rescues != 1 || got.Node != "second" {
					t.Errorf("attempt %d, %d rescues, on %s, want 2, 1, second", got.Attempt, got.Rescues, got.Node)
				}
				break
			}
		}
		// The lease of 10 s, a beat to see it, and the minute that the task takes.
		if took := time.Since(cut); took > 73*time.Second {
			t.Errorf("the task ended %v after its node was lost, want within 73 s", took)
		}
		if n := most.Load(); n != 1 {
			t.Errorf("%d attempts ran at once, want never more than 1", n)
		}
		stop()
		nodes.Wait()
	})
}

func TestANodeThatStopsWithoutItsStoreSaysWhatBecomesOfItsTasks(t *testing.T) {
	for _, c := range []struct {
		name  string
		cut   time.Duration // before it is stopped
		grace time.Duration
		hurry time.Duration // after it is stopped
		tasks int
		want  bool
	}{
		{"its lease ends meanwhile", time.Second, time.Hour, time.Hour, 2, true},
		{"it stops before its lease ends", 0, time.Second, time.Hour, 2, true},
		{"it ends at once", 0, time.Hour, time.Second, 2, true},
		{"with nothing to give back", time.Second, time.Hour, time.Hour, 0, false},
		{"the store is there", -time.Hour, time.Second, time.Hour, 2, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				s := plan.New("lost")
				for i := range c.tasks {
					s.Add(plan.TaskSpec{Name: fmt.Sprint(i), Plugin: "sleep", Params: params(`{"for": "2h"}`)})
				}
				if c.tasks > 0 {
					w.submit(s)
				}
				l, log := &line{Store: w.store}, &strings.Builder{}
				n := w.on(l, den.Config{Threads: 4, Lease: 10 * time.Second, Grace: c.grace, Logger: slog.New(slog.NewTextHandler(log, nil))})
				if c.cut >= 0 {
					time.AfterFunc(time.Minute-c.cut, func() { l.cut.Store(true) })
				}
				time.AfterFunc(time.Minute+c.hurry, n.Hurry)
				w.stopped(n, time.Minute)
				says := 0
				for line := range strings.Lines(log.String()) {
					if strings.Contains(line, "could not be given back; other nodes rescue it") && strings.Contains(line, fmt.Sprintf(" tasks=%d lease=10s", c.tasks)) {
						says++
					}
				}
				if says > 1 || (says > 0) != c.want {
					t.Errorf("it is said %d times what becomes of the tasks, want it once: %v\n%s", says, c.want, log)
				}
			})
		})
	}
}

// A command may take as long to end as its grace period, which may be longer than the rest of the
// lease.
func TestWhatTakesItsTimeToEndIsHurriedWhenTheLeaseIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var running atomic.Int64
		w.register("slow", func(ctx context.Context, t *plugins.Task) (any, error) {
			running.Add(1)
			defer running.Add(-1)
			<-ctx.Done()
			select {
			case <-t.Hurry:
			case <-time.After(time.Minute):
			}
			return nil, ctx.Err()
		})
		s := plan.New("lost")
		s.Add(plan.TaskSpec{Name: "a", Plugin: "slow"})
		w.submit(s)
		l := &line{Store: w.store}
		ctx, stop := context.WithCancel(t.Context())
		var node sync.WaitGroup
		node.Go(func() { _ = w.on(l, den.Config{Lease: 10 * time.Second}).Run(ctx) })
		time.Sleep(10*time.Second + time.Millisecond)
		if n := running.Load(); n != 1 {
			t.Fatalf("%d attempts run, want 1", n)
		}
		l.cut.Store(true)
		time.Sleep(9 * time.Second) // its last beat was just before
		if n := running.Load(); n != 0 {
			t.Errorf("%d attempts still run when others may begin, want none", n)
		}
		stop()
		node.Wait()
	})
}

func TestAProcessThatIsKnownToBeDeadIsRescuedAsSoonAsItsCommandsHaveEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := plan.New("dead")
		s.Add(plan.TaskSpec{Name: "a", Plugin: "echo"})
		p := w.submit(s)
		dead := plan.Instance{ID: plan.InstanceID{ID: plan.NewID(time.Now())}, Host: "host", Process: plan.Process{PID: 1}, Lease: time.Hour}
		if err := w.store.Register(t.Context(), dead); err != nil {
			t.Fatal(err)
		}
		turned, err := w.store.Turn(t.Context(), protocol.Turn{Instance: dead.ID, Slots: 1, Plugins: []string{"echo"}, Start: true})
		if err != nil || len(turned.Claimed) != 1 {
			t.Fatalf("claimed %d, %v", len(turned.Claimed), err)
		}
		start := time.Now()
		const linger = 300 * time.Millisecond
		n := w.node(den.Config{Plan: p.ID, Dead: func(i plan.Instance) bool { return i.ID == dead.ID }, Linger: linger})
		if err := n.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := time.Since(start); got < linger || got > linger+100*time.Millisecond {
			t.Errorf("the plan took %v, want %v, in which what the dead process ran can end, and no wait for the lease", got, linger)
		}
		w.wantEnd(p, plan.PlanSucceeded)
	})
}

// Nodes die, and come back, again and again while they work on random plans. Every task must have
// its effect, and no second one after it had finished.
func TestPlansFinishWhateverDies(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { simulate(t, rand.New(rand.NewPCG(seed, 1))) })
		})
	}
}

func simulate(t *testing.T, r *rand.Rand) {
	w := newWorld(t)
	s := plan.New("random")
	const tasks = 60
	for i := range tasks {
		spec := plan.TaskSpec{
			Name: fmt.Sprintf("t%d", i), Plugin: "sleep", Params: params(fmt.Sprintf(`{"for": "%dms"}`, r.IntN(5000))),
			MaxRescues: 1000,
		}
		for range min(i, r.IntN(4)) {
			need := fmt.Sprintf("t%d", r.IntN(i))
			if !slices.Contains(spec.Needs, need) {
				spec.Needs = append(spec.Needs, need)
			}
		}
		s.Add(spec)
	}
	p := w.submit(s)
	ctx, stop := context.WithCancel(t.Context())
	var nodes sync.WaitGroup
	defer nodes.Wait()
	defer stop()
	lines := make([]*line, 3)
	begin := func(k int) {
		l := &line{Store: w.store}
		lines[k] = l
		nodes.Go(func() {
			_ = w.on(l, den.Config{Threads: 4, Name: plan.NodeName(fmt.Sprintf("n%d", k))}).Run(ctx)
		})
	}
	for k := range lines {
		begin(k)
	}
	finished := map[string]int{} // by name, the attempt that succeeded
	for range 600 {
		time.Sleep(time.Second)
		if k := r.IntN(12); k < len(lines) {
			lines[k].cut.Store(true) // for good: the process is as good as dead
			begin(k)
		}
		all, err := w.store.Tasks(t.Context(), store.TaskQuery{Plan: p.ID, Limit: tasks})
		if err != nil {
			t.Fatal(err)
		}
		done := 0
		for _, task := range all {
			before, was := finished[task.Name]
			switch {
			case was && (task.Status != plan.Succeeded || task.Attempt != before):
				t.Fatalf("%s had succeeded with attempt %d; now it is %s with attempt %d", task.Name, before, task.State(), task.Attempt)
			case task.Status == plan.Succeeded:
				finished[task.Name] = task.Attempt
				done++
			case task.Status.Finished():
				t.Fatalf("%s is %s: %s", task.Name, task.State(), task.Detail)
			}
		}
		if done == tasks {
			w.wantEnd(p, plan.PlanSucceeded)
			return
		}
	}
	t.Errorf("only %d of %d tasks finished in ten minutes", len(finished), tasks)
}

type plugin func(context.Context, *plugins.Task) plan.Result

func (p plugin) Run(ctx context.Context, t *plugins.Task) plan.Result { return p(ctx, t) }

func TestALostOutputCountsAsALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.plugins.Register("vanishes", plugin(func(_ context.Context, t *plugins.Task) plan.Result {
			if t.Name == "a" && t.Attempt == 3 {
				return plan.Result{Status: plan.Succeeded}
			}
			return plan.Result{Status: plan.Queued, Reason: plan.ReasonLost, Detail: "gone", Exit: &plan.Exit{}}
		}))
		s := plan.New("lost")
		s.Add(plan.TaskSpec{Name: "a", Plugin: "vanishes"})
		s.Add(plan.TaskSpec{Name: "b", Plugin: "vanishes", MaxRescues: 1})
		s.Add(plan.TaskSpec{Name: "once", Plugin: "vanishes", OnLost: plan.OnLostFail})
		p := w.submit(s)
		if err := w.node(den.Config{Plan: p.ID}).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.wantState(p, map[string]string{"a": "succeeded", "b": "orphaned", "once": "orphaned"})
		for name, want := range map[string]plan.Task{
			"a": {Attempt: 3, Rescues: 2}, "b": {Attempt: 2, Rescues: 1, Detail: "gone, for the 2nd time"}, "once": {Attempt: 1, Detail: "gone, and it is not to run twice"},
		} {
			if got := w.task(p, name); got.Attempt != want.Attempt || got.Rescues != want.Rescues || got.Detail != want.Detail {
				t.Errorf("%s: attempt %d, %d losses, %q; want %d, %d, %q", name, got.Attempt, got.Rescues, got.Detail, want.Attempt, want.Rescues, want.Detail)
			}
		}
	})
}

func TestALongDetailIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.register("talks", func(context.Context, *plugins.Task) (any, error) {
			return nil, errors.New("disk full: " + strings.Repeat("é", 10<<20))
		})
		s := plan.New("long")
		s.Add(plan.TaskSpec{Name: "a", Plugin: "talks"})
		p := w.submit(s)
		if err := w.node(den.Config{Plan: p.ID}).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		got := w.task(p, "a").Detail
		if len(got) > plan.MaxDetail || !utf8.ValidString(got) || !strings.HasPrefix(got, "disk full: é") || !strings.HasSuffix(got, "é…") {
			t.Errorf("the detail has %d bytes: %.40s", len(got), got)
		}
	})
}
