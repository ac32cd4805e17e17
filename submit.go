package sluice

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/seed-1177d267/sluice/internal/compiler"
	"github.com/seed-1177d267/sluice/internal/submit"
	"github.com/seed-1177d267/sluice/plan"
)

// A SubmitOption changes how Submit submits a plan.
type SubmitOption func(*submission)

type submission struct {
	params map[string]any
	key    string
}

// WithParams gives params of the plan other values than the spec has. Each value is kept as JSON, as
// package encoding/json makes it. Without this option the spec's values hold.
func WithParams(params map[string]any) SubmitOption {
	return func(s *submission) { s.params = params }
}

// WithKey makes Submit idempotent: a plan is submitted once for each key, however often and from
// however many processes Submit is called. The key is any text, such as "nightly-2026-11-22"; the store
// keeps it as long as the plan. Without a key each call submits a plan of its own.
func WithKey(key string) SubmitOption {
	return func(s *submission) { s.key = key }
}

// Validate returns nil or plan.Problems: everything that is wrong with the spec, as far as the spec
// alone tells it. Submit checks this too.
func Validate(spec *plan.Spec) error { return compiler.Validate(spec) }

// Submit puts a plan into the store, for nodes to run, and returns it with its ID and Run. The spec is
// not changed. A node begins once the whole plan is in the store. A queue that the plan needs is made
// if it is named as its plugin or limited by the plan.
//
// With a key for which there is a plan already, Submit returns that plan as it is now. If an earlier
// submission with the key died half-way, Submit completes it.
//
// Submit returns plan.Problems for a spec that is not valid, and ErrQueue for a queue that does not
// suit. It returns plan.ErrTooLarge for a plan that the store cannot hold. It returns
// plan.ErrConflict for a key of another plan, and plan.ErrPlanEnded for a key whose submission was
// abandoned. With any other error the returned plan, if its ID is not zero, is in the store in
// part. Nothing of it runs, and the store deletes it after an hour.
func (s *Store) Submit(ctx context.Context, spec *plan.Spec, options ...SubmitOption) (plan.Plan, error) {
	var o submission
	for _, option := range options {
		option(&o)
	}
	spec, err := o.apply(spec)
	if err == nil {
		err = s.refused(spec)
	}
	if err != nil {
		return plan.Plan{}, err
	}
	p, _, err := submit.Once(ctx, s.shown, spec, o.key, false)
	return p, err
}

// apply returns the spec with the params that were given.
func (o *submission) apply(spec *plan.Spec) (*plan.Spec, error) {
	if len(o.params) == 0 {
		return spec, nil
	}
	given := *spec
	given.Params = maps.Clone(spec.Params)
	var problems plan.Problems
	for _, name := range slices.Sorted(maps.Keys(o.params)) {
		_, known := spec.Params[name]
		value, err := json.Marshal(o.params[name])
		switch {
		case !known:
			problems = append(problems, plan.Problem{Task: -1, Key: "params", Item: -1, Word: name,
				Message: fmt.Sprintf("param %q is given, and the plan %q has no such param", name, spec.Name)})
		case err != nil:
			problems = append(problems, plan.Problem{Task: -1, Key: "params", Item: -1, Word: name,
				Message: fmt.Sprintf("param %q cannot be JSON: %v", name, err)})
		default:
			given.Params[name] = value
		}
	}
	if problems != nil {
		return nil, problems
	}
	return &given, nil
}

// Begin puts a plan into the store to which tasks are added one after another: Add adds them, and
// Ready lets the plan run. The spec may have no tasks, and no Limits. The store deletes a plan that
// nobody adds to for an hour. Begin returns plan.Problems for a spec that is not valid.
func (s *Store) Begin(ctx context.Context, spec *plan.Spec) (plan.Plan, error) {
	if len(spec.Limits) > 0 {
		return plan.Plan{}, plan.Problems{{Task: -1, Key: "queues", Item: -1,
			Message: fmt.Sprintf("plan %q limits queues, which a plan that is begun does not: create them", spec.Name)}}
	}
	if err := s.refused(spec); err != nil {
		return plan.Plan{}, err
	}
	p, err := submit.Begin(ctx, s.shown, spec)
	if err != nil || len(spec.Tasks) == 0 {
		return p, err
	}
	_, err = s.Add(ctx, p.ID, spec.Tasks)
	return p, err
}

// Ready lets a plan run that was begun. A plan that is ready already stays as it is.
func (s *Store) Ready(ctx context.Context, id plan.PlanID) error { return s.shown.Ready(ctx, id) }

// An AddOption changes how Add adds tasks.
type AddOption func(*addition)

type addition struct{ delay time.Duration }

// WithDelay holds the tasks for at least so long. Without it they run as soon as what they need has
// finished.
func WithDelay(d time.Duration) AddOption { return func(a *addition) { a.delay = d } }

// Add adds tasks to a plan, or, with the zero ID, tasks of no plan. It returns their ids in the
// order of tasks. A need is a task's id (24 hex digits), or the name of a task of the plan or of an
// earlier task in tasks. A task of no plan may need tasks of any plan, by their ids, and needs no
// name.
//
// A plan takes tasks until it ends. A task that is added to it may run at once.
//
// Add returns plan.Problems for a task that is not valid. It returns plan.ErrNotFound for a missing
// plan, need or queue, and plan.ErrExists for a name that the plan has. It returns
// plan.ErrPlanEnded for a plan that has ended or is closed, ErrQueue for a queue that does not
// suit, and plan.ErrTooLarge. After these errors nothing was added.
func (s *Store) Add(ctx context.Context, p plan.PlanID, tasks []plan.TaskSpec, options ...AddOption) ([]plan.TaskID, error) {
	var o addition
	for _, option := range options {
		option(&o)
	}
	var of plan.Plan
	if !p.IsZero() {
		var err error
		if of, err = s.driver.Plan(ctx, p); err != nil { // with its true params, which become the task's
			return nil, err
		}
	}
	spec := plan.Spec{Tasks: tasks}
	if len(of.Params) > 0 {
		if err := json.Unmarshal(of.Params, &spec.Params); err != nil {
			return nil, fmt.Errorf("params of %s: %w", of.Title(), err)
		}
	}
	if err := s.refused(&spec); err != nil {
		return nil, err
	}
	added, err := submit.Add(ctx, s.driver, &of, tasks, submit.Hold{For: o.delay})
	if err != nil {
		return nil, err
	}
	ids := make([]plan.TaskID, len(added))
	for i := range added {
		ids[i] = added[i].ID
	}
	return ids, nil
}
