package v1

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/auth"
	"github.com/seed-1177d267/sluice/internal/compiler"
	"github.com/seed-1177d267/sluice/internal/halt"
	"github.com/seed-1177d267/sluice/internal/planfile"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/secret"
	"github.com/seed-1177d267/sluice/internal/states"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/hiding"
	"github.com/seed-1177d267/sluice/plan"
)

// huma sees fields of embedded structs only if their types are exported.

// InPlan is the part of a path that names a plan.
type InPlan struct {
	Plan string `path:"plan" minLength:"1" doc:"An id, a name (its latest run), or NAME#RUN." example:"nightly"`
}

func (p *InPlan) word() string { return p.Plan }

// ofPlan is a handler for the plan that a path names.
func ofPlan[I, O any, P interface {
	*I
	word() string
}](a *API, handle func(context.Context, *plan.Plan, *I) (*O, error)) func(context.Context, *I) (*O, error) {
	return func(ctx context.Context, in *I) (*O, error) {
		p, err := a.findPlan(ctx, P(in).word())
		if err != nil {
			return nil, err
		}
		return handle(ctx, &p, in)
	}
}

// ByPlanID is it for routes that a name is too little for: what is changed is named exactly.
type ByPlanID struct {
	Plan plan.PlanID `path:"plan" doc:"Its id."`
}

// changed is what a request that changes something is of, for the audit log.
func (p *ByPlanID) changed() string { return p.Plan.String() }

