// Package embedded runs plans inside a Go program: it opens a store, submits plans built with package plan, and runs them to their end
// on a node of the program's own, with Go functions as plugins.
//
//	e, err := embedded.Open(ctx, embedded.Options{Store: "sqlite:/var/lib/app/plans.db"})
//	e.Plugins.Register("fetch", plugins.Func(fetch))
//	p, err := e.Run(ctx, spec) // p.State says how it ended
//
// What the program leaves unfinished, since it was stopped or killed, is in the store; Unfinished finds it and Resume goes on with it.
package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/open"
	"github.com/seed-1177d267/sluice/internal/submit"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// Options say where and how plans run. The zero value of a field means its default.
type Options struct {
	Store   string       // sqlite:PATH or mongodb://…/DATABASE; default: the store that the command line uses
	Threads int          // tasks at once, at most plan.MaxThreads; default: the number of CPUs
	Logger  *slog.Logger // of the node; default: nothing is logged
}

// An Engine runs plans. Any number of goroutines may call it at once.
type Engine struct {
	Plugins *plugins.Registry // fill it before the first Run; it is empty at first

	opts  Options
	store store.Store
}

// Open opens the store. Close the engine when nothing of it is used any more.
func Open(ctx context.Context, opts Options) (*Engine, error) {
	if opts.Store == "" {
		opts.Store, _ = open.Default()
	}
	s, err := open.Open(ctx, opts.Store)
	if err != nil {
		return nil, err
	}
	return &Engine{Plugins: plugins.NewRegistry(), opts: opts, store: s}, nil
}

// Close lets go of the store.
func (e *Engine) Close() error { return e.store.Close() }

// ErrInterrupted means that ctx ended before the plan did. The plan is in the store as it is; Resume goes on with it.
var ErrInterrupted = errors.New("interrupted: the plan has not ended")

// Run submits the plan and runs it to its end, be it that others end it, or run tasks of it too. An error means that it could not be
// submitted or run to its end, or (plan.ErrNotFound) that others deleted it then; that tasks failed is none: the plan's State tells.
func (e *Engine) Run(ctx context.Context, spec *plan.Spec) (plan.Plan, error) {
	for _, q := range spec.Queues() {
		if _, ok := e.Plugins.Get(q.Plugin); !ok {
			return plan.Plan{}, fmt.Errorf("plan %q has tasks for plugin %q, which is not registered; there are %v", spec.Name, q.Plugin, e.Plugins.Names())
		}
	}
	p, err := submit.Submit(ctx, e.store, spec, true)
	if err != nil {
		return p, err
	}
	return e.run(ctx, p)
}

// Resume goes on, as Run does, with a plan that has not ended. What has finished does not run again. A plan whose submission ended half-way
// is plan.ErrPlanNotReady: nothing of it has run, and nothing will.
func (e *Engine) Resume(ctx context.Context, id plan.PlanID) (plan.Plan, error) {
	p, err := e.store.Plan(ctx, id)
	if err != nil {
		return p, err
	}
	switch {
	case p.State.Ended():
		return p, nil
	case p.State == plan.PlanSubmitting:
		return p, fmt.Errorf("plan %s: %w: run it anew", p.Title(), plan.ErrPlanNotReady)
	}
	if err := e.store.Adopt(ctx, id); err != nil {
		return p, err
	}
	return e.run(ctx, p)
}

func (e *Engine) run(ctx context.Context, p plan.Plan) (plan.Plan, error) {
	host, err := os.Hostname()
	if err != nil {
		return p, err
	}
	node, err := den.New(e.store, den.Config{
		Plugins: e.Plugins, Plan: p.ID, Threads: e.opts.Threads, Logger: e.opts.Logger,
		Host: host, Name: plan.NodeName(fmt.Sprintf("%s.%d", host, os.Getpid())),
	})
	if err != nil {
		return p, err
	}
	if err := node.Run(ctx); err != nil {
		return p, err
	}
	now, err := e.store.Plan(context.WithoutCancel(ctx), p.ID)
	switch {
	case errors.Is(err, plan.ErrNotFound):
		return p, fmt.Errorf("%s has ended and was deleted meanwhile: %w", p.Title(), err)
	case err == nil && !now.State.Ended():
		err = ErrInterrupted
	}
	return now, err
}

// Unfinished returns the plans of that name that have begun to run and have not ended, newest first. One whose submission ended half-way
// has not begun; it goes by itself within the hour.
func (e *Engine) Unfinished(ctx context.Context, name string) ([]plan.Plan, error) {
	running := plan.PlanRunning
	return e.store.Plans(ctx, store.PlanQuery{Name: name, State: &running})
}

// Output returns the output of a task of the plan: nil is null. It returns plan.ErrNotFound if the plan has no such task, and
// plan.ErrTooMuchOutput for more than plan.MaxInputs bytes of a foreach task's items.
func (e *Engine) Output(ctx context.Context, p plan.PlanID, task string) (json.RawMessage, error) {
	found, err := e.store.Tasks(ctx, store.TaskQuery{Plan: p, Name: task, Limit: 1})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("task %q: %w", task, plan.ErrNotFound)
	}
	t, err := e.store.Task(ctx, found[0].ID)
	return t.Output, err
}

// Failures returns the tasks of the plan that failed, with the reason in Detail, oldest first, at most 100.
func (e *Engine) Failures(ctx context.Context, p plan.PlanID) ([]plan.Task, error) {
	return e.store.Tasks(ctx, store.TaskQuery{Plan: p, Statuses: []plan.Status{plan.Failed, plan.Terminated, plan.Orphaned}})
}
