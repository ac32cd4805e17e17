//go:build !race

// In Go 1.26 a synctest bubble and the race detector do not work together. Timers that fire in a
// bubble now and then crash the detector (golang.org/issue/78156). Tests for the detector run in
// real time, in race_test.go.

package den_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// A vanishing store disappears at some moment for the node's own calls.
type vanishing struct {
	Store
	gone atomic.Bool
}

var errVanished = fmt.Errorf("the file was deleted: %w", plan.ErrStoreGone)

func (v *vanishing) Turn(ctx context.Context, t protocol.Turn) (protocol.Turned, error) {
	if v.gone.Load() {
		return protocol.Turned{}, errVanished
	}
	return v.Store.Turn(ctx, t)
}

func (v *vanishing) Sweep(ctx context.Context, s protocol.Sweep) (protocol.Swept, error) {
	if v.gone.Load() {
		return protocol.Swept{}, errVanished
	}
	return v.Store.Sweep(ctx, s)
}

func (v *vanishing) Beat(ctx context.Context, b protocol.Beat) (protocol.Beaten, error) {
	if v.gone.Load() {
		return protocol.Beaten{}, errVanished
	}
	return v.Store.Beat(ctx, b)
}

func (v *vanishing) Instances(ctx context.Context) ([]plan.Instance, error) {
	if v.gone.Load() {
		return nil, errVanished
	}
	return v.Store.Instances(ctx)
}

func TestANodeWhoseStoreIsGoneEndsWithThat(t *testing.T) {
	const at, lease = time.Minute, 10 * time.Second
	for _, c := range []struct {
		name  string
		tasks int
		stop  time.Duration // when a person stops the node; 0: nobody does
		takes time.Duration // what a task takes to end once it was stopped
		most  time.Duration // from when the store is gone to the node's end
	}{
		{"idle", 0, 0, 0, time.Second},
		{"with tasks, which are stopped as by a person", 2, 0, 3 * time.Second, 4 * time.Second},
		{"with tasks that take too long to end, before its lease is over", 2, 0, time.Hour, lease},
		{"in its grace", 2, at - time.Second, 3 * time.Second, 4 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				var stopped, hurried atomic.Int64
				w.register("slow", func(ctx context.Context, t *plugins.Task) (any, error) {
					<-ctx.Done()
					if errors.Is(context.Cause(ctx), plugins.ErrDraining) {
						stopped.Add(1)
					}
					select {
					case <-t.Hurry:
						hurried.Add(1)
					case <-time.After(c.takes):
					}
					return nil, ctx.Err()
				})
				s := plan.New("p")
				s.Add(plan.TaskSpec{Name: "last", Plugin: "echo"})
				for i := range c.tasks {
					s.Add(plan.TaskSpec{Name: fmt.Sprint("t", i), Plugin: "slow"})
				}
				w.submit(s)
				v := &vanishing{Store: w.store}
				var said strings.Builder
				n := w.on(v, den.Config{Threads: 3, Grace: time.Hour, Lease: lease, Logger: slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelWarn}))})
				ctx, stop := context.WithTimeout(t.Context(), time.Hour)
				defer stop()
				if c.stop > 0 {
					time.AfterFunc(c.stop, stop)
				}
				time.AfterFunc(at, func() { v.gone.Store(true) })
				began := time.Now()
				err := n.Run(ctx)
				if !errors.Is(err, plan.ErrStoreGone) {
					t.Errorf("it ended with %v, want %v", err, plan.ErrStoreGone)
				}
				if took := time.Since(began) - at; took > c.most {
					t.Errorf("it ended %v after its store was gone, want within %v", took, c.most)
				}
				if got := stopped.Load(); got != int64(c.tasks) {
					t.Errorf("%d tasks were stopped as by a node that stops, want %d", got, c.tasks)
				}
				if got := hurried.Load() > 0; got != (c.takes > lease) {
					t.Errorf("tasks were hurried: %v", got)
				}
				if text := said.String(); strings.Contains(text, errVanished.Error()) {
					t.Errorf("it said %s\nwant that as its end, and not before", text)
				}
			})
		})
	}
}
