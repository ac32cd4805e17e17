//go:build !race

// In Go 1.26 a synctest bubble and the race detector do not work together. Timers that fire in a
// bubble now and then crash the detector (golang.org/issue/78156). Tests for the detector run in
// real time, in race_test.go.

package den_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// A silent store gives no answer to some calls, until nobody waits for it any more.
type silent struct {
	Store
	verb   string
	times  int  // so many calls have none; < 0: all
	before bool // they do nothing; else only their answer is lost

	mu   sync.Mutex
	hung int

	sessions atomic.Int64
}

// hangs counts a call and reports whether it hangs.
func (s *silent) hangs(verb string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if verb != s.verb || s.times >= 0 && s.hung >= s.times {
		return false
	}
	s.hung++
	return true
}

func hang(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func (s *silent) call(ctx context.Context, verb string, do func() error) error {
	hangs := s.hangs(verb)
	if hangs && s.before {
		return hang(ctx)
	}
	err := do()
	if hangs {
		return hang(ctx)
	}
	return err
}

func (s *silent) Register(ctx context.Context, i plan.Instance) error {
	return s.call(ctx, "register", func() error {
		s.sessions.Add(1)
		return s.Store.Register(ctx, i)
	})
}

func (s *silent) Beat(ctx context.Context, b protocol.Beat) (news protocol.Beaten, err error) {
	err = s.call(ctx, "beat", func() error { news, err = s.Store.Beat(ctx, b); return err })
	return news, err
}

func (s *silent) Leave(ctx context.Context, i plan.InstanceID) error {
	return s.call(ctx, "leave", func() error { return s.Store.Leave(ctx, i) })
}

func (s *silent) Turn(ctx context.Context, t protocol.Turn) (turned protocol.Turned, err error) {
	verb := "turn that claims"
	if len(t.Ended) > 0 {
		verb = "turn with endings"
	}
	err = s.call(ctx, verb, func() error { turned, err = s.Store.Turn(ctx, t); return err })
	return turned, err
}

func (s *silent) Inputs(ctx context.Context, id plan.TaskID) (in []plan.Input, err error) {
	err = s.call(ctx, "inputs", func() error { in, err = s.Store.Inputs(ctx, id); return err })
	return in, err
}

func (s *silent) AppendLog(ctx context.Context, c protocol.Claim, entries []plan.LogEntry) error {
	return s.call(ctx, "log", func() error { return s.Store.AppendLog(ctx, c, entries) })
}

func (s *silent) Sweep(ctx context.Context, w protocol.Sweep) (swept protocol.Swept, err error) {
	err = s.call(ctx, "sweep", func() error { swept, err = s.Store.Sweep(ctx, w); return err })
	return swept, err
}

func (s *silent) Instances(ctx context.Context) (all []plan.Instance, err error) {
	err = s.call(ctx, "instances", func() error { all, err = s.Store.Instances(ctx); return err })
	return all, err
}

func (s *silent) Rescue(ctx context.Context, i plan.InstanceID, beats int64) (n int, err error) {
	err = s.call(ctx, "rescue", func() error { n, err = s.Store.Rescue(ctx, i, beats); return err })
	return n, err
}

func (s *silent) Expire(ctx context.Context, budget int) (gone protocol.Expired, err error) {
	err = s.call(ctx, "expire", func() error { gone, err = s.Store.Expire(ctx, budget); return err })
	return gone, err
}

// A blind store does not tell of one instance.
type blind struct {
	Store
	to plan.InstanceID
}

func (b *blind) Instances(ctx context.Context) ([]plan.Instance, error) {
	all, err := b.Store.Instances(ctx)
	return slices.DeleteFunc(all, func(i plan.Instance) bool { return i.ID == b.to }), err
}

// The endings before the silence are stored. Nobody will know of the others.
func TestANodeWhoseStoreIsSilentStopsAllTheSame(t *testing.T) {
	const grace, lease = 20 * time.Second, 10 * time.Second
	for _, test := range []struct {
		name  string
		hurry bool
		most  time.Duration
	}{
		{"when its grace is over, and its calls waited a lease each", false, grace + 4*lease},
		{"soon when it is told to", true, 10 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				s := plan.New("long")
				s.Add(plan.TaskSpec{Name: "a", Plugin: "sleep", Params: params(`{"for": "1h"}`)})
				s.Add(plan.TaskSpec{Name: "b", Plugin: "sleep", Params: params(`{"for": "35s"}`)})
				p := w.submit(s)
				st := &silent{Store: w.store, verb: "turn with endings", times: -1, before: true}
				n := w.on(st, den.Config{Threads: 2, Grace: grace, Lease: lease})
				if test.hurry {
					time.AfterFunc(time.Minute+time.Millisecond, n.Hurry)
				}
				if took := w.stopped(n, time.Minute); took > test.most {
					t.Errorf("it ended %v after it was stopped, want at most %v", took, test.most)
				}
				w.wantState(p, map[string]string{"a": "queued", "b": "queued"})
				left, err := w.store.Instances(t.Context())
				if err != nil || len(left) != 0 {
					t.Errorf("the node left %d instances behind (%v)", len(left), err)
				}
			})
		})
	}
}

