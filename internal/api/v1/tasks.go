package v1

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/approve"
	"github.com/seed-1177d267/sluice/internal/auth"
	"github.com/seed-1177d267/sluice/internal/compiler"
	"github.com/seed-1177d267/sluice/internal/explain"
	"github.com/seed-1177d267/sluice/internal/items"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/states"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// ByTaskID is the part of a path that names a task.
type ByTaskID struct {
	Task plan.TaskID `path:"task" doc:"Its id."`
}

func (t *ByTaskID) changed() string { return t.Task.String() }

// TaskFilter selects tasks. A field that is left out selects all.
type TaskFilter struct {
	Name     string      `query:"name" doc:"Only tasks of that name, as in copy or copy[17]; with a plan also items of that key, as in copy[anna] or copy[\"7\"]."`
	Subject  string      `query:"subject" doc:"Only tasks with that subject. Unfinished tasks are found at once; others take a look at all."`
	Prefix   string      `query:"prefix" pattern:"^[0-9a-f]{0,24}$" doc:"Only tasks whose id begins with this."`
	Queue    string      `query:"queue" doc:"Only tasks of that queue, by its name or id."`
	State    []string    `query:"state" doc:"Only tasks in one of these states, by word or number; separated by commas, or repeated."`
	Of       plan.TaskID `query:"of" doc:"Only items of that foreach task, by index."`
	Parent   plan.TaskID `query:"parent" doc:"With a plan: only its tasks that need this task."`
	NoItems  bool        `query:"no_items" doc:"No items of foreach tasks."`
	Reached  bool        `query:"reached" doc:"Only running tasks that reported progress."`
	Retried  bool        `query:"retried" doc:"Only tasks with more than one attempt."`
	Troubled bool        `query:"troubled" doc:"Only tasks that failed, were stopped or lost, or had an attempt that was, however they ended."`
	Began    bool        `query:"began" doc:"Only tasks that ran: that have ran, run, or have ended and were not cancelled."`
	IDs      []string    `query:"ids" maxItems:"1000" doc:"Only these; separated by commas, or repeated."`
	After    plan.TaskID `query:"after" doc:"Plans after that one, in the order of the list."`
	Newest   bool        `query:"newest" doc:"Newest first; else oldest first."`
	With     []string    `query:"with" enum:"needs,params,output,item_label" doc:"Further fields of each; separated by commas, or repeated."`
	Limit    int         `query:"limit" minimum:"0" maximum:"5000" default:"100"`
}

