package v1

import (
	"context"
	"slices"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/failures"
	"github.com/seed-1177d267/sluice/internal/items"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// searches are the routes by which people look for things: by part of a name, by kind of failure. They read what they look through.
func (a *API) searches() {
	const more = " An answer may have fewer than the limit, or none, and still a next: the search is not complete then."
	serve(a, endpoint{
		method: "GET", path: "/search/plans", id: "search-plans", summary: "Find plans by part of their name, newest first", tag: "plans", scope: Read, errors: []int{422},
		doc: "Upper and lower case are the same; name#12 is a run. The answer has no params." + more,
	}, a.searchPlans)
	serve(a, endpoint{
		method: "GET", path: "/plans/{plan}/search", id: "search-tasks", summary: "Find tasks of a plan by part of their name, or by how they failed", tag: "tasks", scope: Read,
		errors: []int{404, 422}, doc: "Upper and lower case are the same." + more,
	}, a.searchTasks)
	serve(a, endpoint{
		method: "GET", path: "/tasks/{task}/children", id: "get-children", summary: "List the children of a task", tag: "tasks", scope: Read, errors: []int{404},
		doc: "In the order of the plan. The server reads the plan for them, up to the limit.",
	}, a.children)
	serve(a, endpoint{
		method: "GET", path: "/events/plans", id: "listen-plans", summary: "Listen to plans", tag: "changes", scope: Read, media: "text/event-stream",
		doc: "The server-sent events of /events with counts: the present counts of the plans that have not ended, and then each change, each second or two.",
	}, func(ctx context.Context, _ *struct{}) (*stream, error) { return a.countPlans(ctx), nil })
}

func (a *API) searchPlans(ctx context.Context, in *struct {
	Text   string      `query:"text" maxLength:"200" doc:"A part of the name."`
	State  string      `query:"state" enum:"submitting,running,succeeded,failed,cancelled,abandoned"`
	Before plan.PlanID `query:"before" doc:"Plans after that one, in the order of the list."`
	Limit  int         `query:"limit" minimum:"0" maximum:"5000" default:"100"`
}) (*api.PlanList, error) {
	p := &page{left: limit(in.Limit), next: 500, atOnce: 500, search: true}
	return p.plans(ctx, a, store.PlanQuery{Before: in.Before, NoParams: true}, in.State, in.Text)
}

func (a *API) searchTasks(ctx context.Context, in *struct {
	InPlan
	Text    string      `query:"text" maxLength:"200" doc:"A part of the name, or an item by its key, as in copy[anna]."`
	State   []string    `query:"state" doc:"Only tasks in one of these states, by word or number; separated by commas, or repeated."`
	Queue   string      `query:"queue" doc:"Only tasks of that queue, by its name or id."`
	Failure string      `query:"failure" pattern:"^[0-9a-f]{16}$" doc:"Only tasks that failed in that way: a kind of /plans/{plan}/failures."`
	Order   string      `query:"order" enum:"id,plan" default:"id" doc:"plan: in the order of its file, with the items of each foreach task after it; id: by id, with items anywhere among the others."`
	Folded  bool        `query:"folded" doc:"With order=plan and neither state, queue nor failure: only items of the foreach tasks that open names."`
	Open    []string    `query:"open" maxItems:"1000" doc:"With folded: foreach tasks, by their ids; separated by commas, or repeated."`
	After   plan.TaskID `query:"after" doc:"Plans after that one, in the order of the list."`
	Limit   int         `query:"limit" minimum:"0" maximum:"5000" default:"100"`
}) (*api.TaskList, error) {
	switch filtered := len(in.State) > 0 || in.Queue != "" || in.Failure != ""; { // what would have no effect
	case in.Folded && in.Order != "plan":
		return nil, api.Invalid("query.folded: it has no effect without order=plan: give both, or neither")
	case in.Folded && filtered:
		return nil, api.Invalid("query.folded: it has no effect with state, queue or failure: leave it out")
	case len(in.Open) > 0 && !in.Folded:
		return nil, api.Invalid("query.open: it has no effect without folded=true: give both, or neither")
	}
	p, err := a.findPlan(ctx, in.Plan)
	if err != nil {
		return nil, err
	}
	states := in.State
	if in.Failure != "" && len(states) == 0 {
		states = failing
	}
	q, keep, err := a.query(ctx, store.TaskQuery{Plan: p.ID}, &TaskFilter{State: states, Queue: in.Queue, After: in.After})
	if err != nil {
		return nil, err
	}
	var tasks reading = &byID{a, q}
	if in.Order == "plan" {
		var fold *folded
		if in.Folded {
			fold = &folded{}
			for _, word := range in.Open {
				id, err := plan.ParseID(word)
				if err != nil {
					return nil, api.Invalid("query.open: %v", err)
				}
				fold.open = append(fold.open, plan.TaskID{ID: id})
			}
		}
		if tasks, err = a.inPlanOrder(ctx, q, fold); err != nil {
			return nil, err
		}
	}
	byKey, err := items.ByKey(ctx, a.st, p.ID, in.Text)
	if err != nil {
		return nil, err
	}
	most := limit(in.Limit)
	onPage := &page{left: most, next: 1000, atOnce: 1000, search: true}
	if in.Text == "" && keep == nil && in.Failure == "" && (in.Order != "plan" || len(q.Statuses) == 0 && q.Queue.IsZero()) {
		onPage = newPage(most, most, most)
	}
	listed, next, err := onPage.tasks(ctx, tasks, func(t *plan.Task) bool {
		named := contains(t.Name, in.Text) || slices.ContainsFunc(byKey, func(k plan.Task) bool { return k.ID == t.ID })
		return (keep == nil || keep(t)) && named && (in.Failure == "" || failures.Of(t).Key() == in.Failure)
	})
	if err != nil {
		return nil, err
	}
	out := &api.TaskList{Next: next}
	out.Tasks, err = a.written(ctx, listed, true)
	return out, err
}

type childrenAnswer struct {
	Tasks []api.Task `json:"tasks"`
	More  bool       `json:"more,omitempty" doc:"There are more than the caller asked for."`
}

func (a *API) children(ctx context.Context, in *struct {
	ByTaskID
	Limit int `query:"limit" minimum:"0" maximum:"5000" default:"100"`
}) (*childrenAnswer, error) {
	found, err := a.st.Tasks(ctx, store.TaskQuery{IDs: []plan.TaskID{in.Task}, Limit: 1})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, api.NewProblem(404, "not_found", "task %s is not there", in.Task)
	}
	out := &childrenAnswer{Tasks: []api.Task{}}
	if found[0].Plan.IsZero() {
		return out, nil
	}
	most := limit(in.Limit)
	tasks, err := a.st.Tasks(ctx, store.TaskQuery{Plan: found[0].Plan, Parent: in.Task, Limit: most + 1})
	if err != nil {
		return nil, err
	}
	if out.More = len(tasks) > most; out.More {
		tasks = tasks[:most]
	}
	out.Tasks, err = a.written(ctx, tasks, false) // an item needs its foreach task's parents, and is named by none
	return out, err
}
