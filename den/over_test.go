//go:build !race

// In Go 1.26 a synctest bubble and the race detector do not work together. Timers that fire in a
// bubble now and then crash the detector (golang.org/issue/78156). Tests for the detector run in
// real time, in race_test.go.

package den_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// A mute store wakes nobody, as one behind a network. The answer of the turn that ends a plan may be lost, once.
type mute struct {
	Store
	lose atomic.Bool
}

func (*mute) Wakes(context.Context) <-chan struct{} { return nil }

func (m *mute) Turn(ctx context.Context, t protocol.Turn) (protocol.Turned, error) {
	did, err := m.Store.Turn(ctx, t)
	if err == nil && len(did.Ended) > 0 && m.lose.Swap(false) {
		return protocol.Turned{}, errors.New("the answer was lost")
	}
	return did, err
}

func TestANodeOfAPlanReturnsWhoeverEndsThePlan(t *testing.T) {
	cancel := func(w *world, p plan.PlanID) {
		if err := w.store.CancelPlan(w.Context(), p, false); err != nil {
			w.Error(err)
		}
	}
	const soon = 100 * time.Millisecond
	tests := []struct {
		name    string
		prepare func(w *world, s *mute, p plan.PlanID)
		ends    time.Duration // how long the plan takes at most
		notices time.Duration // and then its node
	}{
		{"it does itself", func(*world, *mute, plan.PlanID) {}, time.Hour + 2*time.Minute, 0},
		{"it does, and does not hear of it", func(_ *world, s *mute, _ plan.PlanID) { s.lose.Store(true) }, time.Hour + 2*time.Minute, soon},
		{"another node that has the last task", func(w *world, _ *mute, p plan.PlanID) {
			again := w.task(plan.Plan{ID: p}, "again")
			time.AfterFunc(30*time.Second, func() {
				if err := w.store.CancelTask(w.Context(), again.ID); err != nil {
					w.Error(err)
				}
			})
			ctx, stop := context.WithCancel(w.Context())
			other := w.on(w.store, den.Config{Name: "other", Threads: 1})
			ended := make(chan error)
			go func() { ended <- other.Run(ctx) }()
			w.Cleanup(func() { stop(); <-ended })
			synctest.Wait() // it has the task of a minute by now
		}, time.Minute, time.Second},
		{"a person while a task waits for its next attempt", func(w *world, _ *mute, p plan.PlanID) {
			time.AfterFunc(10*time.Minute, func() { cancel(w, p) })
		}, 10 * time.Minute, time.Second},
		{"a person who takes its threads away too", func(w *world, _ *mute, p plan.PlanID) {
			time.AfterFunc(10*time.Minute, func() {
				if err := w.store.SetMaxThreads(w.Context(), "host", 0); err != nil {
					w.Error(err)
				}
			})
			time.AfterFunc(20*time.Minute, func() { cancel(w, p) })
		}, 20 * time.Minute, time.Second},
		{"a person who deletes it as well", func(w *world, _ *mute, p plan.PlanID) {
			done := make(chan struct{})
			w.Cleanup(func() { <-done })              // the node may return first,
			ctx := context.WithoutCancel(w.Context()) // and end the test's context
			time.AfterFunc(10*time.Minute, func() {
				defer close(done)
				cancel(w, p)
				if more, err := w.store.DeletePlan(ctx, p, 100); err != nil || more {
					w.Errorf("more of the plan is left: %v, %v", more, err)
				}
			})
		}, 10 * time.Minute, time.Second},
		{"a person before it begins", func(w *world, _ *mute, p plan.PlanID) { cancel(w, p) }, 0, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.register("flaky", func(_ context.Context, t *plugins.Task) (any, error) {
					if t.Attempt == 1 {
						return nil, errors.New("not yet")
					}
					return nil, nil
				})
				s := plan.New("shared")
				s.Add(plan.TaskSpec{Name: "long", Plugin: "sleep", Params: params(`{"for": "1m"}`)})
				s.Add(plan.TaskSpec{Name: "again", Plugin: "flaky", Retry: plan.Retry{Attempts: 2, Delay: time.Hour, Max: time.Hour}})
				p := w.submit(s)
				m := &mute{Store: w.store}
				start := time.Now()
				test.prepare(w, m, p.ID)
				ctx, stop := context.WithTimeout(t.Context(), 2*time.Hour)
				defer stop()
				if err := w.on(m, den.Config{Plan: p.ID, Threads: 2}).Run(ctx); err != nil {
					t.Errorf("the node of a plan that has ended returns %v, want nil", err)
				}
				if got, latest := time.Since(start), test.ends+test.notices+soon; got > latest {
					t.Errorf("the node returned after %v, want within %v", got, latest)
				}
				if got, err := w.store.Plan(t.Context(), p.ID); !errors.Is(err, plan.ErrNotFound) && !got.State.Ended() {
					t.Errorf("the plan is %v, %v, as its node returns", got.State, err)
				}
			})
		})
	}
}

func TestANodeOfAPlanIsWokenByItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := plan.New("shared")
		s.Add(plan.TaskSpec{Name: "a", Plugin: "elsewhere"})
		p := w.submit(s)
		if err := w.store.Adopt(t.Context(), p.ID); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		const after = 10*time.Minute + 500*time.Millisecond // between two beats
		time.AfterFunc(after, func() {
			if err := w.store.CancelPlan(t.Context(), p.ID, false); err != nil {
				t.Error(err)
			}
		})
		if err := w.node(den.Config{Plan: p.ID}).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := time.Since(start); got != after {
			t.Errorf("the node returned after %v, want at once when its plan ended, after %v", got, after)
		}
	})
}

// An early store says that a node's plan is over while the node still runs a task of it.
type early struct {
	Store
	over atomic.Bool
}

func (e *early) Turn(ctx context.Context, t protocol.Turn) (protocol.Turned, error) {
	did, err := e.Store.Turn(ctx, t)
	did.Over = did.Over || e.over.Load()
	return did, err
}

func TestANodeWhosePlanIsOverWaitsForWhatItRan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var running atomic.Bool
		w.register("slow", func(ctx context.Context, _ *plugins.Task) (any, error) {
			running.Store(true)
			defer running.Store(false)
			<-ctx.Done()
			time.Sleep(3 * time.Second) // as long as it takes to end
			return nil, ctx.Err()
		})
		s := plan.New("lost")
		s.Add(plan.TaskSpec{Name: "a", Plugin: "slow"})
		p := w.submit(s)
		e := &early{Store: w.store}
		time.AfterFunc(time.Minute, func() { e.over.Store(true) })
		if err := w.on(e, den.Config{Plan: p.ID, Threads: 2}).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if running.Load() {
			t.Error("the node returned, and a task of it still runs")
		}
	})
}
