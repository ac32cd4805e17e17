//go:build !race

// In Go 1.26 a synctest bubble and the race detector do not work together. Timers that fire in a
// bubble now and then crash the detector (golang.org/issue/78156). Tests for the detector run in
// real time, in race_test.go.

package den_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// stopped runs a node, ends its context after a while and returns how long it took to come to an end after that.
func (w *world) stopped(n *den.Node, after time.Duration) time.Duration {
	w.Helper()
	ctx, stop := context.WithCancel(w.Context())
	var at time.Time
	time.AfterFunc(after, func() { at = time.Now(); stop() })
	if err := n.Run(ctx); err != nil {
		w.Errorf("a node that is stopped returns %v, want nil", err)
	}
	return time.Since(at)
}

func TestAStoppedNodeLetsTasksEndWithinItsGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := plan.New("short")
		s.Add(plan.TaskSpec{Name: "a", Plugin: "sleep", Params: params(`{"for": "14s"}`)})
		s.Add(plan.TaskSpec{Name: "b", Plugin: "sleep", Params: params(`{"for": "1s"}`), Needs: []string{"a"}})
		p := w.submit(s)
		if got, want := w.stopped(w.node(den.Config{Grace: 5 * time.Second}), 10*time.Second), 4*time.Second; got != want {
			t.Errorf("the node ended %v after it was stopped, want %v", got, want)
		}
		w.wantState(p, map[string]string{"a": "succeeded", "b": "queued"})
	})
}

// slowly registers nobody: it answers when its caller gives up.
type slowly struct {
	Store
}

func (s *slowly) Register(ctx context.Context, _ plan.Instance) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestANodeThatIsStoppedWhileItRegistersHasNotFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.stopped(w.on(&slowly{Store: w.store}, den.Config{}), time.Second)
	})
}

// During one turn the node is told to stop, and a task ends.
func TestAStoppedNodeClaimsNothingAfterATaskThatEndedMeanwhile(t *testing.T) {
	for range 20 { // the loop may see either first
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			s := plan.New("chain")
			s.Add(plan.TaskSpec{Name: "long", Plugin: "sleep", Params: params(`{"for": "1m"}`)})
			s.Add(plan.TaskSpec{Name: "a", Plugin: "sleep", Params: params(`{"for": "1m2s"}`)})
			s.Add(plan.TaskSpec{Name: "b", Plugin: "sleep", Params: params(`{"for": "1s"}`), Needs: []string{"a"}})
			p := w.submit(s)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			time.AfterFunc(time.Minute+time.Second, stop)
			if err := w.on(&lengthy{Store: w.store, from: time.Now().Add(time.Minute)}, den.Config{Threads: 2, Grace: time.Hour}).Run(ctx); err != nil {
				t.Fatal(err)
			}
			w.wantState(p, map[string]string{"long": "succeeded", "a": "succeeded", "b": "queued"})
		})
	}
}

// lengthy is a store whose turns take five seconds from some instant on.
type lengthy struct {
	Store
	from time.Time
}

func (l *lengthy) Turn(ctx context.Context, t protocol.Turn) (protocol.Turned, error) {
	did, err := l.Store.Turn(ctx, t)
	if !time.Now().Before(l.from) {
		time.Sleep(5 * time.Second)
	}
	return did, err
}

func TestAStoppedNodeGivesBackWhatOutlastsItsGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := plan.New("long")
		s.Add(plan.TaskSpec{Name: "a", Plugin: "sleep", Params: params(`{"for": "1h"}`)})
		s.Add(plan.TaskSpec{Name: "once", Plugin: "sleep", Params: params(`{"for": "1h"}`), OnLost: plan.OnLostFail})
		p := w.submit(s)
		if got, want := w.stopped(w.node(den.Config{Grace: 5 * time.Second, Threads: 2}), 10*time.Second), 5*time.Second; got != want {
			t.Errorf("the node ended %v after it was stopped, want its grace %v", got, want)
		}
		w.wantState(p, map[string]string{"a": "queued", "once": "orphaned"})
		if a := w.task(p, "a"); a.Attempt != 0 {
			t.Errorf("what was given back has attempt %d, want 0: it does not count", a.Attempt)
		}
		for name, want := range map[string]bool{"a": true, "once": false} {
			entries, _, err := w.store.Log(t.Context(), w.task(p, name).ID, 0, 10)
			if err != nil {
				t.Fatal(err)
			}
			if got := len(entries) == 1 && rules.IsGivenBack(&entries[0]) && entries[0].Attempt == 1; got != want {
				t.Errorf("the log of %s says that it was given back: %v, want %v", name, got, want)
			}
		}
		left, err := w.store.Instances(t.Context())
		if err != nil || len(left) != 0 {
			t.Errorf("the node left %d instances behind (%v)", len(left), err)
		}
	})
}