func (a *API) plans() {
	const tag = "plans"
	serve(a, endpoint{method: "GET", path: "/plans", id: "list-plans", summary: "List plans, newest first", tag: tag, scope: Read, doc: fewer}, a.listPlans)
	serve(a, endpoint{method: "GET", path: "/plans/{plan}", id: "get-plan", summary: "Read a plan", tag: tag, scope: Read, errors: []int{404}}, ofPlan(a, a.getPlan))
	serve(a, endpoint{
		method: "GET", path: "/plans/{plan}/file", id: "get-plan-file", summary: "Read the file of a plan", tag: tag, scope: Read, errors: []int{404},
		doc: "As it was when the plan was submitted, with *** in place of secrets. The text is " +
			"empty if none was kept: a program built the plan, or the file has more than 256 KiB.",
	}, ofPlan(a, a.getPlanFile))
	serve(a, endpoint{
		method: "PUT", path: "/plans/{plan}", id: "create-plan", summary: "Begin a plan, to add tasks to it", tag: tag, scope: Submit, body: tasksBody, errors: []int{409, 422},
		doc: "The caller chooses the id, so that a repeated request changes nothing. No task runs " +
			"before the plan is made ready. A plan that nobody touches for an hour before that is " +
			"abandoned.",
	}, a.createPlan)
	serve(a, endpoint{
		method: "POST", path: "/plans/fits", id: "check-size", summary: "Check whether a plan and its tasks fit into the store", tag: tag, scope: Submit, body: tasksBody, status: 204,
		doc: "Nothing is written. Params of a plan, and params, description and list of a task, " +
			"fit into every store if they have at most a MiB, and need no check. The answer names " +
			"the part that is too large.",
		errors: []int{413, 422},
	}, a.checkSize)
	serve(a, endpoint{
		method: "POST", path: "/plans/{plan}/tasks", id: "add-tasks", summary: "Add tasks to a plan", tag: tag, scope: Submit, body: tasksBody, status: 204,
		doc:    "Parents come before their children, or exist already. All tasks are added or none. Adding a task again under its id changes nothing.",
		errors: []int{404, 409, 413, 422},
	}, a.addTasks)
	serve(a, endpoint{method: "POST", path: "/plans/{plan}/ready", id: "make-ready", summary: "Make a plan ready to run", tag: tag, scope: Submit, status: 204, errors: []int{404, 409}},
		func(ctx context.Context, in *ByPlanID) (*struct{}, error) { return nil, a.st.Ready(ctx, in.Plan) })
	serve(a, endpoint{
		method: "POST", path: "/plans/{plan}/adopt", id: "adopt-plan", summary: "Mark a plan as run by a node of its own", tag: tag, scope: Submit, status: 204, errors: []int{404},
	}, func(ctx context.Context, in *ByPlanID) (*struct{}, error) { return nil, a.st.Adopt(ctx, in.Plan) })
	serve(a, endpoint{
		method: "PATCH", path: "/plans/{plan}", id: "set-plan", summary: "Change the priority of a plan", tag: tag, scope: Operate, status: 204, errors: []int{404, 422},
		doc: "Claims keep to it from then on, also while the plan runs.",
	}, func(ctx context.Context, in *struct {
		ByPlanID
		Body api.PlanChange
	}) (*struct{}, error) {
		return nil, a.st.SetPriority(ctx, in.Plan, in.Body.Priority)
	})
	serve(a, endpoint{
		method: "POST", path: "/plans/{plan}/cancel", id: "cancel-plan", summary: "Cancel a plan", tag: tag, scope: Operate, status: 204, errors: []int{404, 409},
		doc: "No more of its tasks are claimed, and running ones are stopped. If no live node " +
			"serves the plan, the server ends it as soon as it may take the running tasks from " +
			"their node: at once, or when that node's lease is over. Tasks of finally run after the " +
			"others all the same; another cancellation with finally stops them, too.",
	}, a.cancelPlan)
	serve(a, endpoint{
		method: "GET", path: "/plans/{plan}/unrun", id: "get-unrun", summary: "List the clean-ups that a cancellation skips", tag: tag, scope: Read, errors: []int{404, 422},
		doc: "Tasks whose when is not all_succeeded, and which would run if the running tasks were cancelled instead of the plan.",
	}, ofPlan(a, a.unrun))
	serve(a, endpoint{
		method: "POST", path: "/plans/{plan}/cancel-running", id: "cancel-running", summary: "Cancel the running tasks of a plan", tag: tag, scope: Operate, errors: []int{404, 409},
		doc: "The plan continues: a cancelled task counts as failed, so that clean-ups run. Clean-ups and tasks of finally that run are left. Refused if nothing else runs, and if the plan has on_failure: stop.",
	}, a.cancelRunning)
	serve(a, endpoint{
		method: "POST", path: "/plans/{plan}/retry", id: "retry-plan", summary: "Retry the tasks that did not succeed", tag: tag, scope: Operate, body: tasksBody,
		doc:    "Without tasks, or a body: all tasks that did not succeed, and the skipped and cancelled tasks below them. Tasks that succeeded are kept, with their outputs.",
		errors: []int{404, 409, 422},
	}, a.retryPlan)
	serve(a, endpoint{
		method: "POST", path: "/plans/{plan}/retry-with", id: "retry-plan-with", summary: "Retry with other definitions or params", tag: tag, scope: Submit, body: tasksBody,
		errors: []int{404, 409, 422},
	}, a.retryPlanWith)
	serve(a, endpoint{
		method: "DELETE", path: "/plans/{plan}", id: "delete-plan", summary: "Delete a plan that has ended", tag: tag, scope: Admin, errors: []int{404, 409},
		doc: "With its tasks and logs, some at a time: if more remains, call again.",
	}, a.deletePlan)
	serve(a, endpoint{method: "POST", path: "/plans/prune", id: "prune-plans", summary: "Delete plans that ended long ago", tag: tag, scope: Admin}, a.prunePlans)
}

// findPlan returns the plan that a path names.
func (a *API) findPlan(ctx context.Context, word string) (plan.Plan, error) {
	if id, err := plan.ParseID(word); err == nil {
		return a.st.Plan(ctx, plan.PlanID{ID: id})
	}
	q := store.PlanQuery{Name: word, Limit: 1}
	if name, run, ok := strings.Cut(word, "#"); ok {
		n, err := strconv.Atoi(run)
		if err != nil || n < 1 || name == "" {
			return plan.Plan{}, api.Invalid("path.plan: %q names no plan: a run is written as in nightly%%233", word)
		}
		q.Name, q.Run = name, n
	}
	found, err := a.st.Plans(ctx, q)
	if err != nil {
		return plan.Plan{}, err
	}
	if len(found) == 0 {
		return plan.Plan{}, notThere("plan", word)
	}
	return found[0], nil
}

type listPlans struct {
	Name   string      `query:"name" doc:"Only plans of that name."`
	Run    int         `query:"run" minimum:"0" doc:"With name: only that run."`
	Prefix string      `query:"prefix" pattern:"^[0-9a-f]{0,24}$" doc:"Only plans whose id begins with this."`
	Source string      `query:"source" doc:"Only plans from that file, by its absolute path."`
	State  string      `query:"state" enum:"submitting,running,succeeded,failed,cancelled,abandoned"`
	Before plan.PlanID `query:"before" doc:"Plans after that one, in the order of the list."`
	Limit  int         `query:"limit" minimum:"0" maximum:"5000" default:"100"`
}

