package engine

import (
	"cmp"
	"context"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// An Attempt is a claimed or running task, and what its attempt came to.
type Attempt[T any] struct {
	Task   T
	Ending *protocol.Ending // what the node says; nil: the claim is given back or lost
	Step   rules.Step
}

// An Ender is a unit that looks at claimed and running tasks. T is such a task as the driver looked
// at it.
type Ender[T any] interface {
	// ClaimView and LossView return what the rules ask of the task.
	ClaimView(t T) rules.Claim
	LossView(t T) rules.Loss

	// End writes the step of an attempt, with what its ending says besides, if the claim still
	// holds. It may gather writes until Ended.
	End(ctx context.Context, a *Attempt[T]) error

	// Ended writes what End gathered. It returns the attempts to decide about again, whose tasks
	// changed meanwhile and kept their claims, and the tasks whose claims were lost.
	Ended(ctx context.Context) (again []Attempt[T], lost []plan.TaskID, err error)
}

// End applies the endings of these attempts as rules.Ended says. It returns the tasks whose claims
// were lost, and the shortest delay that began; 0: none began.
func End[T any](ctx context.Context, u Ender[T], attempts []Attempt[T]) (lost []plan.TaskID, delay time.Duration, err error) {
	lost, err = end(ctx, u, attempts, func(a *Attempt[T]) rules.Step {
		step := rules.Ended(u.ClaimView(a.Task), a.Ending)
		if step.Delay > 0 {
			delay = cmp.Or(min(delay, step.Delay), step.Delay)
		}
		return step
	})
	return lost, delay, err
}

// GiveBack gives back claims that their instance does not know of.
func GiveBack[T any](ctx context.Context, u Ender[T], tasks []T) error {
	_, err := end(ctx, u, attemptsOf(tasks), func(a *Attempt[T]) rules.Step { return rules.GivenBack(u.ClaimView(a.Task)) })
	return err
}

// Lose takes tasks away from instances that are gone, as rules.Lost says.
func Lose[T any](ctx context.Context, u Ender[T], tasks []T) error {
	_, err := end(ctx, u, attemptsOf(tasks), func(a *Attempt[T]) rules.Step { return rules.Lost(u.LossView(a.Task)) })
	return err
}

func attemptsOf[T any](tasks []T) []Attempt[T] {
	attempts := make([]Attempt[T], len(tasks))
	for i, t := range tasks {
		attempts[i].Task = t
	}
	return attempts
}

// end decides about attempts one by one: an ending that closes a plan counts for those after it.
func end[T any](ctx context.Context, u Ender[T], attempts []Attempt[T], decide func(*Attempt[T]) rules.Step) (lost []plan.TaskID, err error) {
	for len(attempts) > 0 {
		for i := range attempts {
			a := &attempts[i]
			a.Step = decide(a)
			if err := u.End(ctx, a); err != nil {
				return lost, err
			}
		}
		again, refused, err := u.Ended(ctx)
		if err != nil {
			return lost, err
		}
		attempts, lost = again, append(lost, refused...)
	}
	return lost, nil
}
