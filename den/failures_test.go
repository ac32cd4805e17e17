//go:build !race

package den_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

func TestTasksFindFailuresAndTheStateOfTheirPlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		told := map[string]string{}
		w.register("bad", func(context.Context, *plugins.Task) (any, error) { return nil, errors.New("no room") })
		w.register("tell", func(_ context.Context, t *plugins.Task) (any, error) {
			told[t.Name] = string(t.Params)
			return nil, nil
		})
		s := plan.New("p")
		s.Add(plan.TaskSpec{Name: "a", Plugin: "bad"})
		s.Add(plan.TaskSpec{Name: "b", Plugin: "tell"})
		add := func(t plan.TaskSpec) {
			t.Plugin, t.When, t.Needs = "tell", plan.AllDone, []string{"a", "b"}
			s.Add(t)
		}
		add(plan.TaskSpec{Name: "whole"})
		add(plan.TaskSpec{Name: "one", Params: json.RawMessage(`{"first": "${{ failures.0.task }}", "all": "${{ failures.*.detail }}", "is": "${{ plan.state }} (${{ plan.name }})"}`)})
		add(plan.TaskSpec{Name: "holds", If: "plan.state == 'running' && failures.0.task in ['a']"})
		add(plan.TaskSpec{Name: "not", If: "plan.state in ['failed', 'cancelled']"})
		p := w.submit(s)
		if err := w.node(den.Config{Plan: p.ID}).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.wantState(p, map[string]string{"whole": "succeeded", "one": "succeeded", "holds": "succeeded", "not": "skipped"})
		const failures = `"failures":[{"task":"a","attempt":1,"detail":"no room"}]`
		for name, want := range map[string]string{
			"whole": `{"needs":{"a":null,"b":null},"args":[null,null],"results":{"a":"failed","b":"succeeded"},` + failures + `}`,
			"b":     `{}`,
		} {
			if told[name] != want {
				t.Errorf("%s found %s, want %s", name, told[name], want)
			}
		}
		var one struct {
			First, Is string
			All       []string
		}
		if err := json.Unmarshal([]byte(told["one"]), &one); err != nil || one.First != "a" || one.Is != "running (p)" || len(one.All) != 1 || one.All[0] != "no room" {
			t.Errorf("it found %s, %v", told["one"], err)
		}
		if got := w.task(p, "not").Detail; got != `if plan.state in ["failed", "cancelled"] does not hold: plan.state is "running"` {
			t.Errorf("it says %q", got)
		}
	})
}