func (a *API) listPlans(ctx context.Context, in *listPlans) (*api.PlanList, error) {
	q := store.PlanQuery{Name: in.Name, Run: in.Run, Prefix: in.Prefix, Source: in.Source, Before: in.Before}
	return newPage(16, plansAtOnce, limit(in.Limit)).plans(ctx, a, q, in.State, "")
}

// inState adds the state that is wanted, if one is, to a query, and returns the nodes, by which plans are shown.
func (a *API) inState(ctx context.Context, q *store.PlanQuery, word string) ([]plan.Instance, error) {
	if word != "" {
		state, err := states.ParseLifecycle(word)
		if err != nil {
			return nil, err
		}
		q.State = &state
	}
	return a.st.Instances(ctx)
}

func limit(n int) int {
	if n <= 0 {
		n = pageSize
	}
	return min(n, mostPage)
}

func (a *API) getPlan(ctx context.Context, p *plan.Plan, _ *InPlan) (*api.Plan, error) {
	return a.answerPlan(ctx, p)
}

func (a *API) getPlanFile(ctx context.Context, p *plan.Plan, _ *InPlan) (*plan.File, error) {
	file, err := a.st.PlanFile(ctx, p.ID)
	return &file, err
}

func (a *API) answerPlan(ctx context.Context, p *plan.Plan) (_ *api.Plan, err error) {
	var nodes []plan.Instance
	if !p.State.Ended() {
		if nodes, err = a.st.Instances(ctx); err != nil {
			return nil, err
		}
	}
	out := api.ShownPlan(p, nodes)
	if p.State.Ended() {
		out.Outdated, err = a.outdated.of(ctx, a.st, p)
	}
	return &out, err
}

type createPlan struct {
	ByPlanID
	Body api.NewPlan
}

func (a *API) createPlan(ctx context.Context, in *createPlan) (*api.Plan, error) {
	spec := plan.New(in.Body.Name)
	spec.Add(plan.TaskSpec{Name: "task"}) // a plan without tasks is not valid, and says nothing about its name
	if err := compiler.Validate(spec); err != nil {
		return nil, err
	}
	if err := object("body.params", in.Body.Params); err != nil {
		return nil, err
	}
	secrets, err := secret.CheckNames(in.Body.Secrets)
	if err != nil {
		return nil, api.InvalidAt("body.secrets", "%v", err)
	}
	if err := rules.CheckAge("keep", 0, time.Duration(in.Body.Keep)); err != nil {
		return nil, api.InvalidAt("body.keep", "%v", err)
	}
	if in.Body.Timeout < 0 {
		return nil, api.InvalidAt("body.timeout", "it cannot be less than 0; it is how long the plan may run, as in 8h, or left out")
	}
	var file plan.File
	if in.Body.File != nil {
		file = *in.Body.File
	}
	p, err := a.st.CreatePlan(ctx, plan.Plan{
		ID: in.Plan, File: file, Secrets: secrets, By: submitter(ctx), Name: in.Body.Name, State: plan.PlanSubmitting, OnFailure: in.Body.OnFailure, Finally: in.Body.Finally, Source: in.Body.Source,
		Overlap: in.Body.Overlap, Priority: in.Body.Priority, Keep: time.Duration(in.Body.Keep), Timeout: time.Duration(in.Body.Timeout), Key: in.Body.Key, Own: in.Body.Own, Size: in.Body.Size, Params: in.Body.Params,
	})
	if err != nil {
		return nil, err
	}
	out := api.PlanOf(&p)
	return &out, nil
}

// object refuses what is neither left out nor a JSON object.
func object(location string, value json.RawMessage) error {
	var fields map[string]json.RawMessage
	if len(value) > 0 && (json.Unmarshal(value, &fields) != nil || fields == nil) {
		return api.InvalidAt(location, "it is to be a JSON object")
	}
	return nil
}

// planParams refuses what cannot be the params of a plan.
func planParams(value json.RawMessage) error {
	if err := object("body.params", value); err != nil {
		return err
	}
	return rules.CheckPlanParams(len(value))
}

type newTasks struct {
	Tasks []api.NewTask `json:"tasks"`
}

