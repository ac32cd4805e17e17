//go:build !race

package den_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// An annex runs the tasks of the queue sleep outside: each by a node that is a runner, in this process.
type annex struct {
	*world
	foreign plugins.Plugin
	refuse  int // so many runners take nothing

	mu  sync.Mutex
	ran []string
	wg  sync.WaitGroup
}

func (a *annex) Runs(queue, _ string) bool { return queue == "sleep" }

func (a *annex) Run(ctx context.Context, t *protocol.ClaimedTask, as plan.InstanceID, _ <-chan struct{}) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.refuse--; a.refuse >= 0 {
		return errors.New("no room")
	}
	a.ran = append(a.ran, t.Name)
	n := a.node(den.Config{Name: "n1", Foreign: a.foreign})
	ended := make(chan error, 1)
	a.wg.Go(func() { ended <- n.RunClaimed(a.Context(), t.Task, as) })
	a.mu.Unlock()
	defer a.mu.Lock()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (w *world) twoKinds() plan.Plan {
	s := plan.New("both")
	s.Add(plan.TaskSpec{Name: "in", Plugin: "echo"})
	s.Add(plan.TaskSpec{Name: "out", Plugin: "sleep", Needs: []string{"in"}, Params: params(`{"for": "1m"}`)})
	s.Add(plan.TaskSpec{Name: "after", Plugin: "echo", Needs: []string{"out"}})
	return w.submit(s)
}

func TestSomeTasksRunOutside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		out := &annex{world: w}
		p := w.twoKinds()
		if err := w.node(den.Config{Name: "n1", Plan: p.ID, Outside: out}).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.wantState(p, map[string]string{"in": "succeeded", "out": "succeeded", "after": "succeeded"})
		if !slices.Equal(out.ran, []string{"out"}) {
			t.Errorf("%q ran outside, want the task of that queue", out.ran)
		}
		if is := w.task(p, "out"); is.Attempt != 1 || is.Node != "n1" {
			t.Errorf("it ended with attempt %d of node %q, want the first of n1", is.Attempt, is.Node)
		}
		out.wg.Wait()
		if all, err := w.store.Instances(t.Context()); err != nil || len(all) > 0 {
			t.Errorf("there are %d instances left, %v", len(all), err)
		}
	})
}

func TestATaskThatNoRunnerTookIsGivenBackAfterAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		out := &annex{world: w, refuse: 2}
		p := w.twoKinds()
		var said strings.Builder
		began := time.Now()
		if err := w.node(den.Config{Name: "n1", Plan: p.ID, Outside: out, Logger: slog.New(slog.NewTextHandler(&said, nil))}).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < 70*time.Second || took > 75*time.Second {
			t.Errorf("it took %v, want the task's minute and two pauses of 5 s", took)
		}
		if is := w.task(p, "out"); is.Status != plan.Succeeded || is.Attempt != 1 || !strings.Contains(said.String(), "no room") {
			t.Errorf("it is %v with attempt %d; the log:\n%s", is.Status, is.Attempt, &said)
		}
	})
}

func TestANodeThatStopsLeavesItsRunnersAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		out := &annex{world: w}
		p := w.twoKinds()
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
		defer stop()
		began := time.Now()
		if err := w.node(den.Config{Name: "n1", Outside: out, Sole: true}).Run(ctx); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 11*time.Second {
			t.Errorf("it ended after %v, want it at once when it was stopped after 10 s", took)
		}
		w.wantState(p, map[string]string{"in": "succeeded", "out": "running", "after": "held"})

		// The next one of its name knows of the thread that is taken.
		again, end := context.WithTimeout(t.Context(), 2*time.Minute)
		defer end()
		s := plan.New("other")
		s.Add(plan.TaskSpec{Name: "other", Plugin: "echo"})
		o := w.submit(s)
		time.AfterFunc(20*time.Second, func() {
			if is := w.task(o, "other"); is.Status != plan.Queued {
				t.Errorf("a node of one thread has a task %v beside the one of a runner that was left", is.Status)
			}
		})
		if err := w.node(den.Config{Name: "n1", Threads: 1, Outside: out, Sole: true}).Run(again); err != nil {
			t.Fatal(err)
		}
		w.wantState(p, map[string]string{"in": "succeeded", "out": "succeeded", "after": "succeeded"})
		if is := w.task(o, "other"); is.Status != plan.Succeeded {
			t.Errorf("the other task is %v", is.Status)
		}
		if is := w.task(p, "out"); is.Attempt != 1 {
			t.Errorf("it ended with attempt %d, want the first", is.Attempt)
		}
		out.wg.Wait()
	})
}

