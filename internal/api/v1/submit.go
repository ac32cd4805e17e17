package v1

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/auth"
	"github.com/seed-1177d267/sluice/internal/planfile"
	"github.com/seed-1177d267/sluice/internal/submit"
	"github.com/seed-1177d267/sluice/plan"
)

// SubmitPlan is a plan file, and what it is read with.
type SubmitPlan struct {
	Param    []string `query:"param,explode" doc:"A value for a param of the plan, as NAME=VALUE; again for more."`
	FailFast bool     `query:"fail_fast" doc:"Start nothing more when a task has failed, whatever the file says."`
	Dir      string   `query:"dir" default:"/" doc:"The absolute path of the folder, on the nodes' hosts, that relative paths in the file start from."`
	Check    bool     `query:"check" doc:"Only say what is wrong with it; nothing is submitted."`
	Key      string   `header:"Idempotency-Key" maxLength:"255" doc:"Any text of the caller's: the same request, made again with it, submits nothing again, and goes on with what was left half-way."`
	RawBody  []byte   `contentType:"application/yaml" doc:"A plan file: YAML, and so JSON."`
}

type submitAnswer struct {
	Status   int
	Location string `header:"Location"`
	Body     api.Plan
}

func (a *API) submissions() {
	serve(a, endpoint{
		method: "POST", path: "/plans", id: "submit-plan", summary: "Submit a plan file", tag: "plans", scope: Submit, body: fileBody, status: 201,
		doc: "The whole of it or, if anything is wrong, nothing: then errors has each mistake with its line and column. The answer is 200 where the key was used by " +
			"the same request before, and with check.",
		errors: []int{409, 413, 422},
	}, a.submitPlan)
}

func (a *API) submitPlan(ctx context.Context, in *SubmitPlan) (*submitAnswer, error) {
	spec, err := a.readPlan(in)
	if err != nil {
		return nil, err
	}
	if in.Check {
		return &submitAnswer{Status: http.StatusOK, Body: api.Plan{Name: spec.Name, State: plan.PlanSubmitting.String(), Status: plan.PlanSubmitting, Size: len(spec.Tasks)}}, nil
	}
	p, repeated, err := submit.Once(ctx, a.st, spec, in.Key)
	switch {
	case repeated && errors.Is(err, plan.ErrConflict):
		return nil, api.NewProblem(http.StatusUnprocessableEntity, api.CodeRepeated, "the idempotency key was used for another plan, %s: %v", p.Title(), err)
	case errors.Is(err, submit.ErrQueue):
		return nil, api.NewProblem(http.StatusConflict, api.CodeQueue, "%v", err)
	case err != nil && !p.ID.IsZero() && !errors.Is(err, plan.ErrPlanEnded):
		return nil, fmt.Errorf("%w; nothing of %s runs yet: ask again with the same Idempotency-Key, if there was one, to go on with it", err, p.Title())
	case err != nil:
		return nil, err
	}
	auth.Changed(ctx, p.ID.String())
	if p, err = a.st.Plan(ctx, p.ID); err != nil {
		return nil, err
	}
	answer, err := a.answerPlan(ctx, &p)
	if err != nil {
		return nil, err
	}
	out := &submitAnswer{Status: http.StatusCreated, Location: api.Root + "/plans/" + p.ID.String(), Body: answer.Body}
	if repeated {
		out.Status = http.StatusOK
	}
	return out, nil
}

// readPlan reads the file of a request. What is wrong with it is a problem that names each place.
func (a *API) readPlan(in *SubmitPlan) (*plan.Spec, error) {
	if !filepath.IsAbs(in.Dir) {
		return nil, api.Invalid("query.dir: %q is not an absolute path", in.Dir)
	}
	o := planfile.Options{Params: map[string]string{}, Given: "param=", Dir: in.Dir}
	for _, word := range in.Param {
		name, value, ok := strings.Cut(word, "=")
		if !ok || name == "" {
			return nil, api.Invalid("query.param: %q: write NAME=VALUE", word)
		}
		if _, twice := o.Params[name]; twice {
			return nil, api.Invalid("query.param: %s is given twice; give it one value", name)
		}
		o.Params[name] = value
	}
	if len(in.RawBody) == 0 {
		return nil, api.Invalid("body: a plan file is expected, and there is nothing")
	}
	spec, err := planfile.Parse("plan", in.RawBody, o)
	var placed planfile.Errors
	if errors.As(err, &placed) {
		p := api.Invalid("the plan file is not valid:\n%v", err)
		for _, e := range placed {
			f := api.Field{Message: e.Message, Location: "body", Line: e.Line, Column: e.Column}
			if e.Line == 0 { // what is wrong is not in the file
				f.Location = "query.param"
			}
			p.Fields = append(p.Fields, f)
		}
		return nil, p
	}
	if err != nil {
		return nil, api.Invalid("the plan file is not valid: %v", err)
	}
	if in.FailFast {
		spec.OnFailure = plan.Stop
	}
	return spec, nil
}