// domain returns the tasks of a body that has them in the field.
func domain(field string, given []api.NewTask) ([]plan.Task, error) {
	tasks := make([]plan.Task, len(given))
	for i := range given {
		at := fmt.Sprintf("body.%s[%d]", field, i)
		if err := object(at+".params", given[i].Params); err != nil {
			return nil, err
		}
		if given[i].ID.IsZero() {
			return nil, api.InvalidAt(at+".id", "it is of zeros; mint one")
		}
		if err := api.CheckTime(given[i].NotBefore); err != nil {
			return nil, api.InvalidAt(at+".not_before", "%v", err)
		}
		if err := api.CheckTime(given[i].Created); err != nil {
			return nil, api.InvalidAt(at+".created", "%v", err)
		}
		tasks[i] = given[i].Domain()
		if p := compiler.CheckDefinition(&tasks[i].Definition); p != nil {
			return nil, api.InvalidAt(at+"."+p.Key, "%s", p.Message)
		}
		names, err := secret.CheckNames(tasks[i].Secrets)
		if err != nil {
			return nil, api.InvalidAt(at+".secrets", "%v", err)
		}
		tasks[i].Secrets = names
	}
	return tasks, nil
}

// accepted is domain for tasks that are to run. It refuses a task of which the plugin of its queue
// tells that no attempt could succeed.
func (a *API) accepted(ctx context.Context, field string, given []api.NewTask) ([]plan.Task, error) {
	tasks, err := domain(field, given)
	if err == nil {
		err = a.checkRunnable(ctx, tasks, func(task int, name string) string {
			return paramAt(fmt.Sprintf("body.%s[%d]", field, task), name)
		})
	}
	return tasks, err
}

// paramAt is the place of a param; of all params without a name.
func paramAt(at, name string) string { return strings.TrimSuffix(at+".params."+name, ".") }

// checkRunnable refuses tasks that no attempt can succeed with. It asks the plugins of the tasks' queues, too. at
// is the place of a param of a task.
func (a *API) checkRunnable(ctx context.Context, tasks []plan.Task, at func(task int, name string) string) error {
	if len(tasks) == 0 {
		return nil
	}
	queues, err := a.st.Queues(ctx)
	if err != nil {
		return err
	}
	byID := make(map[plan.QueueID]plan.Queue, len(queues))
	for _, q := range queues {
		byID[q.ID] = q
	}
	spec := plan.Spec{Tasks: make([]plan.TaskSpec, len(tasks))}
	for i := range tasks {
		q := byID[tasks[i].Queue]
		if name, err := compiler.CheckParams(q.Plugin, tasks[i].Params, tasks[i].Template); err != nil {
			return api.InvalidAt(at(i, name), "task %q: params.%s: %v", tasks[i].Name, name, err)
		}
		spec.Tasks[i] = plan.TaskSpec{Name: tasks[i].Name, Plugin: q.Plugin, Params: rules.FillParams(&q.Defaults, tasks[i].Params), Foreach: tasks[i].Foreach}
	}
	if a.c.Check == nil {
		return nil
	}
	if problems := a.c.Check(&spec); len(problems) > 0 {
		p := problems[0]
		if q := byID[tasks[p.Task].Queue]; rules.ByDefault(&q.Defaults, tasks[p.Task].Params, p.Word) {
			return api.InvalidAt(at(p.Task, p.Word), "with the defaults of queue %q: %s", q.Name, p.Message)
		}
		return api.InvalidAt(at(p.Task, p.Word), "%s", p.Message)
	}
	return nil
}

// added is accepted for tasks that are new. Another task is replaced under its name, which other
// programs may have given it, and an item needs no parents for its rule.
func (a *API) added(ctx context.Context, given []api.NewTask) ([]plan.Task, error) {
	for i := range given {
		t, at := &given[i], fmt.Sprintf("body.tasks[%d]", i)
		if err := compiler.CheckName("task", t.Name); t.Name != "" && err != nil {
			return nil, api.InvalidAt(at+".name", "%v", err)
		}
		d := t.Domain().Definition
		if err := compiler.CheckNeeded(&d, len(t.Needs)); err != nil {
			return nil, api.InvalidAt(at+".when", "%v", err)
		}
	}
	tasks, err := a.accepted(ctx, "tasks", given)
	for i := range tasks {
		if t := &given[i]; err == nil && t.Template && len(t.Needs) == 0 {
			if name, cited := compiler.CheckCited(t.Params); cited != nil {
				err = api.InvalidAt(paramAt(fmt.Sprintf("body.tasks[%d]", i), name), "%v", cited)
			}
		}
	}
	return tasks, err
}