// Whatever call hangs, the heartbeats continue. The node keeps its tasks, nothing runs twice at
// once, and the plan waits no longer than for one deadline.
func TestACallWithoutAnswerHoldsANodeUpForAMinuteAtMost(t *testing.T) {
	const work = 30 * time.Second
	for _, verb := range []string{"", "register", "beat", "turn that claims", "turn with endings", "inputs", "log", "sweep", "instances", "rescue", "expire", "leave"} {
		for _, before := range []bool{true, false} {
			name := map[bool]string{true: verb + " hangs", false: "the answer to " + verb + " is lost"}[before]
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t)
					var running, most atomic.Int64
					w.register("alone", func(ctx context.Context, t *plugins.Task) (any, error) {
						most.Store(max(most.Load(), running.Add(1)))
						defer running.Add(-1)
						t.Log.Print("begins")
						select {
						case <-ctx.Done():
							return nil, ctx.Err()
						case <-time.After(work):
							return strings.Repeat("x", plan.MaxCopiedOne+1), nil
						}
					})
					w.register("flaky", func(_ context.Context, t *plugins.Task) (any, error) {
						if t.Attempt == 1 {
							return nil, errors.New("not yet")
						}
						return nil, nil
					})
					s := plan.New("p")
					s.Add(plan.TaskSpec{Name: "lost", Plugin: "echo"})
					s.Add(plan.TaskSpec{Name: "a", Plugin: "alone", Needs: []string{"lost"}})
					s.Add(plan.TaskSpec{Name: "b", Plugin: "flaky", Retry: plan.Retry{Attempts: 2, Delay: time.Second}, Needs: []string{"a"}})
					s.Add(plan.TaskSpec{Name: "c", Plugin: "sleep", Params: params(`{"for": "1s"}`), Needs: []string{"b"}})
					p := w.submit(s)
					dead := plan.Instance{ID: plan.InstanceID{ID: plan.NewID(time.Now())}, Host: "other", Lease: 10 * time.Second}
					if err := w.store.Register(t.Context(), dead); err != nil {
						t.Fatal(err)
					}
					if turned, err := w.store.Turn(t.Context(), protocol.Turn{Instance: dead.ID, Slots: 1, Plugins: []string{"echo"}, Start: true}); err != nil || len(turned.Claimed) != 1 {
						t.Fatalf("claimed %d, %v", len(turned.Claimed), err)
					}

					began := time.Now()
					st := &silent{Store: w.store, verb: verb, times: 1, before: before}
					ctx, stop := context.WithCancel(t.Context())
					defer stop()
					var nodes sync.WaitGroup
					nodes.Go(func() { // it would rescue what the first one runs; another plan is its own
						own := plan.PlanID{ID: plan.NewID(began)}
						_ = w.on(&blind{w.store, dead.ID}, den.Config{Name: "second", Plan: own}).Run(ctx)
					})
					n := w.on(st, den.Config{Name: "first", Plan: p.ID})
					err := n.Run(ctx)
					if verb == "register" && errors.Is(err, plan.ErrUnavailable) {
						err = w.on(st, den.Config{Name: "first", Plan: p.ID}).Run(ctx) // as a service manager would
					}
					if err != nil {
						t.Fatal(err)
					}
					const alone = 10*time.Second + work + 500*time.Millisecond + time.Second // a lease, and half of a delay at least
					if took := time.Since(began); took < alone || took > alone+time.Minute+3*time.Second {
						t.Errorf("the plan took %v, want %v and no more than a minute longer", took, alone)
					}
					if got := most.Load(); got != 1 {
						t.Errorf("one task ran %d times at once", got)
					}
					if want := map[bool]int{true: 1, false: 0}[verb != ""]; st.hung != want {
						t.Errorf("%d calls hung, want %d", st.hung, want)
					}
					if got := st.sessions.Load(); got != 1 && verb != "register" {
						t.Errorf("the node began %d times, want once: it lost its lease", got)
					}
					w.wantEnd(p, plan.PlanSucceeded)
					a := w.task(p, "a")
					if a.Rescues != 0 || a.Attempt != 1 || a.Node != "first" {
						t.Errorf("it ended on %s with attempt %d after %d rescues, want the first node's first attempt", a.Node, a.Attempt, a.Rescues)
					}
					log, _, err := w.store.Log(t.Context(), a.ID, 0, 10)
					if err != nil || len(log) != 1 && !slices.Contains([]string{"log", "turn with endings"}, verb) {
						t.Errorf("log %+v, %v; want one line", log, err)
					}
					stop()
					nodes.Wait()
				})
			})
		}
	}
}
