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

// A full store takes beats, and no endings: its disk has no room for them.
type full struct {
	Store
	noRoom atomic.Bool
}

var errNoRoom = errors.New("no room on its disk")

func (f *full) Turn(ctx context.Context, t protocol.Turn) (protocol.Turned, error) {
	if f.noRoom.Load() && len(t.Ended) > 0 {
		return protocol.Turned{}, errNoRoom
	}
	return f.Store.Turn(ctx, t)
}

func TestANodeThatCannotStoreWhatEndedStopsAllTheSame(t *testing.T) {
	const grace, lease = 20 * time.Second, 10 * time.Second
	tests := []struct {
		name  string
		hurry time.Duration // after it was stopped; 0: never
		want  time.Duration
	}{
		{"after its grace and a lease", 0, grace + lease},
		{"at once when it is told to", 3 * time.Second, 3 * time.Second},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				s := plan.New("full")
				s.Add(plan.TaskSpec{Name: "a", Plugin: "sleep", Params: params(`{"for": "1s"}`)})
				s.Add(plan.TaskSpec{Name: "b", Plugin: "sleep", Params: params(`{"for": "1h"}`)})
				p := w.submit(s)
				f := &full{Store: w.store}
				f.noRoom.Store(true)
				n := w.on(f, den.Config{Threads: 2, Grace: grace, Lease: lease})
				if test.hurry > 0 {
					time.AfterFunc(time.Minute+test.hurry, n.Hurry)
				}
				if got := w.stopped(n, time.Minute); got != test.want {
					t.Errorf("the node ended %v after it was stopped, want %v", got, test.want)
				}
				w.wantState(p, map[string]string{"a": "queued", "b": "queued"}) // as if the node had died
			})
		})
	}
}

func TestWhatEndedWaitsForRoomAndCancellingDoesNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := plan.New("full")
		s.Add(plan.TaskSpec{Name: "a", Plugin: "sleep", Params: params(`{"for": "1s"}`)})
		s.Add(plan.TaskSpec{Name: "b", Plugin: "cancelled"})
		var stopped time.Time
		w.register("cancelled", func(ctx context.Context, _ *plugins.Task) (any, error) {
			<-ctx.Done()
			stopped = time.Now()
			return nil, ctx.Err()
		})
		p := w.submit(s)
		f := &full{Store: w.store}
		f.noRoom.Store(true)
		begin := time.Now()
		time.AfterFunc(5*time.Minute, func() {
			if err := w.store.CancelTask(t.Context(), w.task(p, "b").ID); err != nil {
				t.Error(err)
			}
		})
		time.AfterFunc(10*time.Minute, func() { f.noRoom.Store(false) })
		if err := w.on(f, den.Config{Plan: p.ID, Threads: 2}).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := stopped.Sub(begin); got > 5*time.Minute+2*time.Second {
			t.Errorf("b was stopped after %v, want with the beat after 5 minutes", got)
		}
		if got := time.Since(begin); got > 10*time.Minute+11*time.Second {
			t.Errorf("the plan ended after %v, want soon after there was room, after 10 minutes", got)
		}
		w.wantState(p, map[string]string{"a": "succeeded", "b": "terminated"})
		if a := w.task(p, "a"); a.Attempt != 1 {
			t.Errorf("a ran %d times, want once: its ending waited", a.Attempt)
		}
	})
}
