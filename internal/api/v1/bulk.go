package v1

import (
	"context"
	"errors"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/auth"
	"github.com/seed-1177d267/sluice/internal/bulk"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// bulk adds the routes for tasks of no plan that a filter chooses.
func (a *API) bulk() {
	const portions = "Makes one portion, of at most 1,000 tasks of no plan: continue with its next as after, " +
		"until there is none. A filter without a condition is invalid. A task that is not any more as it was " +
		"chosen is left out, and counted."
	for _, e := range []struct {
		what rules.Bulk
		doc  string
	}{
		{rules.BulkCancel, "Tasks that a node has are stopped by it."},
		{rules.BulkRetry, "Only the chosen tasks run again, and not what is below them."},
	} {
		serve(a, endpoint{
			method: "POST", path: "/tasks/matching/" + string(e.what), id: string(e.what) + "-matching-tasks", tag: "tasks", scope: Operate, errors: []int{404, 422},
			summary: map[rules.Bulk]string{rules.BulkCancel: "Cancel tasks by a filter", rules.BulkRetry: "Retry tasks by a filter"}[e.what], doc: portions + " " + e.doc,
		}, func(ctx context.Context, in *struct{ Body api.BulkOrder }) (*api.BulkAnswer, error) {
			return a.portion(ctx, &bulk.Order{What: e.what}, &in.Body)
		})
	}
	serve(a, endpoint{
		method: "POST", path: "/tasks/matching/set", id: "set-matching-tasks", summary: "Change tasks that wait by a filter", tag: "tasks", scope: Operate, body: tasksBody,
		errors: []int{404, 413, 422}, doc: portions + " The change is as for one task; params need the scope submit.",
	}, func(ctx context.Context, in *struct{ Body setMatching }) (*api.BulkAnswer, error) {
		o := &bulk.Order{What: rules.BulkSet, Change: in.Body.Change.Domain()}
		if err := checkChange(ctx, &o.Change, "body.change", "tasks do"); err != nil {
			return nil, err
		}
		if o.Change.Params != nil {
			o.Accept = func(ctx context.Context, tasks []plan.Task) error {
				return a.checkParams(ctx, tasks, &o.Change, "body.change")
			}
		}
		if !in.Body.Check && o.Change.Empty() {
			return nil, api.InvalidAt("body.change", "it changes nothing; give not_before, params, attempts, timeout or subject")
		}
		return a.portion(ctx, o, &in.Body.BulkOrder)
	})
}

// setMatching is a portion of a change.
type setMatching struct {
	api.BulkOrder
	Change api.TaskChange `json:"change,omitzero" doc:"The change of each task."`
}

// portion makes a portion. The audit log has the tasks that it changed, even if it failed half-way.
func (a *API) portion(ctx context.Context, o *bulk.Order, in *api.BulkOrder) (*api.BulkAnswer, error) {
	o.Filter, o.Check, o.After = in.Filter.Domain(), in.Check, in.After
	if in.Filter.Queue != "" {
		q, err := a.queueOfTasks(ctx, in.Filter.Queue)
		if err != nil {
			return nil, err
		}
		o.Filter.Queue, in.Filter.Queue = q.ID, q.Name
	}
	auth.Chosen(ctx, in.Filter.String())
	o.Changed = func(id plan.TaskID) { auth.Changed(ctx, id.String()) }
	done, err := bulk.Do(ctx, a.st, o)
	if err == nil && done.Changed == 0 {
		auth.Unchanged(ctx)
	}
	var wrong *rules.FilterError
	switch {
	case errors.As(err, &wrong) && wrong.Condition == bulk.After:
		err = api.InvalidAt("body.after", "%v", err)
	case errors.As(err, &wrong):
		err = api.InvalidAt("body.filter."+wrong.Condition, "%v", err)
	case errors.Is(err, rules.ErrNoCondition):
		err = api.InvalidAt("body.filter", "%v", err)
	}
	if err != nil {
		return nil, err
	}
	return &api.BulkAnswer{Matched: done.Matched, Changed: done.Changed, Stopping: done.Active, LeftOut: done.LeftOut, Next: done.Next}, nil
}
