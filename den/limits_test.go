//go:build !race

// In Go 1.26 a synctest bubble and the race detector do not work together. Timers that fire in a
// bubble now and then crash the detector (golang.org/issue/78156). Tests for the detector run in
// real time, in race_test.go.

package den_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

func TestTheInstancesOfANodeKeepToItsLimitTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var mu sync.Mutex
		running, most := 0, 0
		w.register("count", func(context.Context, *plugins.Task) (any, error) {
			mu.Lock()
			running++
			most = max(most, running)
			mu.Unlock()
			time.Sleep(5 * time.Second)
			mu.Lock()
			defer mu.Unlock()
			running--
			return nil, nil
		})
		const limit, tasks = 3, 12
		if err := w.store.SetMaxThreads(t.Context(), "host", limit); err != nil {
			t.Fatal(err)
		}
		s := plan.New("many")
		for i := range tasks {
			s.Add(plan.TaskSpec{Name: fmt.Sprint("t", i), Plugin: "count"})
		}
		p := w.submit(s)
		start := time.Now()
		var nodes sync.WaitGroup
		for range 2 {
			nodes.Go(func() {
				if err := w.node(den.Config{Plan: p.ID, Threads: 4}).Run(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		nodes.Wait()
		if most != limit {
			t.Errorf("%d tasks ran at once, want the limit of the node, %d", most, limit)
		}
		if got, want := time.Since(start), tasks/limit*5*time.Second; got < want || got > want+time.Second {
			t.Errorf("the plan took %v, want %v", got, want)
		}
		w.wantEnd(p, plan.PlanSucceeded)
	})
}

// A node heeds a limit that was raised or lifted with its next beat. It does so even if each of its
// instances alone was within the limit.
func TestALimitThatIsRaisedIsHeededAtOnce(t *testing.T) {
	for _, raised := range []int{8, -1} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			var running atomic.Int32
			w.register("wait", func(ctx context.Context, _ *plugins.Task) (any, error) {
				running.Add(1)
				<-ctx.Done()
				return nil, ctx.Err()
			})
			if err := w.store.SetMaxThreads(t.Context(), "host", 4); err != nil {
				t.Fatal(err)
			}
			s := plan.New("many")
			for i := range 8 {
				s.Add(plan.TaskSpec{Name: fmt.Sprint("t", i), Plugin: "wait"})
			}
			w.submit(s)
			ctx, stop := context.WithCancel(t.Context())
			var nodes sync.WaitGroup
			for range 2 {
				nodes.Go(func() {
					if err := w.node(den.Config{Threads: 4}).Run(ctx); err != nil {
						t.Error(err)
					}
				})
			}
			time.Sleep(time.Minute)
			if n := running.Load(); n != 4 {
				t.Errorf("%d tasks run, want the limit of the node, 4", n)
			}
			if err := w.store.SetMaxThreads(t.Context(), "host", raised); err != nil {
				t.Fatal(err)
			}
			time.Sleep(1100 * time.Millisecond)
			if n := running.Load(); n != 8 {
				t.Errorf("%d tasks run a second after the limit became %d, want 8", n, raised)
			}
			stop()
			nodes.Wait()
		})
	}
}

func TestADelayIsOverInTimeHoweverManyBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		first, again := map[string]time.Time{}, map[string]time.Time{} // by task, when an attempt failed and when the next one began
		w.register("flaky", func(_ context.Context, t *plugins.Task) (any, error) {
			if t.Attempt == 2 {
				again[t.Name] = time.Now()
				return nil, nil
			}
			time.Sleep(500 * time.Millisecond)
			first[t.Name] = time.Now()
			return nil, errors.New("not yet")
		})
		const tasks, delay = 200, 5 * time.Second
		s := plan.New("flaky")
		for i := range tasks {
			s.Add(plan.TaskSpec{Name: fmt.Sprint("t", i), Plugin: "flaky", Retry: plan.Retry{Attempts: 2, Delay: delay, Max: delay}})
		}
		// Each turn of the one thread begins another delay; what comes back is older than what has not run, and so is claimed first.
		if err := w.node(den.Config{Plan: w.submit(s).ID, Threads: 1}).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		for name, at := range again {
			if took := at.Sub(first[name]); took > delay+2*time.Second {
				t.Errorf("%s ran again after %v, want at most its delay of %v, a sweep and who came first", name, took, delay)
			}
		}
		if len(again) != tasks {
			t.Errorf("%d tasks ran again, want %d", len(again), tasks)
		}
	})
}