func TestARunnerWhoseTaskIsCancelledStopsIt(t *testing.T) {
	for _, foreign := range []bool{false, true} {
		t.Run(fmt.Sprint("foreign ", foreign), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				out := &annex{world: w}
				if foreign {
					out.foreign, _ = w.plugins.Get("sleep")
				}
				p := w.twoKinds()
				time.AfterFunc(10*time.Second, func() {
					if err := w.store.CancelTask(t.Context(), w.task(p, "out").ID); err != nil {
						t.Error(err)
					}
				})
				if err := w.node(den.Config{Name: "n1", Plan: p.ID, Outside: out}).Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				if is := w.task(p, "out"); is.Status != plan.Terminated || is.Reason != plan.ReasonCancelled {
					t.Errorf("it is %v (%v), want it terminated by a person", is.Status, is.Reason)
				}
				out.wg.Wait()
			})
		})
	}
}

// Another program's runner that ends without ending its task has lost it.
func TestATaskThatAForeignRunnerDidNotEndIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		tries := 0
		out := &annex{world: w}
		p := w.twoKinds()
		out.foreign = plugins.Func(func(ctx context.Context, task *plugins.Task) (any, error) {
			if tries++; tries < 3 {
				return nil, nil
			}
			// It ends its task as another program does: by a write of its own.
			found, err := w.store.Tasks(ctx, store.TaskQuery{IDs: []plan.TaskID{task.ID}, Limit: 1})
			if err != nil || len(found) != 1 {
				t.Fatalf("%d tasks, %v", len(found), err)
			}
			c, err := w.store.Take(ctx, protocol.Take{Instance: found[0].Instance, Task: task.ID}) // which it has
			if err == nil {
				_, err = w.store.Turn(ctx, protocol.Turn{Instance: found[0].Instance, Ended: []protocol.Ending{{Claim: c.Claim, Status: plan.Succeeded}}})
			}
			return nil, err
		})
		if err := w.node(den.Config{Name: "n1", Plan: p.ID, Outside: out}).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if is := w.task(p, "out"); is.Status != plan.Succeeded || tries != 3 {
			t.Errorf("it is %v after %d tries, want it to have succeeded with the third", is.Status, tries)
		}
		out.wg.Wait()
	})
}

func TestRunnersOfALostSessionAreThreadsThatAreTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		deaf := &deaf{Store: w.store}
		out := &annex{world: w}
		p := w.twoKinds()
		s := plan.New("more")
		s.Add(plan.TaskSpec{Name: "out2", Plugin: "sleep", Params: params(`{"for": "1m"}`)})
		p2 := w.submit(s)
		ctx, stop := context.WithTimeout(t.Context(), 40*time.Second)
		defer stop()
		time.AfterFunc(5*time.Second, func() { deaf.beats.Store(true) })
		time.AfterFunc(14*time.Second, func() { deaf.beats.Store(false) })
		time.AfterFunc(30*time.Second, func() {
			if w.task(p, "out").Status == plan.Running && w.task(p2, "out2").Status == plan.Running {
				t.Errorf("a node of one thread runs two tasks")
			}
		})
		if err := w.on(deaf, den.Config{Name: "n1", Threads: 1, Sole: true, Outside: out}).Run(ctx); err != nil {
			t.Fatal(err)
		}
		out.wg.Wait()
	})
}

// A still is an Outside whose runners take their tasks and stand still then, until they are ended.
type still struct {
	*world
	ended []time.Duration // how long after it took its task each was
	takes time.Duration   // to be ended
}

func (s *still) Runs(queue, _ string) bool { return queue == "sleep" }

func (s *still) Run(ctx context.Context, t *protocol.ClaimedTask, as plan.InstanceID, abandon <-chan struct{}) error {
	me := plan.Instance{ID: as, Node: "n1", Host: "host", Runner: true, Threads: 1, Lease: 10 * time.Second}
	if err := s.store.Register(ctx, me); err != nil {
		return err
	}
	if _, err := s.store.Take(ctx, protocol.Take{Instance: as, Task: t.Task, Start: true}); err != nil {
		return err
	}
	took := time.Now()
	select {
	case <-abandon:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	s.ended = append(s.ended, time.Since(took))
	time.Sleep(s.takes)
	if found, err := s.store.Tasks(ctx, store.TaskQuery{IDs: []plan.TaskID{t.Task}}); err != nil || len(found) != 1 || found[0].Instance != as {
		s.Errorf("its task was another's before it had ended: %+v, %v", found, err)
	}
	return errors.New("it hung")
}

func TestARunnerThatIsSilentIsEndedBeforeItsTaskIsRescued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		out := &still{world: w, takes: 6 * time.Second} // longer than the rest of its lease
		w.twoKinds()
		ctx, stop := context.WithTimeout(t.Context(), 18*time.Second)
		defer stop()
		if err := w.node(den.Config{Name: "n1", Outside: out}).Run(ctx); err != nil {
			t.Fatal(err)
		}
		if len(out.ended) != 1 || out.ended[0] < 7500*time.Millisecond || out.ended[0] > 8600*time.Millisecond {
			t.Errorf("runners were ended %v after they took their tasks, want about three quarters of the lease of 10 s", out.ended)
		}
	})
}
