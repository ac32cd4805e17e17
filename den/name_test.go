//go:build !race

package den_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// holding registers an instance that has the name n1, as a process does that runs one task and then is silent.
func (w *world) holding(host string) (plan.InstanceID, plan.TaskID) {
	w.Helper()
	s := plan.New("p")
	s.Add(plan.TaskSpec{Name: "a", Plugin: "echo"})
	p := w.submit(s)
	i := plan.Instance{
		ID: plan.InstanceID{ID: plan.NewID(time.Now())}, Node: "n1", Host: host, Process: plan.Process{PID: 4711}, Lease: 20 * time.Second, Sole: true,
	}
	if err := w.store.Register(w.Context(), i); err != nil {
		w.Fatal(err)
	}
	turned, err := w.store.Turn(w.Context(), protocol.Turn{Instance: i.ID, Slots: 1, Plugins: []string{"echo"}, Plan: p.ID, Start: true})
	if err != nil || len(turned.Claimed) != 1 {
		w.Fatalf("claimed %d tasks, %v", len(turned.Claimed), err)
	}
	return i.ID, turned.Claimed[0].Task
}

func TestASoleNodeWaitsUntilItIsKnownWhetherItsNameIsFree(t *testing.T) {
	for _, c := range []struct {
		name        string
		host        string
		dead        bool
		beats       bool
		taken       bool
		least, most time.Duration // until its task was taken over, or the node refused to run
	}{
		{"another host's that is silent, for its lease", "other", true, false, false, 20 * time.Second, 22 * time.Second},
		{"this host's that is silent, for its lease", "host", false, false, false, 20 * time.Second, 22 * time.Second},
		{"this host's whose process is gone, for what its commands take to end", "host", true, false, false, 500 * time.Millisecond, 2 * time.Second},
		{"one that beats keeps the name", "other", false, true, true, 0, 3 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				id, task := w.holding(c.host)
				ctx, stop := context.WithTimeout(t.Context(), time.Minute)
				defer stop()
				if c.beats {
					go func() {
						for ctx.Err() == nil {
							_, _ = w.store.Beat(ctx, protocol.Beat{Instance: id})
							time.Sleep(time.Second)
						}
					}()
				}
				began := time.Now()
				var over time.Duration
				go func() {
					for ctx.Err() == nil && over == 0 {
						all, err := w.store.Tasks(ctx, store.TaskQuery{IDs: []plan.TaskID{task}, Limit: 1})
						if err == nil && len(all) == 1 && all[0].Instance != id {
							over = time.Since(began)
						}
						time.Sleep(10 * time.Millisecond)
					}
				}()
				var said strings.Builder
				n := w.node(den.Config{
					Name: "n1", Host: "host", Sole: true, Dead: func(plan.Instance) bool { return c.dead }, Linger: 500 * time.Millisecond,
					Logger: slog.New(slog.NewTextHandler(&said, nil)),
				})
				err := n.Run(ctx)
				if c.taken {
					over = time.Since(began)
					stop()
				}
				if errors.Is(err, plan.ErrNameTaken) != c.taken || !c.taken && err != nil {
					t.Fatalf("it ended with %v", err)
				}
				if c.taken && !strings.Contains(err.Error(), "process 4711 on host other") {
					t.Errorf("it says %q, and not who has the name", err)
				}
				if over < c.least || over > c.most {
					t.Errorf("it took %v, want %v to %v", over, c.least, c.most)
				}
				if waits := strings.Contains(said.String(), "waiting until it is known"); waits != (c.host == "other" || !c.dead) {
					t.Errorf("its log says\n%s", &said)
				}
				time.Sleep(2 * time.Second) // for what beats, and looks
			})
		})
	}
}

func TestASoleNodeThatLostItsSessionTakesItsOwnNameAgainAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		deaf := &deaf{Store: w.store}
		n := w.on(deaf, den.Config{Name: "n1", Sole: true, Lease: 10 * time.Second})
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		time.AfterFunc(20*time.Second, func() { deaf.beats.Store(true) })
		time.AfterFunc(29*time.Second, func() { deaf.beats.Store(false) })
		var seen []plan.Instance
		time.AfterFunc(32*time.Second, func() { seen, _ = w.store.Instances(ctx) })
		if err := n.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if len(seen) != 1 || seen[0].Beats == 0 || seen[0].Beats > 6 {
			t.Errorf("three seconds after it could beat again the store knew %+v, want a new session", seen)
		}
	})
}

// A deaf store answers no beats for a while.
type deaf struct {
	Store
	beats atomic.Bool
}

func (d *deaf) Beat(ctx context.Context, b protocol.Beat) (protocol.Beaten, error) {
	if d.beats.Load() {
		return protocol.Beaten{}, plan.ErrUnavailable
	}
	return d.Store.Beat(ctx, b)
}

func TestASoleNodeTakesItsOwnNameAgainAtOnceWhenItsStoreWasAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		l := &line{Store: w.store}
		n := w.on(l, den.Config{Name: "n1", Sole: true, Lease: 10 * time.Second})
		ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
		defer stop()
		time.AfterFunc(20*time.Second, func() { l.cut.Store(true) })
		time.AfterFunc(50*time.Second, func() { l.cut.Store(false) })
		time.AfterFunc(56*time.Second, func() { // the next try is at 51.4 s
			all, _ := w.store.Instances(ctx)
			if len(all) != 1 || all[0].Beats < 2 || all[0].Age > 2*time.Second {
				t.Errorf("6 s after the store was back it knows %+v, want a new session", all)
			}
		})
		if err := n.Run(ctx); err != nil {
			t.Fatal(err)
		}
	})
}
