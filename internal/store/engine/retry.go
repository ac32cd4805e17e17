package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-1177d267/sluice/internal/refusal"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// A Retrier is a unit that makes one retry.
type Retrier interface {
	// Begin asks check of the plan of the retry, if it is one of a plan. Begin returns plan.ErrNotFound for a plan that is not there or is being deleted,
	// and a Halfway if another retry has not ended.
	Begin(ctx context.Context, check RetryCheck) error

	// Skeleton returns what rules.SelectRetry reads of the tasks of the plan, with Queue, Expanded
	// and Items. Without a plan, it returns those of the named tasks that are of no plan. busy are
	// tasks that rules.CheckRetried refuses therefore.
	Skeleton(ctx context.Context, named []plan.TaskID) (tasks []plan.Task, busy map[plan.TaskID]rules.Busy, err error)

	// Queues returns which queues there are.
	Queues(ctx context.Context) (map[plan.QueueID]bool, error)

	// Below asks check of the unfinished items and children of the selection. A driver may leave held
	// tasks to Take.
	Below(ctx context.Context, s *Selection, check BelowCheck) error

	// Take opens the plan by reopen at the present, takes the tasks back by Retake, and looks at these tasks and those
	// below. It takes all of them back or, if one has changed since Skeleton, none: plan.ErrConflict or
	// plan.ErrPlanActive.
	Take(ctx context.Context, s *Selection, reopen func(p *plan.Plan, params json.RawMessage, at time.Time)) error
}

// A RetryCheck asks whether a plan may be retried. stored is the number of its stored tasks. other is
// what rules.CheckOverlap asks about; a driver need not look for it if the plan allows overlap.
type RetryCheck func(p *plan.Plan, stored int, other *plan.Plan) error

// A BelowCheck asks whether a task is in the way of a retry that takes one above it.
type BelowCheck func(t *plan.Task, decided bool) error

// A Retaker is a unit that makes a decided retry.
type Retaker[T any] interface {
	// TakenBack returns what rules.Retake asks of the task.
	TakenBack(t T) rules.TakenBack

	// Step writes the step, if the task is still as the retry has it.
	Step(ctx context.Context, t T, s rules.Step) error
}

// Retake takes these tasks of a decided retry back.
func Retake[T any](ctx context.Context, u Retaker[T], tasks []T) error {
	for _, t := range tasks {
		if err := u.Step(ctx, t, rules.Retake(u.TakenBack(t))); err != nil {
			return err
		}
	}
	return nil
}

// A Retaken is a task that a retry takes back.
type Retaken struct {
	*plan.Task            // as the skeleton has it
	With       *plan.Task // replaces its definition, params and queue; mostly nil
	KeepsRan   bool       // as rules.Retried.Ran has it
	Remakes    bool       // it drops its items, and makes new ones when its parents have finished
	Goes       bool       // it is one of these items
}

// A Selection is what a retry takes, children first.
type Selection struct {
	Tasks []Retaken
	Taken map[plan.TaskID]bool
}

// A Halfway is the error of a call that finds a retry in progress. Finish ends that one.
type Halfway struct{ Finish func(context.Context) error }

func (*Halfway) Error() string { return "another retry is being made" }

// Past calls do again as long as it finds a retry in progress, which it ends.
func Past(ctx context.Context, do func() error) error {
	for {
		err := do()
		var retry *Halfway
		if !errors.As(err, &retry) {
			return err
		}
		if err := retry.Finish(ctx); err != nil {
			return err
		}
	}
}

