package plugins

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/seed-1177d267/sluice/plan"
)

// Refused returns a problem for each task of a spec of which its plugin tells that no attempt could
// succeed, whoever runs it. A plugin that the registry does not have refuses nothing. Each way in
// which a task enters a store asks here.
func (r *Registry) Refused(spec *plan.Spec) (problems plan.Problems) {
	for i := range spec.Tasks {
		t := &spec.Tasks[i]
		p, _ := r.Get(cmp.Or(t.Plugin, plan.DefaultPlugin))
		refuser, ok := p.(Refuser)
		if !ok {
			continue
		}
		params, err := paramsOf(t)
		if err != nil {
			continue // the spec is not valid, and is refused for that
		}
		if key, err := refuser.Refuse(params, Given(spec, t)); err != nil {
			problems = append(problems, plan.Problem{Task: i, Key: "params", Word: key, Item: -1, Message: fmt.Sprintf("task %q: params.%v", t.Name, err)})
		}
	}
	return problems
}

// paramsOf returns a task's params as an object in JSON.
func paramsOf(t *plan.TaskSpec) (json.RawMessage, error) {
	params, is := t.Params.(json.RawMessage)
	if !is && t.Params != nil {
		var err error
		if params, err = json.Marshal(t.Params); err != nil {
			return nil, err
		}
	}
	if len(params) == 0 {
		params = json.RawMessage("{}")
	}
	return params, nil
}

// Given returns the params that a task has besides its own: those of its plan, and item if it has a
// foreach.
func Given(spec *plan.Spec, t *plan.TaskSpec) map[string]json.RawMessage {
	if t.Foreach == nil {
		return spec.Params
	}
	given := maps.Clone(spec.Params)
	if given == nil {
		given = map[string]json.RawMessage{}
	}
	given["item"] = json.RawMessage(`""`) // there is one, whose value is unknown
	return given
}
