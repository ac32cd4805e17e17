package engine

import (
	"context"
	"fmt"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// A Taken is a task that an instance asks to take, as rules.CheckTake asks.
type Taken struct {
	Task  plan.Task // with ID, Name, Status, Reason, Node, Instance and Cancel
	By    plan.Instance
	Other bool // the task's present owner is a runner
}

// A Taker is the unit of a take.
type Taker[T any] interface {
	Ender[T]
	Worker

	// ToTake looks at the task and at the instances.
	ToTake(ctx context.Context, k *protocol.Take) (t T, v Taken, err error)

	// Take gives the task to the instance with the step that starts it, or nil, if the task is still
	// as it was looked at.
	Take(ctx context.Context, t T, start *rules.Step) (taken bool, err error)

	// Handed returns a taken task as its runner gets it.
	Handed(ctx context.Context, t T, k *protocol.Take) (protocol.ClaimedTask, error)
}

// tries is how often a task that changes meanwhile is looked at again.
const tries = 10

// Take moves a claimed task to another instance. A task that a person cancelled is given back
// instead, and ends by that. write hands do a unit, and keeps what it did unless do returns an error.
func Take[T any](ctx context.Context, k *protocol.Take, write func(do func(Taker[T]) error) error) (claimed protocol.ClaimedTask, err error) {
	var cancelled error
	if err = write(func(u Taker[T]) (err error) {
		claimed, cancelled, err = take(ctx, u, k)
		return err
	}); err == nil {
		err = cancelled
	}
	return claimed, err
}

func take[T any](ctx context.Context, u Taker[T], k *protocol.Take) (claimed protocol.ClaimedTask, cancelled, err error) {
	for range tries {
		t, v, err := u.ToTake(ctx, k)
		if err == nil {
			err = rules.CheckTake(&v.Task, &v.By, v.Other)
		}
		if err != nil {
			return claimed, nil, err
		}
		var start *rules.Step
		if cancelled = rules.CheckTakeCancelled(&v.Task); cancelled == nil && k.Start && v.Task.Status == plan.Claimed {
			step := rules.Started()
			start = &step
		}
		taken, err := u.Take(ctx, t, start)
		switch {
		case err != nil:
			return claimed, nil, err
		case !taken:
			continue
		case cancelled == nil:
			claimed, err = u.Handed(ctx, t, k)
			return claimed, nil, err
		}
		if err = GiveBack(ctx, u, []T{t}); err == nil {
			_, err = Work(ctx, u)
		}
		return claimed, cancelled, err
	}
	return claimed, nil, fmt.Errorf("it changed all the time: %w", plan.ErrConflict)
}
