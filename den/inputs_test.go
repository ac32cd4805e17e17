//go:build !race

package den_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// A gone store gives no inputs for a while.
type gone struct {
	Store
	until time.Time
	why   error
	asked int
}

func (g *gone) Inputs(ctx context.Context, id plan.TaskID) ([]plan.Input, error) {
	g.asked++
	if time.Now().Before(g.until) {
		return nil, fmt.Errorf("no inputs: %w", g.why)
	}
	return g.Store.Inputs(ctx, id)
}

func TestAStoreThatGivesNoInputsForAWhile(t *testing.T) {
	for _, c := range []struct {
		name     string
		why      error
		attempts int // that there are
		state    string
		attempt  int // that was the last
		reason   plan.Reason
	}{
		{"as it is gone, is asked again in the same attempt", plan.ErrUnavailable, 1, "succeeded", 1, ""},
		{"for another reason, is asked again in the next one", errNoRoom, 4, "succeeded", 2, ""},
		{"and if there is none the task has failed", errNoRoom, 1, "failed", 1, plan.ReasonError},
		{"is not asked again if they are too much", plan.ErrTooMuchInput, 4, "failed", 1, plan.ReasonInput},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.register("large", func(context.Context, *plugins.Task) (any, error) {
					return strings.Repeat("x", plan.MaxCopiedOne+1), nil
				})
				s := plan.New("large")
				s.Add(plan.TaskSpec{Name: "a", Plugin: "large"})
				s.Add(plan.TaskSpec{Name: "b", Plugin: "echo", Needs: []string{"a"}, Retry: plan.Retry{Attempts: c.attempts, Delay: 20 * time.Second}})
				p := w.submit(s)
				store := &gone{Store: w.store, why: c.why, until: time.Now().Add(5 * time.Second)}
				if err := w.on(store, den.Config{Plan: p.ID}).Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				if b := w.task(p, "b"); b.State() != c.state || b.Attempt != c.attempt || b.Reason != c.reason {
					t.Errorf("it is %s (%s, %s) after %d attempts, want %s (%s) after %d", b.State(), b.Reason, b.Detail, b.Attempt, c.state, c.reason, c.attempt)
				}
			})
		})
	}
}

type inputReader struct{ plugins.Func }

func (inputReader) ReadsInputs() {}

func TestAPluginReadsItsInputs(t *testing.T) {
	for name, size := range map[string]int{"small": 10, "large": plan.MaxCopiedOne + 1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.register("some", func(_ context.Context, t *plugins.Task) (any, error) {
					if t.Name == "none" {
						return nil, nil
					}
					return strings.Repeat(t.Name, size), nil
				})
				read := func(_ context.Context, t *plugins.Task) (any, error) {
					args, err := t.Args()
					if err != nil {
						return nil, err
					}
					needs, err := t.Needs()
					if err != nil {
						return nil, err
					}
					if len(args) != 3 || len(needs) != 3 || string(args[0]) != string(needs["a"]) || string(args[2]) != string(needs["b"]) {
						return nil, fmt.Errorf("args %.30s, needs %.30s", args, needs)
					}
					if in := strings.Contains(string(t.Params), `"needs"`); in != (size == 10 || t.Name != "e") {
						return nil, fmt.Errorf("needs are in the params: %v", in)
					}
					return []int{len(args[0]), len(args[1]), len(args[2]), int(args[2][1])}, nil
				}
				w.register("read", read)
				w.plugins.Register("reader", inputReader{read})
				s := plan.New("p")
				for _, parent := range []string{"a", "none", "b"} {
					s.Add(plan.TaskSpec{Name: parent, Plugin: "some"})
				}
				s.Add(plan.TaskSpec{Name: "c", Plugin: "read", Needs: []string{"a", "none", "b"}, Params: params(`{"Args": "mine"}`)})
				s.Add(plan.TaskSpec{Name: "e", Plugin: "reader", Needs: []string{"a", "none", "b"}})
				s.Add(plan.TaskSpec{Name: "d", Plugin: "root"})
				w.register("root", func(_ context.Context, t *plugins.Task) (any, error) {
					args, err := t.Args()
					needs, alsoErr := t.Needs()
					if err != nil || alsoErr != nil || len(args)+len(needs) != 0 {
						return nil, fmt.Errorf("a task without parents got %s %s, %v %v", args, needs, err, alsoErr)
					}
					return nil, nil
				})
				p := w.submit(s)
				if err := w.node(den.Config{Plan: p.ID}).Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				w.wantEnd(p, plan.PlanSucceeded)
				for _, name := range []string{"c", "e"} {
					if got, want := string(w.task(p, name).Output), fmt.Sprintf("[%d,4,%d,98]", size+2, size+2); got != want {
						t.Errorf("%s read %s, want %s", name, got, want)
					}
				}
			})
		})
	}
}