func (a *API) tasks() {
	const tag = "tasks"
	serve(a, endpoint{method: "GET", path: "/plans/{plan}/tasks", id: "list-plan-tasks", summary: "List the tasks of a plan", tag: tag, scope: Read, errors: []int{404, 422}, doc: fewer},
		ofPlan(a, func(ctx context.Context, p *plan.Plan, in *struct {
			InPlan
			TaskFilter
		}) (*api.TaskList, error) {
			return a.listTasks(ctx, store.TaskQuery{Plan: p.ID}, &in.TaskFilter)
		}))
	serve(a, endpoint{method: "GET", path: "/tasks", id: "list-tasks", summary: "List tasks of all plans, and of none", tag: tag, scope: Read, errors: []int{404, 422}, doc: fewer},
		func(ctx context.Context, in *struct {
			TaskFilter
			Plan   plan.PlanID `query:"plan" doc:"Only tasks of that plan, by its id; none if the plan does not exist."`
			NoPlan bool        `query:"no_plan" doc:"Only tasks of no plan."`
		}) (*api.TaskList, error) {
			return a.listTasks(ctx, store.TaskQuery{Plan: in.Plan, NoPlan: in.NoPlan}, &in.TaskFilter)
		})
	serve(a, endpoint{
		method: "POST", path: "/tasks", id: "add-plain-tasks", summary: "Add tasks of no plan", tag: tag, scope: Submit, body: tasksBody, status: 204, errors: []int{404, 409, 413, 422},
	}, func(ctx context.Context, in *struct{ Body newTasks }) (*struct{}, error) {
		tasks, err := a.added(ctx, in.Body.Tasks)
		if err != nil {
			return nil, err
		}
		for i := range tasks {
			auth.Changed(ctx, tasks[i].ID.String())
		}
		return nil, a.st.AddTasks(ctx, plan.PlanID{}, tasks)
	})
	serve(a, endpoint{
		method: "GET", path: "/tasks/{task}", id: "get-task", summary: "Read a task", tag: tag, scope: Read, errors: []int{404},
		doc: "With its needs, params and output. An output that is too large is left out, and output_left_out says so.",
	}, a.getTask)
	serve(a, endpoint{
		method: "PATCH", path: "/tasks/{task}", id: "set-task", summary: "Change a task that waits", tag: tag, scope: Operate, body: tasksBody, errors: []int{404, 409, 412, 413, 422},
		doc: "Only a task of no plan that is held or queued. Fields that are left out stay. A task that a " +
			"node has claimed is a conflict, and nothing of it changes. A queued task with a not_before to " +
			"come is held until then. A held task whose not_before has passed is queued, if its parents let " +
			"it run. A task that is so already stays as it is. With If-Match, only if nothing of the task " +
			"changed since that ETag.",
	}, a.setTask)
	serve(a, endpoint{method: "GET", path: "/tasks/{task}/inputs", id: "get-inputs", summary: "Read the outputs of its parents", tag: tag, scope: Read, errors: []int{404, 422}}, a.inputs)
	serve(a, endpoint{method: "GET", path: "/tasks/{task}/parents", id: "get-parents", summary: "Read how its parents ended", tag: tag, scope: Read, errors: []int{404}}, a.parents)
	serve(a, endpoint{method: "GET", path: "/tasks/{task}/explain", id: "explain-task", summary: "Explain why a task does not run now", tag: tag, scope: Read, errors: []int{404}}, a.explain)
	serve(a, endpoint{method: "GET", path: "/tasks/{task}/log", id: "get-log", summary: "Read the log of a task", tag: tag, scope: Read, errors: []int{404}}, a.getLog)
	serve(a, endpoint{
		method: "GET", path: "/tasks/{task}/{stream}", id: "get-result", summary: "Read the complete output on one stream", tag: tag, scope: Read, errors: []int{404, 501},
		media: "application/octet-stream",
		doc:   "For tasks of no plan, whose output the store keeps for programs that speak Disbatch. Sent as it is read.",
	}, a.getResult)
	serve(a, endpoint{method: "POST", path: "/tasks/{task}/cancel", id: "cancel-task", summary: "Cancel a task", tag: tag, scope: Operate, status: 204, errors: []int{404, 409}},
		func(ctx context.Context, in *ByTaskID) (*struct{}, error) { return nil, a.st.CancelTask(ctx, in.Task) })
	serve(a, endpoint{
		method: "GET", path: "/approvals", id: "list-approvals", summary: "List the tasks that wait for an answer", tag: tag, scope: Read,
		doc: "Of all plans, the longest waiting first. detail is the question, and started says when it was asked. " +
			"A question whose time is over is left out.",
	}, a.approvals)
	serve(a, endpoint{
		method: "POST", path: "/tasks/{task}/approval", id: "answer-task", summary: "Approve or reject what a task asks", tag: tag, scope: Approve, status: 204, errors: []int{404, 409, 422},
		doc: "For a task with approve that waits for a person. approve: true ends it as succeeded, and " +
			"false as failed. An answer to an earlier question, or a second one, is a conflict that says " +
			"who was first.",
	}, a.answer)
	serve(a, endpoint{
		method: "POST", path: "/tasks/retry", id: "retry-plain-tasks", summary: "Retry tasks of no plan", tag: tag, scope: Operate, body: tasksBody, errors: []int{404, 409, 422},
	}, func(ctx context.Context, in *struct{ Body api.Ask }) (*api.RetriedAnswer, error) {
		return a.retry(ctx, plan.PlanID{}, in.Body, rules.Ask{})
	})
	serve(a, endpoint{
		method: "POST", path: "/tasks/retry-with", id: "retry-plain-tasks-with", summary: "Retry tasks of no plan with other definitions", tag: tag, scope: Submit,
		body: tasksBody, errors: []int{404, 409, 422},
	}, func(ctx context.Context, in *struct{ Body RetryWithBody }) (*api.RetriedAnswer, error) {
		replace, err := a.accepted(ctx, "replace", in.Body.Replace)
		if err != nil {
			return nil, err
		}
		return a.retry(ctx, plan.PlanID{}, in.Body.Ask, rules.Ask{Replace: replace})
	})
}

