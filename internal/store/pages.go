package store

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// A TaskReader is the part of a Reader that EachPage, EachTask, AllTasks and TasksByID ask.
type TaskReader interface {
	Tasks(ctx context.Context, q TaskQuery) ([]plan.Task, error)
}

// EachPage calls do with all tasks that the query selects, q.Limit (0: 1,000) at a time, until do
// fails. The last page may be empty.
func EachPage(ctx context.Context, r TaskReader, q TaskQuery, do func([]plan.Task) error) error {
	q.Limit = cmp.Or(q.Limit, 1000)
	for {
		found, err := r.Tasks(ctx, q)
		if err != nil {
			return err
		}
		if err := do(found); err != nil || len(found) < q.Limit {
			return err
		}
		q.After = found[len(found)-1].ID
	}
}

// EachTask is EachPage with one task at a time.
func EachTask(ctx context.Context, r TaskReader, q TaskQuery, do func(*plan.Task) error) error {
	return EachPage(ctx, r, q, func(tasks []plan.Task) error {
		for i := range tasks {
			if err := do(&tasks[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// AllTasks returns all tasks that the query selects.
func AllTasks(ctx context.Context, r TaskReader, q TaskQuery) (tasks []plan.Task, err error) {
	err = EachPage(ctx, r, q, func(page []plan.Task) error {
		tasks = append(tasks, page...)
		return nil
	})
	return tasks, err
}

// TasksByID returns the tasks of some ids, oldest first, each once and with the fields that the query
// asks for. It leaves out deleted tasks.
func TasksByID(ctx context.Context, r TaskReader, q TaskQuery, ids []plan.TaskID) (tasks []plan.Task, err error) {
	ids = slices.Compact(slices.SortedFunc(slices.Values(ids), func(x, y plan.TaskID) int { return bytes.Compare(x.ID[:], y.ID[:]) }))
	for q.IDs = range slices.Chunk(ids, 500) {
		q.Limit = len(q.IDs)
		found, err := r.Tasks(ctx, q)
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, found...)
	}
	return tasks, nil
}

// ParentsOf returns how the parents of a task ended, as Parents of Node does.
func ParentsOf(ctx context.Context, r TaskReader, id plan.TaskID) (parents []plan.Parent, err error) {
	found, err := r.Tasks(ctx, TaskQuery{IDs: []plan.TaskID{id}, Needs: true, Brief: true, Limit: 1})
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("task %s: %w", id, plan.ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	tasks, err := TasksByID(ctx, r, TaskQuery{Brief: true}, found[0].Needs)
	there := rules.ByID(tasks)
	for _, need := range found[0].Needs {
		if p := there[need]; p != nil {
			parents = append(parents, plan.Parent{Name: rules.InputName(p.Key(), !p.Of.IsZero()), State: p.State()})
		}
	}
	return parents, err
}

// OwedOf returns how many finished tasks of a queue are to be handed over to the receivers of its group,
// now or once they are kept no longer. It is 0 for a queue that is not there.
func OwedOf(ctx context.Context, r Reader, id plan.QueueID) (owed int, err error) {
	queues, err := r.Queues(ctx)
	if err != nil {
		return 0, err
	}
	i := slices.IndexFunc(queues, func(q plan.Queue) bool { return q.ID == id })
	if i < 0 || queues[i].Group == "" {
		return 0, nil
	}
	groups, err := r.Groups(ctx)
	if err != nil {
		return 0, err
	}
	for _, roll := range rules.Rolls(groups, queues[i:i+1]) {
		q := TaskQuery{Queue: id, Statuses: slices.Collect(maps.Keys(roll.Limits)), Brief: true}
		if err := EachPage(ctx, r, q, func(tasks []plan.Task) error { owed += len(tasks); return nil }); err != nil {
			return 0, err
		}
	}
	return owed, nil
}

// AllSchedules returns all schedules by name, without the text of their plan files. list returns a page
// of them.
func AllSchedules(ctx context.Context, list func(context.Context, ScheduleQuery) ([]plan.Schedule, error)) (all []plan.Schedule, err error) {
	for q := (ScheduleQuery{Limit: 1000}); ; q.After = all[len(all)-1].Name {
		some, err := list(ctx, q)
		if err != nil {
			return nil, err
		}
		if all = append(all, some...); len(some) < q.Limit {
			return all, nil
		}
	}
}
