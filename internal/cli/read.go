package cli

import (
	"context"
	"slices"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// someTasks reads up to limit tasks (0: all) that the query selects and keep takes, if it is given, and reports whether there are more.
func someTasks(ctx context.Context, r store.Reader, q store.TaskQuery, limit int, keep func(*plan.Task) bool) (tasks []plan.Task, more bool, err error) {
	for {
		q.Limit = 1000
		if limit > 0 && keep == nil {
			q.Limit = min(q.Limit, limit-len(tasks)+1)
		}
		found, err := r.Tasks(ctx, q)
		if err != nil {
			return nil, false, err
		}
		last := len(found) < q.Limit
		if len(found) > 0 {
			q.After = found[len(found)-1].ID
		}
		if keep != nil {
			found = slices.DeleteFunc(found, func(t plan.Task) bool { return !keep(&t) })
		}
		tasks = append(tasks, found...)
		if limit > 0 && len(tasks) > limit {
			return tasks[:limit], true, nil
		}
		if last {
			return tasks, false, nil
		}
	}
}

// somePlans reads up to limit plans (0: all), newest first, and reports whether there are more.
func somePlans(ctx context.Context, r store.Reader, q store.PlanQuery, limit int) (plans []plan.Plan, more bool, err error) {
	const page = 500
	for {
		q.Limit = page
		if limit > 0 {
			q.Limit = min(page, limit-len(plans)+1)
		}
		found, err := r.Plans(ctx, q)
		if err != nil {
			return nil, false, err
		}
		plans = append(plans, found...)
		if limit > 0 && len(plans) > limit {
			return plans[:limit], true, nil
		}
		if len(found) < q.Limit {
			return plans, false, nil
		}
		q.Before = plans[len(plans)-1].ID
	}
}

func queueNames(ctx context.Context, r store.Reader) (map[plan.QueueID]string, error) {
	queues, err := r.Queues(ctx)
	names := make(map[plan.QueueID]string, len(queues))
	for _, q := range queues {
		names[q.ID] = q.Name
	}
	return names, err
}

// readLog reads the log after the cursor to its present end.
func readLog(ctx context.Context, r store.Reader, id plan.TaskID, after int64) ([]plan.LogEntry, int64, error) {
	const page = 1000
	var all []plan.LogEntry
	for {
		entries, next, err := r.Log(ctx, id, after, page)
		if err != nil {
			return nil, after, err
		}
		all = append(all, entries...)
		after = next
		if len(entries) < page {
			return all, after, nil
		}
	}
}

// tasksOf returns the tasks of a plan, with their needs and params.
func tasksOf(ctx context.Context, r store.Reader, p *plan.Plan) ([]plan.Task, error) {
	return store.AllTasks(ctx, r, store.TaskQuery{Plan: p.ID, Needs: true, Params: true})
}
