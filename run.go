package sluice

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/internal/compiler"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// Run submits a plan, runs it in this process to its end, and returns it as it is then. Its State says
// how it ended: failed tasks are no error, and Failures returns them. tell gets each change in order, as
// from Watch; it is called from one goroutine, which it holds up. nil: nobody is told.
//
// As many tasks run at once as there are CPUs, and plugins. A program that wants another number, or
// several plans at once, calls Submit and den.Run.
//
// When ctx ends, running tasks have 10 s to end. Run then returns the plan, which has not ended, with the
// cause of ctx. A later Run with the same WithKey continues the plan.
//
// Run returns the errors of Submit and of den.Run, and plan.Problems for a task whose plugin is not in
// the registry. A store behind a server runs no plans.
func Run(ctx context.Context, st *Store, spec *plan.Spec, reg *plugins.Registry, tell func(Change), options ...SubmitOption) (plan.Plan, error) {
	if err := absent(spec, reg); err != nil {
		return plan.Plan{}, err
	}
	p, err := st.Submit(ctx, spec, options...)
	if err != nil {
		return p, err
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	changes := st.Watch(watching, p.ID) // from before its first task
	ran := make(chan error, 1)
	go func() {
		err := den.Run(ctx, st, den.Config{Plugins: reg, Plan: p.ID})
		if err != nil {
			stop() // nothing more changes here
		}
		ran <- err
	}()
	for c, failed := range changes {
		if failed != nil {
			err = failed
			break
		}
		if tell != nil {
			tell(c)
		}
	}
	if failed := <-ran; failed != nil {
		err = failed
	}
	now, failed := st.Plan(context.WithoutCancel(ctx), p.ID)
	switch {
	case failed != nil:
		return p, errors.Join(err, failed)
	case now.State.Ended():
		return now, nil
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return now, err
}

// absent returns plan.Problems for tasks whose plugin is not in the registry.
func absent(spec *plan.Spec, reg *plugins.Registry) error {
	var problems plan.Problems
	if err := compiler.Validate(spec); err != nil {
		return err
	}
	for i := range spec.Tasks {
		t := &spec.Tasks[i]
		name := t.Plugin
		if name == "" {
			name = plan.DefaultPlugin
		}
		if _, there := reg.Get(name); !there && t.Approve == nil {
			problems = append(problems, plan.Problem{Task: i, Key: "plugin", Item: -1, Word: name,
				Message: fmt.Sprintf("task %q needs the plugin %q, which is not in the registry; register it", t.Name, name)})
		}
	}
	if problems != nil {
		return problems
	}
	return nil
}
