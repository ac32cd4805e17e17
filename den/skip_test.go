//go:build !race

package den_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

func TestAttemptsAreSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		runs := 0
		w.register("count", func(context.Context, *plugins.Task) (any, error) { runs++; return map[string]int{"changed": 3}, nil })
		w.register("idle", func(context.Context, *plugins.Task) (any, error) { return nil, plugins.Skip("up to date") })
		s := plan.New("p")
		s.Params = map[string]json.RawMessage{"site": json.RawMessage(`"test"`)}
		s.Add(plan.TaskSpec{Name: "check", Plugin: "count"})
		s.Add(plan.TaskSpec{Name: "holds", Plugin: "count", Needs: []string{"check"}, If: "needs.check.changed > 0 && params.site == 'test'"})
		s.Add(plan.TaskSpec{Name: "not", Plugin: "count", Needs: []string{"check"}, If: "needs.check.changed > 3"})
		s.Add(plan.TaskSpec{Name: "nowhere", Plugin: "count", Needs: []string{"check"}, If: "needs.check.x > 3", Retry: plan.Retry{Attempts: 3}})
		s.Add(plan.TaskSpec{Name: "idle", Plugin: "idle"})
		p := w.submit(s)
		if err := w.node(den.Config{Plan: p.ID}).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.wantState(p, map[string]string{"holds": "succeeded", "not": "skipped", "nowhere": "failed", "idle": "skipped"})
		for name, want := range map[string]string{
			"not": "if needs.check.changed > 3 does not hold: needs.check.changed is 3", "idle": "up to date", "nowhere": `if: ${{ needs.check.x }}: needs.check has no "x"`,
		} {
			if got := w.task(p, name).Detail; got != want {
				t.Errorf("%s says %q, want %q", name, got, want)
			}
		}
		if runs != 2 {
			t.Errorf("the plugin ran %d times, want twice: a condition is decided before it", runs)
		}
	})
}
