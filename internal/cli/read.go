package cli

import (
	"context"
	"slices"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// someTasks reads up to limit tasks (0: all) that the query selects and keep takes, if it is given, and reports whether there are more.
func someTasks(ctx context.Context, r store.Reader, q store.TaskQuery, limit int, keep func(*plan.Task) bool) ([]plan.Task, bool, error) {
	return some(limit, 1000, keep, func(most int) ([]plan.Task, error) {
		q.Limit = most
		found, err := r.Tasks(ctx, q)
		if len(found) > 0 {
			q.After = found[len(found)-1].ID
		}
		return found, err
	})
}

// somePlans reads up to limit plans (0: all), newest first, and reports whether there are more.
func somePlans(ctx context.Context, r store.Reader, q store.PlanQuery, limit int) ([]plan.Plan, bool, error) {
	return some(limit, 500, nil, func(most int) ([]plan.Plan, error) {
		q.Limit = most
		found, err := r.Plans(ctx, q)
		if len(found) > 0 {
			q.Before = found[len(found)-1].ID
		}
		return found, err
	})
}

// some reads pages until it has so many of what keep takes, and reports whether there are more.
func some[T any](limit, page int, keep func(*T) bool, read func(most int) ([]T, error)) (all []T, more bool, err error) {
	for {
		most := page
		if limit > 0 && keep == nil {
			most = min(page, limit-len(all)+1)
		}
		found, err := read(most)
		if err != nil {
			return nil, false, err
		}
		last := len(found) < most
		if keep != nil {
			found = slices.DeleteFunc(found, func(t T) bool { return !keep(&t) })
		}
		if all = append(all, found...); limit > 0 && len(all) > limit {
			return all[:limit], true, nil
		}
		if last {
			return all, false, nil
		}
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

// queueOf returns the name of the queue of a task, or the id of one that is gone: a filter takes both.
func queueOf(t *plan.Task, names map[plan.QueueID]string) string {
	if name, there := names[t.Queue]; there || t.Queue.IsZero() {
		return name
	}
	return t.Queue.String()
}

// eachPage calls do with the pages of a log from the cursor to its present end, and moves the cursor.
func eachPage(ctx context.Context, r store.Reader, id plan.TaskID, cursor *int64, do func([]plan.LogEntry) error) error {
	const page = 1000
	for {
		entries, next, err := r.Log(ctx, id, *cursor, page)
		if err != nil {
			return err
		}
		*cursor = next
		if err := do(entries); err != nil || len(entries) < page {
			return err
		}
	}
}

// readLog reads the log after the cursor to its present end.
func readLog(ctx context.Context, r store.Reader, id plan.TaskID, after int64) (all []plan.LogEntry, next int64, err error) {
	next = after
	err = eachPage(ctx, r, id, &next, func(entries []plan.LogEntry) error {
		all = append(all, entries...)
		return nil
	})
	return all, next, err
}

// tasksOf returns the tasks of a plan, with their needs and params.
func tasksOf(ctx context.Context, r store.Reader, p *plan.Plan) ([]plan.Task, error) {
	return store.AllTasks(ctx, r, store.TaskQuery{Plan: p.ID, Needs: true, Params: true})
}
