//go:build !race

// In Go 1.26 a synctest bubble and the race detector do not work together. Timers that fire in a
// bubble now and then crash the detector (golang.org/issue/78156). Tests for the detector run in
// real time, in race_test.go.

package den_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// ended runs a plan of so many tasks to its end.
func (w *world) ended(keep time.Duration, tasks int) plan.Plan {
	w.Helper()
	s := plan.New("old")
	s.Keep = keep
	for i := range tasks {
		s.Add(plan.TaskSpec{Name: fmt.Sprint("t", i), Plugin: "echo"})
	}
	p := w.submit(s)
	if err := w.node(den.Config{Plan: p.ID, Threads: 100}).Run(w.Context()); err != nil {
		w.Fatal(err)
	}
	w.wantEnd(p, plan.PlanSucceeded)
	return p
}

// kept reports whether the plan is there, and how many tasks of any plan are.
func (w *world) kept(p plan.Plan) (there bool, tasks int) {
	w.Helper()
	_, err := w.store.Plan(w.Context(), p.ID)
	if err != nil && !errors.Is(err, plan.ErrNotFound) {
		w.Fatal(err)
	}
	all, err2 := w.store.Tasks(w.Context(), store.TaskQuery{Limit: 1 << 20})
	if err2 != nil {
		w.Fatal(err2)
	}
	return err == nil, len(all)
}

func TestANodeDeletesPlansThatAreKeptNoLonger(t *testing.T) {
	for _, busy := range []bool{false, true} {
		t.Run(fmt.Sprint("busy ", busy), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				p, forever := w.ended(time.Hour, 3), w.ended(-1, 1)
				if busy {
					s := plan.New("long")
					s.Add(plan.TaskSpec{Name: "a", Plugin: "sleep", Params: params(`{"for": "3h"}`)})
					w.submit(s)
				}
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				time.AfterFunc(time.Hour, func() {
					if there, _ := w.kept(p); !there {
						t.Error("the plan is gone before its hour is over")
					}
				})
				time.AfterFunc(time.Hour+time.Minute+time.Second, func() {
					if there, _ := w.kept(p); there {
						t.Error("the plan is there more than a minute after its hour is over")
					}
					if there, _ := w.kept(forever); !there {
						t.Error("the plan that is kept for ever is gone")
					}
					stop()
				})
				if err := w.node(den.Config{}).Run(ctx); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestALargePlanIsDeletedALittleAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		const tasks = 1000
		p := w.ended(time.Hour, tasks)
		time.Sleep(2 * time.Hour)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		began := time.Now()
		time.AfterFunc(10*time.Millisecond, func() {
			if _, left := w.kept(p); left == tasks || left < tasks*3/4 {
				t.Errorf("at once %d of %d tasks are left, want the first few gone", left, tasks)
			}
		})
		time.AfterFunc(time.Second, func() {
			if there, left := w.kept(p); there || left > 0 {
				t.Errorf("%d tasks are left after %v", left, time.Since(began))
			}
			stop()
		})
		if err := w.node(den.Config{}).Run(ctx); err != nil {
			t.Error(err)
		}
	})
}

func TestANodeOfAPlanDeletesOldOnesBesideIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.ended(time.Hour, 3)
		time.Sleep(2 * time.Hour)
		s := plan.New("short")
		s.Add(plan.TaskSpec{Name: "a", Plugin: "sleep", Params: params(`{"for": "100ms"}`)})
		if err := w.node(den.Config{Plan: w.submit(s).ID}).Run(t.Context()); err != nil {
			t.Error(err)
		}
		if there, _ := w.kept(p); there {
			t.Error("the old plan is there after another one ran for a moment")
		}
	})
}

// A stuck store does not answer when it is asked to delete old plans, until nobody waits for it any more.
type stuck struct {
	Store
	err   error // its answer then; nil: nothing
	asked int
}

func (s *stuck) Expire(ctx context.Context, _ int) (protocol.Expired, error) {
	s.asked++
	if s.err != nil {
		return protocol.Expired{}, s.err
	}
	<-ctx.Done()
	return protocol.Expired{}, ctx.Err()
}

func TestDeletingOldPlansHoldsNothingUp(t *testing.T) {
	for name, test := range map[string]struct {
		err   error
		asked int
	}{
		"while the store does not answer": {nil, 2},       // which is waited for for a minute, and then asked again after one
		"while it cannot":                 {errNoRoom, 4}, // and is asked again, each minute
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				s := plan.New("chain")
				s.Add(plan.TaskSpec{Name: "a", Plugin: "sleep", Params: params(`{"for": "200s"}`)})
				p := w.submit(s)
				st := &stuck{Store: w.store, err: test.err}
				began := time.Now()
				if err := w.on(st, den.Config{Plan: p.ID}).Run(t.Context()); err != nil {
					t.Error(err)
				}
				if took := time.Since(began); took != 200*time.Second {
					t.Errorf("the plan of 200 s took %v", took)
				}
				if st.asked != test.asked {
					t.Errorf("the store was asked %d times, want %d", st.asked, test.asked)
				}
				w.wantEnd(p, plan.PlanSucceeded)
			})
		})
	}
}
