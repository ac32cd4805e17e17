package submit

import (
	"context"

	"github.com/seed-1177d267/sluice/internal/compiler"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// SetTask changes a task of no plan that waits, which was read with its Needs, as store.Admin has it.
// New params are compiled as Add compiles them, and check, unless it is nil, is asked about the task
// with them and the defaults of its queue. SetTask returns plan.Problems for params that are not valid.
func SetTask(ctx context.Context, s Store, t *plan.Task, c rules.TaskChange, check func(*plan.Spec) error) error {
	if err := rules.CheckSetTask(t, false); err != nil {
		return err
	}
	if c.Params != nil {
		compiled, err := changed(ctx, s, t, c, check)
		if err != nil {
			return err
		}
		c.Params, c.Template = compiled.Params, compiled.Template
	}
	return s.SetTask(ctx, t.ID, c)
}

// changed returns the task as it is with new params.
func changed(ctx context.Context, s Store, t *plan.Task, c rules.TaskChange, check func(*plan.Spec) error) (plan.Task, error) {
	own := plan.TaskSpec{Name: t.Name, Params: c.Params, When: t.When}
	for _, need := range t.Needs {
		own.Needs = append(own.Needs, need.String())
	}
	queues, err := s.Queues(ctx)
	if err != nil {
		return plan.Task{}, err
	}
	for i := range queues {
		if q := &queues[i]; q.ID == t.Queue {
			asked := plan.TaskSpec{Name: t.Name, Plugin: q.Plugin, Params: rules.FillParams(&q.Defaults, c.Params)}
			if check != nil {
				err = check(&plan.Spec{Tasks: []plan.TaskSpec{asked}})
			}
			own.Queue, own.Plugin = q.Name, q.Plugin
		}
	}
	if err != nil {
		return plan.Task{}, err
	}
	a := adder{s: s, p: &plan.Plan{}, queue: func(compiler.QueueNeed) (plan.QueueID, error) { return t.Queue, nil }}
	return a.task(ctx, own)
}
