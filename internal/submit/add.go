package submit

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/internal/compiler"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// A Hold says until when tasks are held at least. The zero value does not hold them.
type Hold struct {
	For   time.Duration // from now on
	Until time.Time     // used if For is 0; an instant that has passed means now
}

// end returns the instant; zero: now.
func (h Hold) end(now time.Time) time.Time {
	switch {
	case h.For > 0:
		return now.Add(h.For)
	case h.Until.After(now):
		return h.Until
	}
	return time.Time{}
}

// Add adds tasks to a plan that is in the store, or to none if the id is zero, and returns them. A need
// names a task of the plan, or one that stands before in specs, or is a task's id. The plan's params must be the true ones: a store that hides secrets
// returns others.
//
// It returns plan.Problems for a task that is not valid, and plan.ErrNotFound for a missing need or
// queue. It returns ErrQueue for a queue that runs another plugin, and the errors of AddTasks.
func Add(ctx context.Context, s Store, p *plan.Plan, specs []plan.TaskSpec, hold Hold) ([]plan.Task, error) {
	queues := map[compiler.QueueNeed]plan.QueueID{}
	a := adder{s: s, p: p, made: map[string]plan.Task{}, queue: func(need compiler.QueueNeed) (plan.QueueID, error) {
		if id, known := queues[need]; known {
			return id, nil
		}
		id, err := Queues(ctx, s)(need)
		if err == nil {
			queues[need] = id
		}
		return id, err
	}}
	tasks := make([]plan.Task, len(specs))
	var until time.Time
	if hold != (Hold{}) {
		now, err := s.Now(ctx)
		if err != nil {
			return nil, err
		}
		until = hold.end(now)
	}
	for i := range specs {
		t, err := a.task(ctx, specs[i])
		if err != nil {
			return nil, err
		}
		t.NotBefore = until
		tasks[i], a.made[t.Key()] = t, t
	}
	return tasks, s.AddTasks(ctx, p.ID, tasks)
}

// An adder makes the tasks of one Add.
type adder struct {
	s     Store
	p     *plan.Plan
	made  map[string]plan.Task // those before, by their Key
	queue func(compiler.QueueNeed) (plan.QueueID, error)
}

func (a *adder) task(ctx context.Context, own plan.TaskSpec) (plan.Task, error) {
	spec, name, subject := plan.New("task"), own.Name, own.Subject
	if !a.p.ID.IsZero() {
		spec.Name, spec.Secrets = a.p.Name, a.p.Secrets
		if err := json.Unmarshal(a.p.Params, &spec.Params); len(a.p.Params) > 0 && err != nil {
			return plan.Task{}, fmt.Errorf("params of %s: %w", a.p.Title(), err)
		}
	} else {
		own.Name = cmp.Or(name, "task")
		own.Subject = "" // it is text: there is no plan whose values it could name
		if err := rules.CheckSubject(subject); err != nil {
			return plan.Task{}, fmt.Errorf("task %q: %w", name, err)
		}
	}
	parents, needs := make([]plan.Task, len(own.Needs)), own.Needs
	own.Needs = nil
	for i, need := range needs {
		var err error
		if parents[i], err = a.parent(ctx, need); err != nil {
			return plan.Task{}, fmt.Errorf("task %q needs %q: %w", name, need, err)
		}
		own.Needs = append(own.Needs, StandIn(&parents[i], i))
		spec.Add(plan.TaskSpec{Name: own.Needs[i]})
	}
	spec.Add(own)
	t, err := Last(spec, a.p, parents, a.queue)
	if t.Name = name; a.p.ID.IsZero() {
		t.Subject = subject
	}
	return t, err
}

// parent returns the task that a need means.
func (a *adder) parent(ctx context.Context, need string) (plan.Task, error) {
	if t, ok := a.made[need]; ok {
		return t, nil
	}
	q := store.TaskQuery{Plan: a.p.ID, Name: need, Limit: 1}
	if id, err := plan.ParseID(need); err == nil && !id.IsZero() {
		q = store.TaskQuery{IDs: []plan.TaskID{{ID: id}}, Limit: 1}
	} else if a.p.ID.IsZero() {
		return plan.Task{}, fmt.Errorf("%w: a task of no plan needs others by their ids", plan.ErrNotFound)
	}
	found, err := a.s.Tasks(ctx, q)
	if err == nil && len(found) == 0 {
		err = plan.ErrNotFound
	}
	if err != nil {
		return plan.Task{}, err
	}
	return found[0], nil
}

// Plain compiles a task of no plan that needs none, for a queue that is there.
func Plain(own plan.TaskSpec, q *plan.Queue) (plan.Task, error) {
	own.Queue, own.Plugin = q.Name, q.Plugin
	a := adder{p: &plan.Plan{}, queue: func(compiler.QueueNeed) (plan.QueueID, error) { return q.ID, nil }}
	return a.task(context.Background(), own) // it reads nothing
}

// StandIn is the name of a parent in a spec that only serves to compile the child of the parent. It is
// the parent's own name, unless the parent is an item, has no name, or has one that plans no longer take.
func StandIn(t *plan.Task, i int) string {
	if t.Name == "" || strings.Contains(t.Name, "[") || strings.HasPrefix(t.Name, "-") {
		return fmt.Sprintf("parent-%d", i)
	}
	return t.Name
}

// Last compiles the last task of a spec. The other tasks of the spec stand in for the task's
// parents, with the names that StandIn returns. p is the plan of the task, or the zero plan. Last
// returns plan.Problems for a spec that is not valid.
func Last(spec *plan.Spec, p *plan.Plan, parents []plan.Task, queues func(compiler.QueueNeed) (plan.QueueID, error)) (plan.Task, error) {
	if err := compiler.Validate(spec); err != nil {
		return plan.Task{}, err
	}
	last := &spec.Tasks[len(spec.Tasks)-1]
	_, tasks, err := compiler.Again(spec, p.ID, time.Now(), func(need compiler.QueueNeed) (plan.QueueID, error) {
		if need.Name == last.Queue || last.Queue == "" && (need.Name == last.Plugin || last.Plugin == "" && need.Name == plan.DefaultPlugin) {
			return queues(need)
		}
		return plan.QueueID{}, nil // of those that stand in
	})
	if err != nil {
		return plan.Task{}, err
	}
	t := tasks[len(tasks)-1]
	if name, err := compiler.CheckParams(cmp.Or(last.Plugin, plan.DefaultPlugin), t.Params, t.Template); err != nil {
		return plan.Task{}, plan.Problems{{Task: len(spec.Tasks) - 1, Key: "params", Word: name, Item: -1, Message: fmt.Sprintf("task %q: params.%s: %v", last.Name, name, err)}}
	}
	t.ID = plan.TaskID{ID: plan.NewID(time.Now())} // of the plan's tasks another one has the id that follows from the plan's
	t.Needs = nil
	for i := range parents {
		t.Needs = append(t.Needs, parents[i].ID)
	}
	return t, nil
}
