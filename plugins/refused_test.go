package plugins_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// picky refuses all params, and says what it was given.
type picky struct{ plugins.Func }

func (picky) Refuse(params json.RawMessage, given map[string]json.RawMessage) (string, error) {
	return "x", fmt.Errorf("x: %s with %v", params, slices.Sorted(maps.Keys(given)))
}

func TestAPluginRefusesTasks(t *testing.T) {
	r := plugins.NewRegistry()
	r.Register("picky", picky{})
	r.Register("easy", nothing)
	spec := plan.New("p")
	spec.Params = map[string]json.RawMessage{"of_plan": json.RawMessage("1")}
	spec.Add(plan.TaskSpec{Name: "easy", Plugin: "easy", Params: map[string]any{"bad": true}})
	spec.Add(plan.TaskSpec{Name: "elsewhere", Plugin: "unknown"})
	spec.Add(plan.TaskSpec{Name: "raw", Plugin: "picky", Params: json.RawMessage(`{"a":1}`)})
	spec.Add(plan.TaskSpec{Name: "value", Plugin: "picky", Params: map[string]any{"b": 2}})
	spec.Add(plan.TaskSpec{Name: "none", Plugin: "picky", Foreach: &plan.Foreach{}})
	spec.Add(plan.TaskSpec{Name: "invalid", Plugin: "picky", Params: func() {}})
	var got []string
	for _, p := range r.Refused(spec) {
		if p.Key != "params" || p.Word != "x" || p.Item != -1 || p.Task < 0 {
			t.Errorf("the problem has no place: %+v", p)
		}
		got = append(got, p.Message)
	}
	want := []string{
		`task "raw": params.x: {"a":1} with [of_plan]`, `task "value": params.x: {"b":2} with [of_plan]`, `task "none": params.x: {} with [item of_plan]`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if _, given := spec.Params["item"]; given {
		t.Error("the params of the plan have an item now")
	}
}
