//go:build !race

package den_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

func TestAPluginMayComeWhileTheNodeRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := plan.New("late")
		s.Add(plan.TaskSpec{Name: "a", Plugin: "late", Params: map[string]any{"for": "1s"}})
		p := w.submit(s)
		ctx, stop := context.WithCancel(t.Context())
		go func() {
			time.Sleep(time.Minute)
			w.wantState(p, map[string]string{"a": "queued"})
			sleep, _ := w.plugins.Get("sleep")
			w.plugins.Register("late", sleep)
			time.Sleep(time.Minute)
			w.wantState(p, map[string]string{"a": "succeeded"})
			stop()
		}()
		if err := w.node(den.Config{}).Run(ctx); err != nil {
			t.Error(err)
		}
	})
}

// A fickle store has a plugin go between what the node asks for and what it gets.
type fickle struct {
	store.Store
	gone func()
}

func (f *fickle) Turn(ctx context.Context, t plan.Turn) (plan.Turned, error) {
	done, err := f.Store.Turn(ctx, t)
	if len(done.Claimed) > 0 && f.gone != nil {
		f.gone()
		f.gone = nil
	}
	return done, err
}

func TestATaskWhosePluginWentIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := plan.New("fickle")
		s.Add(plan.TaskSpec{Name: "a", Plugin: "echo", Retry: plan.Retry{Attempts: 1}})
		p := w.submit(s)
		echo, _ := w.plugins.Get("echo")
		ctx, stop := context.WithCancel(t.Context())
		go func() {
			time.Sleep(time.Minute)
			w.wantState(p, map[string]string{"a": "queued"})
			w.plugins.Register("echo", echo)
			time.Sleep(time.Minute)
			w.wantState(p, map[string]string{"a": "succeeded"})
			if a := w.task(p, "a"); a.Attempt != 1 {
				t.Errorf("it succeeded with attempt %d, want the first", a.Attempt)
			}
			stop()
		}()
		f := &fickle{w.store, func() { w.plugins.Remove("echo") }}
		if err := w.node(den.Config{Store: f}).Run(ctx); err != nil {
			t.Error(err)
		}
	})
}
