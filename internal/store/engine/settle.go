package engine

import (
	"context"
	"encoding/json"

	"github.com/seed-1177d267/sluice/internal/rules"
)

// A Settler is a unit that looks at held and queued tasks. T is such a task as the driver looked at
// it.
type Settler[T any] interface {
	// Waiter returns what rules.Settle asks of the task.
	Waiter(t T) *rules.Waiter

	// List returns the items of a foreach task from its list or from its parent's output. It is not
	// asked of one that goes along with others. why says
	// that they cannot be made; the task fails by it. none tells people why there are no items.
	List(ctx context.Context, t T) (items []json.RawMessage, none string, why, err error)

	// Gathered returns the outputs of the items of a foreach task as one list, or nil if the list
	// is so long that readers put it together.
	Gathered(ctx context.Context, t T) (json.RawMessage, error)

	// Deliver gives the task the outputs of its parents. why says that this is impossible; the task
	// fails by it.
	Deliver(ctx context.Context, t T) (why, err error)

	// Step writes the step, if the task is still as it was looked at.
	Step(ctx context.Context, t T, s rules.Step) error

	// Wait writes what a held task waits for from now on: its plan (rules.Ready), an instant
	// (rules.Delay), or its items (rules.Make).
	Wait(ctx context.Context, t T, next rules.Next) error

	// Written writes what Step and Wait gathered.
	Written(ctx context.Context) error
}

// Settle does with each of the tasks as rules.Settle says, and returns how many of them stay as they
// are.
func Settle[T any](ctx context.Context, u Settler[T], tasks []T) (left int, err error) {
	for _, t := range tasks {
		w := u.Waiter(t)
		next, step := rules.Settle(w)
		switch next {
		case rules.Leave:
			left++
			continue
		case rules.Ready, rules.Delay, rules.Make:
			err = u.Wait(ctx, t, next)
		case rules.Gather:
			if step.Output, err = u.Gathered(ctx, t); err == nil {
				err = u.Step(ctx, t, step)
			}
		case rules.Expand:
			err = expand(ctx, u, t, w)
		case rules.Skip:
			err = u.Step(ctx, t, step)
		case rules.Queue:
			err = queue(ctx, u, t, step)
		default:
			err = u.Step(ctx, t, step)
		}
		if err != nil {
			return left, err
		}
	}
	return left, u.Written(ctx)
}

// expand lets a foreach task make its items, or ends the task if there are none to make.
func expand[T any](ctx context.Context, u Settler[T], t T, w *rules.Waiter) error {
	if w.Along.Is {
		return u.Step(ctx, t, rules.ListedAlong(w.Status, &w.Along))
	}
	items, none, why, err := u.List(ctx, t)
	if err != nil {
		return err
	}
	return u.Step(ctx, t, rules.Listed(w.Status, items, why, none))
}

// queue queues a task with the outputs of its parents, or fails the task if it cannot have them.
func queue[T any](ctx context.Context, u Settler[T], t T, s rules.Step) error {
	why, err := u.Deliver(ctx, t)
	if err != nil {
		return err
	}
	if why != nil {
		s = rules.InputFailed(u.Waiter(t).Status, why)
	}
	return u.Step(ctx, t, s)
}
