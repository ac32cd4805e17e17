package sluice_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice"
	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

func TestRunEndsWithItsContextAndContinuesByItsKey(t *testing.T) {
	onEach(t, func(t *testing.T, st *sluice.Store, _ func() *sluice.Store) {
		ctx, stop := context.WithCancelCause(t.Context())
		enough := errors.New("enough")
		reg := plugins.NewRegistry()
		reg.Register("first", plugins.Func(func(context.Context, *plugins.Task) (any, error) { return 1, nil }))
		reg.Register("second", plugins.Func(func(ctx context.Context, _ *plugins.Task) (any, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}))
		spec := plan.New("pair")
		spec.Add(plan.TaskSpec{Name: "first", Plugin: "first"})
		spec.Add(plan.TaskSpec{Name: "second", Plugin: "second", Needs: []string{"first"}})
		p, err := sluice.Run(ctx, st, spec, reg, func(c sluice.Change) {
			if c.Name == "second" && c.Status == plan.Running {
				stop(enough)
			}
		}, sluice.WithKey("pair"))
		if !errors.Is(err, enough) || p.State != plan.PlanRunning {
			t.Fatalf("%v, %v", p.State, err)
		}
		reg.Remove("second")
		reg.Register("second", plugins.Func(func(context.Context, *plugins.Task) (any, error) { return 2, nil }))
		again, err := sluice.Run(t.Context(), st, spec, reg, nil, sluice.WithKey("pair"))
		if err != nil || again.ID != p.ID || again.State != plan.PlanSucceeded {
			t.Errorf("%v %v, %v; want %v", again.ID, again.State, err, p.ID)
		}
	})
}

func TestRunRefusesAPlanThatItCannotRun(t *testing.T) {
	st, err := sluice.Open(t.Context(), "memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	spec := plan.New("alone")
	spec.Add(plan.TaskSpec{Name: "a", Plugin: "absent"})
	var problems plan.Problems
	if _, err := sluice.Run(t.Context(), st, spec, plugins.NewRegistry(), nil); !errors.As(err, &problems) || !strings.Contains(err.Error(), `"absent"`) {
		t.Errorf("got %v", err)
	}
	for p, err := range st.Plans(t.Context(), sluice.PlanQuery{}) {
		t.Errorf("it was submitted: %v, %v", p, err)
	}
}

func TestARetryTakesAMendedPlan(t *testing.T) {
	onEach(t, func(t *testing.T, st *sluice.Store, _ func() *sluice.Store) {
		reg := plugins.NewRegistry()
		reg.Register("say", plugins.Func(func(_ context.Context, t *plugins.Task) (any, error) {
			var p struct{ Word string }
			if err := json.Unmarshal(t.Params, &p); err != nil || p.Word == "" {
				return nil, errors.New("no word")
			}
			return p.Word, nil
		}))
		spec := func(first, second string) *plan.Spec {
			s := plan.New("words")
			s.Params = map[string]json.RawMessage{"word": json.RawMessage(`"` + second + `"`)}
			s.Add(plan.TaskSpec{Name: "first", Plugin: "say", Params: map[string]any{"word": first}})
			s.Add(plan.TaskSpec{Name: "second", Plugin: "say", Needs: []string{"first"}, Params: map[string]any{"word": "${{ params.word }}"}})
			return s
		}
		p, err := sluice.Run(t.Context(), st, spec("a", ""), reg, nil)
		if err != nil || p.State != plan.PlanFailed {
			t.Fatal(p.State, err)
		}
		_, err = st.Retry(t.Context(), p.ID, sluice.RetryOptions{With: spec("other", "b")})
		if !errors.Is(err, plan.ErrConflict) || !strings.Contains(err.Error(), `task "first" has succeeded, and the spec changes its word ("a", now "other")`) {
			t.Errorf("a change to a task that succeeded: %v", err)
		}
		named := spec("a", "b")
		named.Name = "sentences"
		if _, err = st.Retry(t.Context(), p.ID, sluice.RetryOptions{With: named}); !errors.Is(err, plan.ErrConflict) {
			t.Errorf("another plan: %v", err)
		}
		if _, err = st.Retry(t.Context(), p.ID, sluice.RetryOptions{With: plan.New("words")}); err == nil {
			t.Error("it took a plan without tasks")
		}
		f, err := st.Retry(t.Context(), p.ID, sluice.RetryOptions{With: spec("a", "b")})
		if err != nil || len(f.Again) != 1 {
			t.Fatal(f, err)
		}
		if err := den.Run(t.Context(), st, den.Config{Plugins: reg, Plan: p.ID}); err != nil {
			t.Fatal(err)
		}
		p, err = st.Plan(t.Context(), p.ID)
		if out, failed := st.Output(t.Context(), p.ID, "second"); p.State != plan.PlanSucceeded || err != nil || failed != nil || string(out) != `"b"` || string(p.Params) != `{"word":"b"}` {
			t.Errorf("%v %s %s, %v %v", p.State, out, p.Params, err, failed)
		}
	})
}