func (a *API) approvals(ctx context.Context, _ *struct{}) (*api.ApprovalList, error) {
	asked, err := approve.Waiting(ctx, a.st, plan.PlanID{})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(asked, func(x, y plan.Task) int { return x.Started.Compare(y.Started) })
	out := new(api.ApprovalList)
	out.Tasks, err = a.written(ctx, asked, false)
	return out, err
}

func (a *API) answer(ctx context.Context, in *struct {
	ByTaskID
	Body api.AnswerBody
},
) (*struct{}, error) {
	t, err := a.st.Task(ctx, in.Task)
	if err != nil {
		return nil, err
	}
	answer := rules.Answer{Approve: in.Body.Approve, Note: in.Body.Note, Asked: in.Body.Asked, By: submitter(ctx)}
	return nil, approve.Answer(ctx, a.st, &t, answer)
}

// query reads a filter into a query that names the plan already.
func (a *API) query(ctx context.Context, q store.TaskQuery, f *TaskFilter) (store.TaskQuery, func(*plan.Task) bool, error) {
	q.Name, q.Subject, q.Prefix, q.Of, q.Parent, q.NoItems, q.After, q.Newest = f.Name, f.Subject, f.Prefix, f.Of, f.Parent, f.NoItems, f.After, f.Newest
	q.Reached, q.Retried, q.Troubled, q.Began = f.Reached, f.Retried, f.Troubled, f.Began
	if !q.Parent.IsZero() && q.Plan.IsZero() {
		return q, nil, api.Invalid("query.parent: name the plan, too, of which tasks that need %s are wanted", q.Parent)
	}
	for _, w := range f.IDs {
		id, err := plan.ParseID(w)
		if err != nil {
			return q, nil, api.Invalid("query.ids: %v", err)
		}
		q.IDs = append(q.IDs, plan.TaskID{ID: id})
	}
	if !q.Plan.IsZero() && len(q.IDs) == 0 && f.Name != "" {
		found, err := items.ByKey(ctx, a.st, q.Plan, f.Name)
		if err != nil {
			return q, nil, err
		}
		for i := range found {
			q.Name, q.IDs = "", append(q.IDs, found[i].ID)
		}
	}
	for _, w := range f.With {
		q.Needs, q.Params, q.Output = q.Needs || w == "needs", q.Params || w == "params", q.Output || w == "output"
	}
	var keep func(*plan.Task) bool
	if len(f.State) > 0 {
		var err error
		if q.Statuses, keep, err = states.Parse(f.State); err != nil {
			return q, nil, api.Invalid("query.state: %v", err)
		}
	}
	if f.Queue == "" {
		return q, keep, nil
	}
	queue, err := a.queueOfTasks(ctx, f.Queue)
	q.Queue = queue.ID
	return q, keep, err
}

// queueOfTasks is findQueue for a condition on tasks. Tasks of no plan outlive their queue, which its id
// still names.
func (a *API) queueOfTasks(ctx context.Context, word string) (plan.Queue, error) {
	q, err := a.findQueue(ctx, word)
	if id, bad := plan.ParseID(word); errors.Is(err, plan.ErrNotFound) && bad == nil {
		return plan.Queue{ID: plan.QueueID{ID: id}, Name: word}, nil
	}
	return q, err
}

func (a *API) listTasks(ctx context.Context, q store.TaskQuery, f *TaskFilter) (*api.TaskList, error) {
	q, keep, err := a.query(ctx, q, f)
	if err != nil {
		return nil, err
	}
	most := limit(f.Limit)
	page := newPage(most, most, most)
	if q.Params || q.Output {
		page = newPage(tasksAtOnce, tasksAtOnce, most)
	}
	listed, next, err := page.tasks(ctx, &byID{a, q}, func(t *plan.Task) bool { return keep == nil || keep(t) })
	if err != nil {
		return nil, err
	}
	out := &api.TaskList{Next: next}
	out.Tasks, err = a.written(ctx, listed, slices.Contains(f.With, "item_label"))
	return out, err
}

