//go:build !race

package den_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// A node stops a plan within a second of the end of its time, also where the node has nothing to do until then.
func TestANodeStopsAPlanWhoseTimeIsOver(t *testing.T) {
	for name, tasks := range map[string][]plan.TaskSpec{
		"while a task runs":       {{Name: "a", Plugin: "wait"}, {Name: "b", Plugin: "echo", Needs: []string{"a"}}},
		"while a task is delayed": {{Name: "a", Plugin: "fail", Retry: plan.Retry{Attempts: 2, Delay: time.Hour, Max: time.Hour}}, {Name: "b", Plugin: "echo", Needs: []string{"a"}}},
		"while a person is to answer": {{Name: "a", Approve: &plan.Approval{Question: "so?"}},
			{Name: "b", Plugin: "echo", Needs: []string{"a"}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.register("fail", func(context.Context, *plugins.Task) (any, error) { return nil, errors.New("no room") })
				w.register("wait", func(ctx context.Context, _ *plugins.Task) (any, error) { <-ctx.Done(); return nil, ctx.Err() })
				s := plan.New("p")
				s.Timeout, s.Tasks = 90*time.Second+500*time.Millisecond, tasks
				p := w.submit(s)
				began := time.Now()
				if err := w.node(den.Config{Plan: p.ID}).Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				w.wantEnd(p, plan.PlanFailed)
				if late := time.Since(began) - s.Timeout; late < 0 || late > time.Second {
					t.Errorf("it ended %v after its time", late)
				}
				for _, name := range []string{"a", "b"} {
					if got := w.task(p, name).Detail; got != rules.ByTimeout {
						t.Errorf("%s says %q", name, got)
					}
				}
			})
		})
	}
}

// A node that comes after the time of a plan stops it before any task of it begins.
func TestANodeStopsAPlanWhoseTimeWasOverBeforeItCame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.register("begin", func(context.Context, *plugins.Task) (any, error) { t.Error("a task began"); return nil, nil })
		s := plan.New("p")
		s.Timeout, s.Tasks = time.Hour, []plan.TaskSpec{{Name: "a", Plugin: "begin"}}
		p := w.submit(s)
		time.Sleep(2 * s.Timeout)
		if err := w.node(den.Config{Plan: p.ID}).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.wantEnd(p, plan.PlanFailed)
	})
}
