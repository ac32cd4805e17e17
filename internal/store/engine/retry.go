package engine

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/seed-1177d267/sluice/internal/refusal"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// A Retrier is a unit that makes one retry. K is how the driver tells tasks apart.
type Retrier[K comparable] interface {
	// Begin asks check of the plan of the retry, if it is one of a plan, and of the number of its
	// stored tasks. From now on a driver may note the retry. Begin returns plan.ErrNotFound for a
	// plan that is not there or is being deleted, and a Halfway if another retry has not ended.
	Begin(ctx context.Context, check func(p *plan.Plan, stored int) error) error

	// Queues returns which queues there are.
	Queues(ctx context.Context) (map[plan.QueueID]bool, error)

	// Tasks returns those of the tasks that are there and of the plan, in any order.
	Tasks(ctx context.Context, ids []plan.TaskID) ([]Retaken[K], error)

	// Parents returns the parents of tasks. waits are those parents that have not finished.
	Parents(ctx context.Context, tasks []K) (parents map[K][]K, waits map[K]bool, err error)

	// Below asks check of the unfinished items and children of the selection. A driver may leave held
	// tasks to Take.
	Below(ctx context.Context, s *Selection[K], check func(k K, t *plan.Task, decided bool) error) error

	// Take opens the plan by reopen at the present, takes the tasks back by Retake, and looks at these tasks and those
	// below. It takes all of them back or, if one has changed, none: plan.ErrConflict or
	// plan.ErrPlanActive.
	Take(ctx context.Context, s *Selection[K], reopen func(p *plan.Plan, params json.RawMessage, at time.Time)) error
}

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

// A Retaken is a task that a retry takes back. The driver fills the first three fields, Of for an
// item alone.
type Retaken[K comparable] struct {
	rules.Retaken
	Key, Of K
	With    *plan.Task // replaces its definition, params and queue; mostly nil
	Ran     bool       // as rules.Retried has it
	Remakes bool       // it drops its items, and makes new ones when its parents have finished
	Goes    bool       // it is one of these items
}

// A Selection is what a retry takes, children first.
type Selection[K comparable] struct {
	Tasks []Retaken[K]
	Taken map[K]bool
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

// Retry takes the chosen tasks back, if there are any. attempt hands do a unit, and undoes what the
// unit noted if do returns an error.
func Retry[K comparable](ctx context.Context, chosen []rules.Retried, replace []plan.Task, attempt func(do func(Retrier[K]) error) error) error {
	if len(chosen) == 0 {
		return nil
	}
	return Past(ctx, func() error {
		return attempt(func(u Retrier[K]) error { return retry(ctx, u, chosen, replace) })
	})
}

func retry[K comparable](ctx context.Context, u Retrier[K], chosen []rules.Retried, replace []plan.Task) error {
	if err := u.Begin(ctx, rules.CheckRetry); err != nil {
		return err
	}
	s, err := choose(ctx, u, chosen, replace)
	if err == nil {
		err = s.remake(ctx, u)
	}
	if err == nil {
		err = u.Below(ctx, s, CheckBelow(s.Taken))
	}
	if err != nil {
		return err
	}
	return u.Take(ctx, s, rules.Reopen)
}

// CheckBelow returns the check of tasks below those that a retry takes.
func CheckBelow[K comparable](taken map[K]bool) func(k K, t *plan.Task, decided bool) error {
	return func(k K, t *plan.Task, decided bool) error {
		if taken[k] {
			return nil
		}
		return rules.CheckBelow(t, decided)
	}
}

// choose selects the chosen tasks, if each of them may be taken back.
func choose[K comparable](ctx context.Context, u Retrier[K], chosen []rules.Retried, replace []plan.Task) (*Selection[K], error) {
	queues, err := u.Queues(ctx)
	if err != nil {
		return nil, err
	}
	ids := make([]plan.TaskID, len(chosen))
	for i := range chosen {
		ids[i] = chosen[i].ID
	}
	found, err := u.Tasks(ctx, ids)
	if err != nil {
		return nil, err
	}
	there := make(map[plan.TaskID]*Retaken[K], len(found))
	for i := range found {
		there[found[i].ID] = &found[i]
	}
	for i := range replace {
		if t := there[replace[i].ID]; t != nil {
			t.With = &replace[i]
		}
	}
	s := &Selection[K]{make([]Retaken[K], 0, len(found)), make(map[K]bool, len(found))}
	for i := range chosen {
		t := there[chosen[i].ID]
		if t == nil {
			return nil, rules.CheckRetried(&chosen[i], nil, nil, nil)
		}
		if err := rules.CheckRetried(&chosen[i], &t.Retaken, t.With, queues); err != nil {
			return nil, err
		}
		if t.Remakes, t.Ran = chosen[i].Anew, chosen[i].Ran; !s.Taken[t.Key] {
			s.Tasks, s.Taken[t.Key] = append(s.Tasks, *t), true
		}
	}
	var none K
	for i := range s.Tasks {
		if t := &s.Tasks[i]; t.Of != none && !s.Taken[t.Of] {
			return nil, refusal.New(plan.ErrConflict, "item %s cannot run again without its foreach task", t.ID)
		}
	}
	return s, nil
}

// remake finds the tasks that drop their items, as rules.Remakes says. It reads parents only where
// nothing else decides.
func (s *Selection[K]) remake(ctx context.Context, u Retrier[K]) error {
	remakes := func(t *Retaken[K], waits bool) bool {
		foreach := t.With == nil || t.With.Foreach != nil
		return t.Foreach && rules.Remakes(&rules.Retried{Anew: t.Remakes}, &plan.Task{Expanded: t.Expanded, Items: t.Items}, foreach, waits)
	}
	var ask []K
	for i := range s.Tasks {
		t := &s.Tasks[i]
		if t.Remakes = remakes(t, false); t.Foreach && !t.Remakes {
			ask = append(ask, t.Key)
		}
	}
	parents, waits, err := u.Parents(ctx, ask)
	remade := map[K]bool{}
	for i := range s.Tasks {
		t := &s.Tasks[i]
		t.Remakes = remakes(t, slices.ContainsFunc(parents[t.Key], func(p K) bool { return waits[p] || s.Taken[p] }))
		remade[t.Key] = t.Remakes
	}
	for i := range s.Tasks {
		s.Tasks[i].Goes = remade[s.Tasks[i].Of]
	}
	return err
}
