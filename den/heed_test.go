//go:build !race

package den_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// beatsOnly is a store that wakes nobody, as MongoDB: a node learns what is new by its beats.
type beatsOnly struct{ Store }

func (beatsOnly) Wakes(context.Context) <-chan struct{} { return nil }

// TestANodeHeedsWhatIsSetWithinASecond is about a node that has had nothing new to do for a minute,
// and so looks for work every few seconds only.
func TestANodeHeedsWhatIsSetWithinASecond(t *testing.T) {
	for name, open := range map[string]func(Store) den.Store{
		"a store that wakes nodes": func(s Store) den.Store { return s },
		"a store that does not":    func(s Store) den.Store { return beatsOnly{s} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				var begun atomic.Int32
				w.register("wait", func(ctx context.Context, _ *plugins.Task) (any, error) {
					begun.Add(1)
					<-ctx.Done()
					return nil, ctx.Err()
				})
				q, err := w.store.CreateQueue(t.Context(), plan.Queue{Name: "imap", Plugin: "wait"})
				if err != nil {
					t.Fatal(err)
				}
				s := plan.New("waiting")
				for i := range 12 {
					s.Add(plan.TaskSpec{Name: fmt.Sprint("t", i), Plugin: "wait", Queue: "imap"})
				}
				w.submit(s)
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error)
				n := w.on(open(w.store), den.Config{Name: "n1", Threads: 8})
				go func() { ended <- n.Run(ctx) }()
				limit := func(most int) func() error {
					return func() error { return w.store.SetMaxThreads(t.Context(), "n1", most) }
				}
				queue := func(set func()) func() error {
					return func() error { set(); return w.store.SetQueue(t.Context(), q) }
				}
				for _, step := range []struct {
					what string
					set  func() error
					want int32 // tasks that have begun a second later, and a minute later
				}{
					{"threads, and two for each node", queue(func() { q.Threads, q.NodeThreads = 9, 2 }), 2},
					{"three threads of the node", limit(3), 2},
					{"no limit for each node", queue(func() { q.NodeThreads = 0 }), 3},
					{"five threads of the node", limit(5), 5},
					{"a pin to another node", queue(func() { q.Pin = []plan.NodeName{"n2"} }), 5},
					{"no limit of the node", limit(-1), 5},
					{"a pin to this node too", queue(func() { q.Pin = append(q.Pin, "n1") }), 8},
				} {
					time.Sleep(time.Minute)
					if err := step.set(); err != nil {
						t.Fatal(err)
					}
					for _, after := range []time.Duration{1100 * time.Millisecond, time.Minute} {
						time.Sleep(after)
						if n := begun.Load(); n != step.want {
							t.Errorf("%v after %s: %d tasks had begun, want %d", after, step.what, n, step.want)
						}
					}
				}
				stop()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// unbeaten is a store that answers no beat while it is shut: half of them hang, and half fail at once.
type unbeaten struct {
	Store
	shut  atomic.Bool
	asked atomic.Int32
}

func (s *unbeaten) Beat(ctx context.Context, b protocol.Beat) (protocol.Beaten, error) {
	if !s.shut.Load() {
		return s.Store.Beat(ctx, b)
	}
	if s.asked.Add(1)%2 == 0 {
		<-ctx.Done()
		return protocol.Beaten{}, ctx.Err()
	}
	return protocol.Beaten{}, errCut
}

// OnBeat is a node's sign of life.
func TestANodeWhoseBeatsAreNotAnsweredGivesNoSignOfLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := &unbeaten{Store: w.store}
		var signs atomic.Int32
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		n := w.on(s, den.Config{Lease: 30 * time.Second, OnBeat: func() { signs.Add(1) }})
		go func() { ended <- n.Run(ctx) }()
		for _, shut := range []bool{false, true, false, true, false} {
			s.shut.Store(shut)
			signs.Store(0)
			s.asked.Store(0)
			time.Sleep(15500 * time.Millisecond)
			switch n, asked := signs.Load(), s.asked.Load(); {
			case shut && (n != 0 || asked < 2):
				t.Errorf("%d signs of life with %d beats that were not answered, want none, and some", n, asked)
			case !shut && n < 10:
				t.Errorf("%d signs of life in 15 s, want one a second", n)
			}
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