type addTasks struct {
	ByPlanID
	Body newTasks
}

func (a *API) addTasks(ctx context.Context, in *addTasks) (*struct{}, error) {
	tasks, err := a.added(ctx, in.Body.Tasks)
	if err != nil {
		return nil, err
	}
	return nil, a.st.AddTasks(ctx, in.Plan, tasks)
}

type cancelPlan struct {
	ByPlanID
	Finally bool `query:"finally" doc:"The caller saw that the tasks of finally run, and stops them. Without it, nothing changes while they run."`
}

func (a *API) cancelPlan(ctx context.Context, in *cancelPlan) (*struct{}, error) {
	if err := a.st.CancelPlan(ctx, in.Plan, in.Finally); err != nil {
		return nil, err
	}
	a.ender.add(in.Plan)
	return nil, nil
}

// mostUnrun is how many clean-ups are named.
const mostUnrun = 100

type taskName struct {
	ID   plan.TaskID `json:"id"`
	Name string      `json:"name"`
}

type unrunAnswer struct {
	Unrun   []taskName `json:"unrun" doc:"The first 100 clean-ups."`
	All     int        `json:"all" doc:"Their number."`
	Running int        `json:"running" doc:"How many running tasks could be cancelled instead of the plan, without clean-ups, and with a foreach task in place of its items. 0 if the plan has on_failure: stop, because clean-ups would not run either."`
}

func (a *API) unrun(ctx context.Context, p *plan.Plan, _ *InPlan) (*unrunAnswer, error) {
	out := &unrunAnswer{Unrun: []taskName{}}
	if p.State != plan.PlanRunning {
		return out, nil
	}
	unrun, running, err := halt.Left(ctx, a.st, *p)
	if err != nil {
		return nil, err
	}
	out.Unrun = api.Each(unrun[:min(len(unrun), mostUnrun)], func(t *plan.Task) taskName { return taskName{ID: t.ID, Name: t.Name} })
	if out.All = len(unrun); p.OnFailure != plan.Stop {
		out.Running = len(running)
	}
	return out, nil
}

type stoppedAnswer struct {
	Stopped int `json:"stopped" doc:"How many tasks were stopped."`
}

func (a *API) cancelRunning(ctx context.Context, in *ByPlanID) (*stoppedAnswer, error) {
	p, err := a.st.Plan(ctx, in.Plan)
	if err != nil {
		return nil, err
	}
	out := &stoppedAnswer{}
	out.Stopped, err = halt.Running(ctx, a.st, &p)
	if errors.Is(err, halt.ErrStops) || errors.Is(err, halt.ErrIdle) {
		return nil, api.NewProblem(http.StatusConflict, "conflict", "%v; cancel the plan", err)
	}
	return out, err
}

type checkSize struct {
	Body struct {
		ID     plan.PlanID     `json:"id,omitzero" doc:"The plan's; without it the tasks are of no plan."`
		Name   string          `json:"name" doc:"The plan's."`
		Params json.RawMessage `json:"params,omitempty" doc:"The plan's, an object."`
		Tasks  []api.NewTask   `json:"tasks,omitempty"`
	}
}

func (a *API) checkSize(ctx context.Context, in *checkSize) (*struct{}, error) {
	auth.Unchanged(ctx)
	tasks, err := domain("tasks", in.Body.Tasks)
	if err != nil {
		return nil, err
	}
	for i := range tasks {
		tasks[i].Plan = in.Body.ID
	}
	if err := rules.CheckPlanParams(len(in.Body.Params)); err != nil {
		return nil, err
	}
	if f, ok := a.st.(store.Fitter); ok {
		err = f.Fits(ctx, plan.Plan{ID: in.Body.ID, Name: in.Body.Name, Params: in.Body.Params}, tasks)
	}
	return nil, err
}

type retryPlan struct {
	ByPlanID
	Body *api.Ask
}

func (a *API) retryPlan(ctx context.Context, in *retryPlan) (*api.RetriedAnswer, error) {
	var ask api.Ask
	if in.Body != nil {
		ask = *in.Body
	}
	return a.retry(ctx, in.Plan, ask, rules.Ask{})
}

