package compiler

import (
	"encoding/json"
	"slices"

	"github.com/seed-1177d267/sluice/internal/expr"
	"github.com/seed-1177d267/sluice/plan"
)

// withImplied returns the spec with the needs that expressions imply. A task that needs an approval may read the
// outputs of what the approval needs, since these are what the question is about. Nodes give a task the outputs of
// its own parents, so it needs them too. Where its when asks how its parents ended, one more parent could change the
// answer, so that needs are written out there. The spec is s itself where nothing is implied.
func withImplied(s *plan.Spec) *plan.Spec {
	if !slices.ContainsFunc(s.Tasks, func(t plan.TaskSpec) bool { return t.Approve != nil }) {
		return s
	}
	index := s.Index()
	out := s
	for i := range s.Tasks {
		t := &s.Tasks[i]
		if t.When != "" && t.When != plan.AllSucceeded {
			continue
		}
		behind := map[string]bool{}
		for _, parent := range t.Parents() {
			if p, there := index[parent]; there && s.Tasks[p].Approve != nil {
				for _, name := range s.Tasks[p].Needs {
					behind[name] = true
				}
			}
		}
		if len(behind) == 0 {
			continue
		}
		for _, parent := range t.Parents() {
			delete(behind, parent)
		}
		for _, name := range outputsRead(t) {
			if !behind[name] {
				continue
			}
			delete(behind, name)
			if out == s {
				changed := *s
				out, out.Tasks = &changed, slices.Clone(s.Tasks)
			}
			out.Tasks[i].Needs = append(slices.Clone(out.Tasks[i].Needs), name)
		}
	}
	return out
}

// outputsRead returns the names of the tasks whose outputs, or results, the expressions of a task read. Validate tells
// which of them cannot be parsed.
func outputsRead(t *plan.TaskSpec) []string {
	var paths []string
	if c, err := expr.ParseCondition(t.If); t.If != "" && err == nil {
		paths = c.Paths()
	}
	if t.Foreach != nil && t.Foreach.Value != "" {
		paths = append(paths, t.Foreach.Value)
	}
	if params, err := rawObject(t.Params); t.Params != nil && err == nil && expr.MayHold(params) {
		_, _ = expr.EachText(params, func(_ []string, text string) (json.RawMessage, error) {
			paths = append(paths, expr.Paths(text)...)
			return nil, nil
		})
	}
	var names []string
	for _, path := range paths {
		if steps, err := expr.Parse(path); err == nil && len(steps) > 1 && (steps[0] == "needs" || steps[0] == "results") {
			names = append(names, steps[1])
		}
	}
	return names
}
