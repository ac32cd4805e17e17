package engine

import (
	"context"
	"fmt"

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
	ToTake(ctx context.Context, k *plan.Take) (t T, v Taken, err error)

	// Take gives the task to the instance, and starts it if start is true, if the task is still as
	// it was looked at.
	Take(ctx context.Context, t T, start bool) (taken bool, err error)

	// Handed returns a taken task as its runner gets it.
	Handed(ctx context.Context, t T, k *plan.Take) (plan.ClaimedTask, error)
}

// tries is how often a task that changes meanwhile is looked at again.
const tries = 10

// Take moves a claimed task to another instance. A task that a person cancelled is given back
// instead, and ends by that: the error is then Written.
func Take[T any](ctx context.Context, u Taker[T], k *plan.Take) (claimed plan.ClaimedTask, err error) {
	for range tries {
		t, v, err := u.ToTake(ctx, k)
		if err == nil {
			err = rules.CheckTake(&v.Task, &v.By, v.Other)
		}
		if err != nil {
			return claimed, err
		}
		cancelled := rules.CheckTakeCancelled(&v.Task)
		taken, err := u.Take(ctx, t, k.Start && cancelled == nil)
		switch {
		case err != nil:
			return claimed, err
		case !taken:
			continue
		case cancelled == nil:
			return u.Handed(ctx, t, k)
		}
		if err := GiveBack(ctx, u, []T{t}); err != nil {
			return claimed, err
		}
		if _, err := Work(ctx, u); err != nil {
			return claimed, err
		}
		return claimed, Written{cancelled}
	}
	return claimed, fmt.Errorf("it changed all the time: %w", plan.ErrConflict)
}

// Written is an error of a call whose unit is to be written all the same.
type Written struct{ Err error }

func (w Written) Error() string { return w.Err.Error() }

// Unwrap returns the error.
func (w Written) Unwrap() error { return w.Err }
