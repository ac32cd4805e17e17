//go:build !race

package den_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/plan"
)

// A stopwatch notes how long attempts ran, and which were lost.
type stopwatch struct {
	den.Observer
	mu   sync.Mutex
	runs []string
}

func (s *stopwatch) Claimed(*protocol.ClaimedTask)      {}
func (s *stopwatch) PlanEnded(protocol.EndedPlan)       {}
func (s *stopwatch) Asked(string, time.Duration, error) {}

func (s *stopwatch) Lost(t *protocol.ClaimedTask) { s.note(t.Name + " lost") }

func (s *stopwatch) Ended(t *protocol.ClaimedTask, e *protocol.Ending, ran time.Duration) {
	s.note(fmt.Sprintf("%s %v after %v", t.Name, e.Status, ran))
}

func (s *stopwatch) note(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs = append(s.runs, what)
}

// A sluggish store takes its time for turns, and does not start what is claimed first.
type sluggish struct {
	Store
	refuse int
}

func (s *sluggish) Turn(ctx context.Context, t protocol.Turn) (protocol.Turned, error) {
	time.Sleep(20 * time.Second)
	return s.Store.Turn(ctx, t)
}

func (s *sluggish) Start(ctx context.Context, claims []protocol.Claim) ([]plan.TaskID, error) {
	if s.refuse--; s.refuse >= 0 {
		return nil, plan.ErrUnavailable
	}
	return s.Store.Start(ctx, claims)
}

// TestWhatTheStoreTakesIsNoneOfATasksTime has tasks wait for the store before they start and after they have ended.
func TestWhatTheStoreTakesIsNoneOfATasksTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := plan.New("short")
		s.Add(plan.TaskSpec{Name: "nap", Queue: "naps", Plugin: "sleep", Params: params(`{"for": "3s"}`)})
		if _, err := w.store.CreateQueue(t.Context(), plan.Queue{Name: "naps", Plugin: "sleep", Unlimited: true}); err != nil {
			t.Fatal(err)
		}
		p := w.submit(s)
		o := &stopwatch{}
		cfg := den.Config{Name: "n1", Plan: p.ID, Observer: o, Outside: &annex{world: w}}
		if err := w.on(&sluggish{w.store, 1}, cfg).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.wantEnd(p, plan.PlanSucceeded)
		if want := []string{"nap queued after 0s", "nap succeeded after 3s"}; !slices.Equal(o.runs, want) {
			t.Errorf("it was told of %v, want %v", o.runs, want)
		}
	})
}

// TestWhatItsRunnerHasANodeHasNotLost stops a node whose runner continues.
func TestWhatItsRunnerHasANodeHasNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := plan.New("long")
		s.Add(plan.TaskSpec{Name: "nap", Plugin: "sleep", Params: params(`{"for": "1m"}`)})
		p := w.submit(s)
		o, out := &stopwatch{}, &annex{world: w}
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
		defer stop()
		if err := w.node(den.Config{Name: "n1", Observer: o, Outside: out}).Run(ctx); err != nil {
			t.Fatal(err)
		}
		out.wg.Wait()
		w.wantEnd(p, plan.PlanSucceeded)
		if len(o.runs) > 0 {
			t.Errorf("it was told of %v, want nothing: its runner ended it", o.runs)
		}
	})
}