// written is tasks as they are sent, with what items are for if that is wanted: it takes a look at the params of each.
func (a *API) written(ctx context.Context, tasks []plan.Task, labelled bool) ([]api.Task, error) {
	names, err := a.queueNames(ctx)
	if err != nil {
		return nil, err
	}
	var labels items.Values
	if labelled {
		if labels, err = items.ReadKeys(ctx, a.st, tasks); err != nil {
			return nil, err
		}
	}
	return api.Each(tasks, func(t *plan.Task) api.Task {
		w := api.TaskOf(t, names[t.Queue])
		w.ItemLabel = labels.Label(t.ID, ellipsis)
		return w
	}), nil
}

// ellipsis replaces the end of a label that is too long.
const ellipsis = "…"

type taskAnswer struct {
	ETag string `header:"ETag"`
	Body api.TaskAnswer
}

func (a *API) getTask(ctx context.Context, in *ByTaskID) (*taskAnswer, error) {
	t, err := a.st.Task(ctx, in.Task)
	out := &taskAnswer{ETag: api.TaskTag(t.Modified)}
	if errors.Is(err, plan.ErrTooMuchOutput) {
		out.Body.OutputLeftOut, err = err.Error(), nil
	}
	if err != nil {
		return nil, err
	}
	shown, err := a.written(ctx, []plan.Task{t}, true)
	if err != nil {
		return nil, err
	}
	out.Body.Task = shown[0]
	return out, nil
}

func (a *API) setTask(ctx context.Context, in *struct {
	ByTaskID
	IfMatch IfMatch `header:"If-Match"`
	Body    api.TaskChange
}) (*taskAnswer, error) {
	c := in.Body.Domain()
	if n := in.IfMatch.edition(); n != 0 {
		c.Modified = time.Unix(0, n).UTC()
	}
	if err := a.checkTaskChange(ctx, in.Task, &c); err != nil {
		return nil, err
	}
	err := a.st.SetTask(ctx, in.Task, c)
	if errors.Is(err, plan.ErrConflict) && !c.Modified.IsZero() {
		t, unread := a.st.Task(ctx, in.Task)
		if unread == nil && rules.CheckSetTask(&t, false) == nil {
			err = api.NewProblem(http.StatusPreconditionFailed, api.CodePrecondition, "%v", err)
		}
	}
	if err != nil {
		return nil, err
	}
	return a.getTask(ctx, &in.ByTaskID)
}

// checkTaskChange refuses a change that no task can take, or not this one, and params that the caller
// may not give.
func (a *API) checkTaskChange(ctx context.Context, id plan.TaskID, c *rules.TaskChange) error {
	if err := checkChange(ctx, c, "body", "task "+id.String()+" does"); err != nil || c.Params == nil {
		return err
	}
	tasks, err := a.st.Tasks(ctx, store.TaskQuery{IDs: []plan.TaskID{id}, Limit: 1})
	if err != nil {
		return err
	}
	return a.checkParams(ctx, tasks, c, "body")
}

// checkChange refuses a change that no task can take, and params that the caller may not give. at is
// the place of the change, and they say what the params are of.
func checkChange(ctx context.Context, c *rules.TaskChange, at, they string) error {
	d := plan.Definition{Retry: plan.Retry{Attempts: c.Attempts}}
	if c.Subject != nil {
		d.Subject = *c.Subject
	}
	if c.Timeout != nil {
		d.Timeout = *c.Timeout
	}
	if p := compiler.CheckDefinition(&d); p != nil {
		return api.InvalidAt(at+"."+cmp.Or(map[string]string{"retry": "attempts"}[p.Key], p.Key), "%s", p.Message)
	}
	if c.NotBefore != nil {
		if err := api.CheckTime(*c.NotBefore); err != nil {
			return api.InvalidAt(at+".not_before", "%v", err)
		}
	}
	if c.Params == nil {
		return nil
	}
	if !may(ctx, Submit) {
		return api.NewProblem(http.StatusForbidden, api.CodeForbidden, "params change what %s, which needs the scope submit", they)
	}
	return object(at+".params", c.Params)
}

