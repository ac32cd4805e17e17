package v1

import (
	"context"
	"errors"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/auth"
	"github.com/seed-1177d267/sluice/internal/layout"
	"github.com/seed-1177d267/sluice/internal/planfile"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// sketches are the routes for who writes a plan file in a page.
func (a *API) sketches() {
	serve(a, endpoint{
		method: "POST", path: "/plans/sketch", id: "sketch-plan", summary: "Draw a plan file", tag: "plans", scope: Submit, body: fileBody, errors: []int{413, 422},
		doc: "The graph of a file that may be half written, laid out as by get-graph. Nothing is " +
			"submitted or kept. A file that is not valid has mistakes and no graph.",
	}, a.sketch)
	serve(a, endpoint{
		method: "GET", path: "/plan-examples", id: "list-plan-examples", summary: "List plan files to begin with", tag: "plans", scope: Read,
	}, func(context.Context, *struct{}) (*examplesAnswer, error) {
		return &examplesAnswer{api.Each(planfile.Examples(), func(e *planfile.Example) example { return example{e.Name, e.Use, string(e.Text())} })}, nil
	})
}

type examplesAnswer struct {
	Examples []example `json:"examples"`
}

type example struct {
	Name string `json:"name"`
	Use  string `json:"use" doc:"What the example shows."`
	Text string `json:"text" doc:"The plan file."`
}

type sketchAnswer struct {
	Graph  *api.Graph  `json:"graph,omitempty" doc:"In its ids are the names of tasks. Each task is held."`
	Errors []api.Field `json:"errors" doc:"The mistakes of the file."`
}

func (a *API) sketch(ctx context.Context, in *struct {
	Type    string `header:"Content-Type" hidden:"true"`
	RawBody []byte `contentType:"application/yaml" doc:"A plan file: YAML, and so JSON."`
}) (*sketchAnswer, error) {
	auth.Unchanged(ctx)
	file, err := a.readPlan(ctx, &SubmitPlan{Check: true, Type: in.Type, RawBody: in.RawBody})
	if mistakes, ok := errors.AsType[*api.Problem](err); ok && len(mistakes.Fields) > 0 {
		return &sketchAnswer{Errors: mistakes.Fields}, nil
	}
	if err != nil {
		return nil, err
	}
	g, err := sketched(file.spec)
	return &sketchAnswer{Graph: g, Errors: []api.Field{}}, err
}

// sketched lays out the graph of a plan that is in no store.
func sketched(spec *plan.Spec) (*api.Graph, error) {
	n := len(spec.Tasks)
	w := &drawing{
		ids: make([]plan.TaskID, n), names: make([]string, n), runs: make([]rules.Ran, n), state: make([]uint8, n), items: make([]int32, n),
		aside: make([]bool, n), lenient: make([]bool, n), last: make([]bool, n),
	}
	g := spec.Graph()
	for i := range spec.Tasks {
		t := &spec.Tasks[i]
		w.names[i], w.state[i], w.runs[i].Of = t.Name, held, -1
		w.aside[i], w.lenient[i], w.last[i] = rules.TellsResults(t.When) && !t.Finally, t.ContinueOnError, t.Finally
		for _, p := range g.Parents(i) {
			w.edges = append(w.edges, [2]int{int(p), i})
		}
	}
	if err := w.linkLast(); err != nil {
		return nil, err
	}
	var err error
	if w.level, err = layout.Levels(n, w.edges); err != nil {
		return nil, err
	}
	f := w.folding(w.edges, laid{most: mostNodes})
	out, err := f.arrange(w.edges, w.ids, func(int) bool { return false }, nil)
	if err != nil {
		return nil, err
	}
	for i := range f.nodes {
		if t := f.nodes[i].task; t >= 0 {
			out.IDs[i] = w.names[t]
		}
	}
	out.Tasks, out.States = n, stateWords
	out.State, out.Counts = f.states(w)
	return out, nil
}
