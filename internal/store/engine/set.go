package engine

import (
	"context"
	"time"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// A Setter is the unit of a change of a task that waits. T is the task as the driver looked at it.
type Setter[T any] interface {
	Worker

	// TaskToSet looks at the task. It returns the task with its Needs and Params too, whether another
	// call is about to change it, and the present.
	TaskToSet(ctx context.Context, id plan.TaskID) (t T, now plan.Task, busy bool, at time.Time, err error)

	// Set writes the change, if the task is still as it was looked at. Then it settles the task: if
	// the task is not held any more by its instant, nor by parents, the unit queues it. Params that
	// replace others keep the outputs of parents that were delivered.
	Set(ctx context.Context, t T, s *rules.TaskSet) (done bool, err error)
}

// SetTask changes a task as rules.SetTask says.
func SetTask[T any](ctx context.Context, u Setter[T], id plan.TaskID, c *rules.TaskChange) error {
	if err := rules.CheckTaskChange(c); err != nil {
		return err
	}
	for done := false; !done; {
		t, now, busy, at, err := u.TaskToSet(ctx, id)
		if err != nil {
			return err
		}
		s, changes, err := rules.SetTask(&now, busy, c, at)
		if err != nil || !changes {
			return err
		}
		if done, err = u.Set(ctx, t, &s); err != nil {
			return err
		}
	}
	_, err := Work(ctx, u)
	return err
}
