//go:build !race

package den_test

import (
	"context"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/internal/runner/procid"
	"github.com/seed-1177d267/sluice/internal/store/mongodb"
	"github.com/seed-1177d267/sluice/internal/store/sqlite"
	"github.com/seed-1177d267/sluice/internal/store/storetest/model"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// Every driver is a den.Store, and has all its optional parts.
type everything interface {
	den.Store
	den.Leaver
	den.Logs
	den.Waker
	den.Expirer
	den.Handover
	den.Adopter
	den.Results
	den.Plans
	den.Balancer
}

var (
	_ everything       = (*model.Store)(nil)
	_ everything       = (*sqlite.Store)(nil)
	_ everything       = (*mongodb.Store)(nil)
	_ plugins.Reporter = (*mongodb.Store)(nil)
)

func TestANodeNeedsFewMethods(t *testing.T) {
	if n := reflect.TypeFor[den.Store]().NumMethod(); n > 8 {
		t.Errorf("den.Store has %d methods; it is to have 8 at most: let a node find what else there is", n)
	}
}

// bare is a store with only den.Store.
type bare struct{ den.Store }

// wrapped is a store that stands before another one.
type wrapped struct{ den.Store }

func (w wrapped) Unwrap() den.Store { return w.Store }

func TestAStoreMayOfferNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.register("say", func(_ context.Context, task *plugins.Task) (any, error) {
			task.Log.Print("before")
			time.Sleep(time.Minute)
			task.Log.Print("after")
			return nil, nil
		})
		s := plan.New("bare")
		s.Add(plan.TaskSpec{Name: "a", Plugin: "say"})
		s.Add(plan.TaskSpec{Name: "b", Plugin: "echo", Needs: []string{"a"}, When: plan.AllDone})
		p := w.submit(s)
		if err := den.Run(t.Context(), bare{w.store}, den.Config{Plan: p.ID, Plugins: w.plugins}); err != nil {
			t.Fatal(err)
		}
		w.wantEnd(p, plan.PlanSucceeded)
		entries, _, err := w.store.Log(t.Context(), w.task(p, "a").ID, 0, 10)
		if err != nil || len(entries) != 2 || entries[0].Text != "before\n" || entries[1].Text != "after\n" {
			t.Errorf("its log is %v, %v; want both lines, once each", entries, err)
		}
		if left, err := w.store.Instances(t.Context()); err != nil || len(left) != 0 {
			t.Errorf("instances that are left: %v, %v", left, err)
		}
	})
}

func TestWhatAStoreCannotDoIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		if _, err := den.New(bare{w.store}, den.Config{Plugins: w.plugins, Outside: &annex{world: w}}); err == nil {
			t.Error("a node runs tasks outside, on a store that does not hand them over")
		}
		if err := w.on(bare{w.store}, den.Config{}).RunClaimed(t.Context(), plan.TaskID{}, plan.InstanceID{}); err == nil {
			t.Error("a task was taken from a store that does not hand over")
		}
		if _, err := den.New(bare{w.store}, den.Config{Plugins: w.plugins, Balance: &den.Balance{}}); err == nil {
			t.Error("a node balances a store that has no balance document")
		}
		if _, err := den.New(wrapped{wrapped{w.store}}, den.Config{Plugins: w.plugins, Balance: &den.Balance{}}); err != nil {
			t.Errorf("what the store below others offers is not found: %v", err)
		}
	})
}

func TestRunAdoptsItsPlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := plan.New("own")
		s.Add(plan.TaskSpec{Name: "a", Plugin: "echo"})
		p := w.submit(s)
		if err := den.Run(t.Context(), w.store, den.Config{Plan: p.ID, Plugins: w.plugins}); err != nil {
			t.Fatal(err)
		}
		if now, err := w.store.Plan(t.Context(), p.ID); err != nil || !now.Own || now.State != plan.PlanSucceeded {
			t.Errorf("the plan is %v, of a node of its own %v, %v", now.State, now.Own, err)
		}
		gone := plan.PlanID{ID: plan.NewID(time.Now())}
		if err := den.Run(t.Context(), w.store, den.Config{Plan: gone, Plugins: w.plugins}); err != nil {
			t.Errorf("of a plan that is not there Run returns %v, want nil", err)
		}
	})
}

func TestANodeSaysWhichProcessItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ctx, stop := context.WithCancel(t.Context())
		ready := make(chan struct{})
		ended := make(chan error)
		go func() { ended <- w.node(den.Config{OnReady: func() { close(ready) }}).Run(ctx) }()
		<-ready
		all, err := w.store.Instances(t.Context())
		if err != nil || len(all) != 1 || all[0].Process != procid.Process() || all[0].Process.Identity == "" || procid.Gone(all[0]) {
			t.Errorf("the node is registered as %+v, %v", all, err)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