// checkParams asks the plugins of tasks whether they accept the params of a change.
func (a *API) checkParams(ctx context.Context, tasks []plan.Task, c *rules.TaskChange, at string) error {
	tasks = slices.Clone(tasks)
	for i := range tasks {
		tasks[i].Params, tasks[i].Template = c.Params, c.Template
	}
	return a.checkRunnable(ctx, tasks, func(_ int, name string) string { return paramAt(at, name) })
}

func (a *API) inputs(ctx context.Context, in *ByTaskID) (*api.InputsAnswer, error) {
	found, err := a.st.Inputs(ctx, in.Task)
	return &api.InputsAnswer{Inputs: api.Each(found, api.InputOf)}, err
}

func (a *API) parents(ctx context.Context, in *ByTaskID) (*api.ParentsAnswer, error) {
	found, err := a.st.Parents(ctx, in.Task)
	return &api.ParentsAnswer{Parents: api.Each(found, api.ParentOf)}, err
}

type explainAnswer struct {
	Reasons []api.Reason `json:"reasons" doc:"From the task to the cause that it waits for in the end."`
}

func (a *API) explain(ctx context.Context, in *ByTaskID) (*explainAnswer, error) {
	links, err := explain.Task(ctx, a.st, in.Task)
	if err != nil {
		return nil, err
	}
	labels, err := items.ReadKeys(ctx, a.st, api.Each(links, func(l *explain.Link) plan.Task { return l.Task }))
	if err != nil {
		return nil, err
	}
	return &explainAnswer{Reasons: api.Each(links, func(l *explain.Link) api.Reason { return reasonOf(ctx, l, labels) })}, nil
}

// reasonOf writes a link of an explanation.
func reasonOf(ctx context.Context, l *explain.Link, labels items.Values) api.Reason {
	return api.Reason{
		ID: l.Task.ID, Name: l.Task.Name, ItemLabel: labels.Label(l.Task.ID, ellipsis), State: l.Task.State(), Status: l.Task.Status, Why: l.Why, Do: placeOf(ctx).Command(l.Do),
	}
}

type getLog struct {
	ByTaskID
	After int64 `query:"after" minimum:"0" doc:"The cursor of an earlier answer; 0: from the start."`
	Limit int   `query:"limit" minimum:"0" maximum:"5000" default:"1000"`
}

func (a *API) getLog(ctx context.Context, in *getLog) (*api.LogAnswer, error) {
	entries, next, err := a.st.Log(ctx, in.Task, in.After, limit(in.Limit))
	return &api.LogAnswer{Entries: api.Each(entries, api.LogEntryOf), Next: next}, err
}

func (a *API) getResult(ctx context.Context, in *struct {
	ByTaskID
	Stream string `path:"stream" enum:"stdout,stderr"`
}) (*stream, error) {
	kept, ok := a.st.(store.Results)
	if !ok {
		return nil, api.NewProblem(http.StatusNotImplemented, api.CodeUnsupported, "this store does not keep what tasks print as a whole; their logs are at %s/tasks/ID/log", api.Root)
	}
	which := plan.Stdout
	if in.Stream == "stderr" {
		which = plan.Stderr
	}
	r, size, err := kept.OpenResult(ctx, in.Task, which)
	if err != nil {
		return nil, err
	}
	return &stream{func(w http.ResponseWriter) {
		defer r.Close()
		w.Header().Set("Content-Type", "application/octet-stream") // whatever a task printed, no browser is to take it for a page
		w.Header().Set(api.SizeHeader, strconv.FormatInt(size, 10))
		if _, err := io.Copy(w, r); err != nil && ctx.Err() == nil {
			a.log.Warn("a result could not be read to its end", "task", in.Task, "error", err)
			panic(http.ErrAbortHandler) // the client is to see that it is cut
		}
	}}, nil
}