// Retry takes the tasks back that rules.SelectRetry chooses, and returns them. attempt hands do a unit.
func Retry(ctx context.Context, id plan.PlanID, ask *rules.Ask, attempt func(do func(Retrier) error) error) (taken []rules.Retried, err error) {
	if id.IsZero() && len(ask.Tasks) == 0 {
		return nil, fmt.Errorf("retry: no task is named: %w", plan.ErrNotFound)
	}
	err = Past(ctx, func() error {
		return attempt(func(u Retrier) (err error) {
			taken, err = retry(ctx, u, ask)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return taken, nil
}

func retry(ctx context.Context, u Retrier, ask *rules.Ask) ([]rules.Retried, error) {
	err := u.Begin(ctx, func(p *plan.Plan, stored int, other *plan.Plan) error {
		if err := rules.CheckRetry(p, stored); err != nil || !p.State.Ended() {
			return err
		}
		return rules.CheckOverlap(p, other)
	})
	if err != nil {
		return nil, err
	}
	tasks, busy, err := u.Skeleton(ctx, ask.Tasks)
	if err != nil {
		return nil, err
	}
	chosen, err := rules.SelectRetry(withoutForeach(tasks, ask.Replace), ask.Tasks, ask.Downstream)
	if err != nil {
		return nil, err
	}
	queues, err := u.Queues(ctx)
	if err != nil {
		return nil, err
	}
	s, err := choose(tasks, chosen, ask.Replace, func(t *Retaken) error {
		return rules.CheckRetried(t.Task, busy[t.ID], t.With, queues)
	})
	if err != nil {
		return nil, err
	}
	err = u.Below(ctx, s, func(t *plan.Task, decided bool) error {
		if s.Taken[t.ID] {
			return nil
		}
		return rules.CheckBelow(t, decided)
	})
	if err == nil && !ask.Check {
		err = u.Take(ctx, s, rules.Reopen)
	}
	return chosen, err
}

// withoutForeach returns the tasks as SelectRetry is to see them: a task that the retry leaves without a foreach
// loses its items, and so do the tasks that go along with it.
func withoutForeach(tasks, replace []plan.Task) []plan.Task {
	loses := map[plan.TaskID]bool{}
	for i := range replace {
		loses[replace[i].ID] = replace[i].Foreach == nil
	}
	out := slices.Clone(tasks)
	for i := range out {
		out[i].Expanded = out[i].Expanded && !loses[out[i].ID]
	}
	return out
}

// choose gathers what is known of the chosen tasks, and finds the foreach tasks that make their items again, and these items.
func choose(tasks []plan.Task, chosen []rules.Retried, replace []plan.Task, check func(*Retaken) error) (*Selection, error) {
	there, with := make(map[plan.TaskID]*plan.Task, len(tasks)), make(map[plan.TaskID]*plan.Task, len(replace))
	for i := range tasks {
		there[tasks[i].ID] = &tasks[i]
	}
	for i := range replace {
		with[replace[i].ID] = &replace[i]
	}
	s := &Selection{make([]Retaken, len(chosen)), make(map[plan.TaskID]bool, len(chosen))}
	for i, c := range chosen {
		s.Tasks[i], s.Taken[c.ID] = Retaken{Task: there[c.ID], With: with[c.ID], KeepsRan: c.Ran}, true
		if err := check(&s.Tasks[i]); err != nil {
			return nil, err
		}
	}
	for i := range replace {
		if t := &replace[i]; !s.Taken[t.ID] {
			return nil, refusal.New(plan.ErrConflict, "task %q has a new definition, and does not run again; read the plan again", t.Key())
		}
	}
	remade := map[plan.TaskID]bool{}
	for i := range s.Tasks {
		t := &s.Tasks[i]
		waits := slices.ContainsFunc(t.Needs, func(id plan.TaskID) bool {
			p := there[id]
			return !(p != nil && rules.GoesAlong(t.Foreach, p.Name)) && (s.Taken[id] || p != nil && !p.Status.Finished())
		})
		t.Remakes = (t.Foreach != nil || t.Items > 0) && rules.Remakes(&chosen[i], t.Task, t.With == nil || t.With.Foreach != nil, waits)
		remade[t.ID] = t.Remakes
	}
	for i := range s.Tasks {
		s.Tasks[i].Goes = remade[s.Tasks[i].Of]
	}
	return s, nil
}