func TestAStoppedNodeGivesBackWhatItsQueueLetsRunTwice(t *testing.T) {
	for says, want := range map[plan.OnLost][2]plan.Status{
		plan.OnLostDefault: {plan.Queued, plan.Orphaned}, plan.OnLostRetry: {plan.Queued, plan.Queued}, plan.OnLostFail: {plan.Orphaned, plan.Orphaned},
	} {
		t.Run(string(says), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				q, err := w.store.CreateQueue(t.Context(), plan.Queue{Name: "sleep", Plugin: "sleep", Unlimited: true, QueueSettings: plan.QueueSettings{OnLost: says}})
				if err != nil {
					t.Fatal(err)
				}
				plain := plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Queue: q.ID, Params: params(`{"for": "1h"}`)}
				if err := w.store.AddTasks(t.Context(), plan.PlanID{}, []plan.Task{plain}); err != nil {
					t.Fatal(err)
				}
				p := w.submit(&plan.Spec{Name: "long", Tasks: []plan.TaskSpec{{Name: "a", Plugin: "sleep", Params: params(`{"for": "1h"}`)}}})
				w.stopped(w.node(den.Config{Grace: 5 * time.Second, Threads: 2}), 10*time.Second)
				if plain, err = w.store.Task(t.Context(), plain.ID); err != nil {
					t.Fatal(err)
				}
				if got := [2]plan.Status{w.task(p, "a").Status, plain.Status}; got != want {
					t.Errorf("of a plan, and of none, became %v, want %v", got, want)
				}
			})
		})
	}
}

func TestHurryEndsTheGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := plan.New("long")
		s.Add(plan.TaskSpec{Name: "a", Plugin: "sleep", Params: params(`{"for": "1h"}`)})
		p := w.submit(s)
		n := w.node(den.Config{Grace: time.Hour})
		time.AfterFunc(12*time.Second, n.Hurry)
		if got, want := w.stopped(n, 10*time.Second), 2*time.Second; got != want {
			t.Errorf("the node ended %v after it was stopped, want %v", got, want)
		}
		w.wantState(p, map[string]string{"a": "queued"})
	})
}

// Some tasks obey no signal, such as a process that hangs in the system. They do not prevent a node
// from ending at once, even if the node lost touch before.
func TestHurryLeavesBehindWhatDoesNotEnd(t *testing.T) {
	for _, lost := range []bool{false, true} {
		t.Run(fmt.Sprintf("lease lost: %v", lost), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				deaf := make(chan struct{})
				defer close(deaf)
				w.register("deaf", func(context.Context, *plugins.Task) (any, error) { <-deaf; return nil, nil })
				s := plan.New("long")
				s.Add(plan.TaskSpec{Name: "a", Plugin: "sleep", Params: params(`{"for": "1h"}`)})
				s.Add(plan.TaskSpec{Name: "b", Plugin: "deaf"})
				p := w.submit(s)
				var log strings.Builder
				n := w.node(den.Config{Threads: 2, Grace: time.Second, Logger: slog.New(slog.NewTextHandler(&log, nil))})
				if lost {
					time.AfterFunc(5*time.Second, func() {
						all, err := w.store.Instances(t.Context())
						if err != nil || len(all) != 1 {
							t.Errorf("got instances %v, %v; want one", all, err)
							return
						}
						if _, err := w.store.Rescue(t.Context(), all[0].ID, all[0].Beats); err != nil {
							t.Error(err)
						}
					})
				}
				time.AfterFunc(20*time.Second, n.Hurry)
				if got, want := w.stopped(n, 10*time.Second), 15*time.Second; got != want {
					t.Errorf("the node ended %v after it was stopped, want %v: 5 s after it was to hurry", got, want)
				}
				if !strings.Contains(log.String(), "left behind") || !strings.Contains(log.String(), "tasks=b") {
					t.Errorf("the log does not name b alone as left behind:\n%s", log.String())
				}
				if lost {
					return
				}
				w.wantState(p, map[string]string{"a": "queued", "b": "running"})
				left, err := w.store.Instances(t.Context())
				if err != nil || len(left) != 1 {
					t.Errorf("there are %d instances (%v), want that of the node: its lease is to run out", len(left), err)
				}
			})
		})
	}
}