// RetryWithBody says which tasks run again, and which of them with other definitions.
type RetryWithBody struct {
	api.Ask
	Replace []api.NewTask   `json:"replace,omitempty" doc:"New definitions, params and queues of some of the tasks that run again. Another task is a conflict."`
	Params  json.RawMessage `json:"params,omitempty" doc:"The plan's params from now on. Each that is another one now is among its choices."`
	Timeout *api.Duration   `json:"timeout,omitempty" doc:"How long the plan may run from now on; 0s: as long as it takes. Without it, the plan keeps its timeout."`

	Choices map[string]rules.Choices          `json:"choices,omitempty" doc:"With params: the choices of the file that they are from, by param. Left out: those of the file of the plan."`
	Found   map[plan.TaskID][]json.RawMessage `json:"found,omitempty" doc:"With lists: compare, the items that are there now of each foreach task over files, by the id of the task. Nodes read such files, and a server does not."`
}

type retryPlanWith struct {
	ByPlanID
	Body RetryWithBody
}

func (a *API) retryPlanWith(ctx context.Context, in *retryPlanWith) (*api.RetriedAnswer, error) {
	replace, err := a.accepted(ctx, "replace", in.Body.Replace)
	if err != nil {
		return nil, err
	}
	if err := cmp.Or(planParams(in.Body.Params), a.checkChosen(ctx, in)); err != nil {
		return nil, err
	}
	if in.Body.Timeout != nil && *in.Body.Timeout < 0 {
		return nil, api.InvalidAt("body.timeout", "it cannot be less than 0; 0s: as long as it takes")
	}
	return a.retry(ctx, in.Plan, in.Body.Ask, rules.Ask{Replace: replace, Params: in.Body.Params, Timeout: (*time.Duration)(in.Body.Timeout), Found: in.Body.Found})
}

// checkChosen refuses params that their file does not let the plan have. The values before may be secret.
func (a *API) checkChosen(ctx context.Context, in *retryPlanWith) error {
	if in.Body.Params == nil {
		return nil
	}
	st := hiding.Of(a.st)
	p, err := st.Plan(ctx, in.Plan)
	if err != nil {
		return err
	}
	choices := in.Body.Choices
	if choices == nil {
		file, err := st.PlanFile(ctx, in.Plan)
		if err != nil {
			return err
		}
		choices = planfile.ChoicesIn(file)
	}
	if name, err := rules.CheckChosen(choices, p.Params, in.Body.Params); err != nil {
		return api.InvalidAt("body.params."+name, "%v", err)
	}
	return nil
}

// retry has tasks run again, and answers with which. with has what the body says besides ask.
func (a *API) retry(ctx context.Context, p plan.PlanID, ask api.Ask, with rules.Ask) (*api.RetriedAnswer, error) {
	with.Tasks, with.Downstream, with.Lists, with.Check = ask.Tasks, ask.Downstream, ask.Lists, ask.Check
	taken, err := a.st.Retry(ctx, p, with)
	if ask.Check {
		auth.Unchanged(ctx)
	} else {
		for _, r := range taken {
			auth.Changed(ctx, r.ID.String())
		}
	}
	return &api.RetriedAnswer{Tasks: api.Each(taken, api.RetriedOf)}, err
}

type deletePlan struct {
	ByPlanID
	Budget int `query:"budget" minimum:"0" maximum:"100000" doc:"The most documents to delete; 0: the server's choice."`
}

func budget(n int) int {
	if n <= 0 {
		return protocol.DefaultBudget
	}
	return n
}

func (a *API) deletePlan(ctx context.Context, in *deletePlan) (*api.LeftAnswer, error) {
	out := &api.LeftAnswer{}
	var err error
	out.More, err = a.st.DeletePlan(ctx, in.Plan, budget(in.Budget))
	if err == nil && !out.More {
		out.Plans = 1
	}
	return out, err
}

type prunePlans struct {
	Body struct {
		Keep   api.Duration `json:"keep,omitempty" doc:"How long a plan without a keep of its own is kept after its end; 0: for ever."`
		Budget int          `json:"budget,omitempty" minimum:"0" maximum:"100000"`
	}
}

func (a *API) prunePlans(ctx context.Context, in *prunePlans) (*api.LeftAnswer, error) {
	if in.Body.Keep < 0 {
		return nil, api.InvalidAt("body.keep", "it cannot be less than 0; it is an age, as in 720h, or 0 for only plans with a keep of their own")
	}
	out := &api.LeftAnswer{}
	var err error
	out.Plans, out.More, err = a.st.Prune(ctx, time.Duration(in.Body.Keep), budget(in.Body.Budget))
	return out, err
}
