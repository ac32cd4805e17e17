package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/seed-1177d267/sluice/internal/planfile"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/submit"
	"github.com/seed-1177d267/sluice/plan"
)

// replacements returns the new definitions that a changed plan file has for tasks that are selected for a retry. It refuses a file that
// is not the same plan with some tasks done in another way: other tasks, other needs, or a change to a task that does not run again.
func replacements(ctx context.Context, st store.Store, p *plan.Plan, tasks []plan.Task, selected []plan.Retried, path string) ([]plan.Task, error) {
	changed, err := compileAgain(ctx, st, p, path)
	if err != nil {
		return nil, err
	}
	r := replacer{p: p, path: path, tasks: tasks, again: map[plan.TaskID]bool{}, byID: map[plan.TaskID]*plan.Task{}}
	for _, s := range selected {
		r.again[s.ID] = true
	}
	top := 0
	byName := map[string]*plan.Task{}
	for i := range tasks {
		r.byID[tasks[i].ID] = &tasks[i]
		if tasks[i].Of.IsZero() {
			byName[tasks[i].Name] = &tasks[i]
			top++
		}
	}
	newNames := map[plan.TaskID]string{}
	for i := range changed {
		newNames[changed[i].ID] = changed[i].Name
	}
	var out []plan.Task
	var problems []error
	for i := range changed {
		old, ok := byName[changed[i].Name]
		if !ok {
			problems = append(problems, fmt.Errorf("task %q is not in %s; add it with sluice plan add, or take it out of %s", changed[i].Name, p.Title(), path))
			continue
		}
		top--
		more, err := r.replace(old, &changed[i], newNames)
		problems = append(problems, err)
		out = append(out, more...)
	}
	if top > 0 && errors.Join(problems...) == nil {
		problems = append(problems, fmt.Errorf("%d tasks of %s are not in %s; a retry changes tasks, and takes none out", top, p.Title(), path))
	}
	return out, asUsage(errors.Join(problems...))
}

// compileAgain compiles a plan file with the params that the plan has.
func compileAgain(ctx context.Context, st store.Store, p *plan.Plan, path string) ([]plan.Task, error) {
	var params map[string]json.RawMessage
	if len(p.Params) > 0 {
		if err := json.Unmarshal(p.Params, &params); err != nil {
			return nil, fmt.Errorf("the params of %s: %w", p.Title(), err)
		}
	}
	values := make(map[string]string, len(params))
	for name, value := range params {
		var text string
		if json.Unmarshal(value, &text) != nil {
			text = string(value)
		}
		values[name] = text
	}
	spec, err := planfile.Load(path, values)
	if err != nil {
		return nil, asUsage(err)
	}
	if spec.Name != p.Name {
		return nil, usagef("%s is the plan %q, and %s is not a run of that", path, spec.Name, p.Title())
	}
	compiled, tasks, err := spec.Compile(time.Now(), submit.Queues(ctx, st))
	if err != nil {
		return nil, err
	}
	for i := range tasks { // expressions were replaced for a plan that is not in the store, and is this one but for its id
		tasks[i].Params = bytes.ReplaceAll(tasks[i].Params, []byte(compiled.ID.String()), []byte(p.ID.String()))
	}
	return tasks, nil
}

type replacer struct {
	p     *plan.Plan
	path  string
	tasks []plan.Task
	again map[plan.TaskID]bool
	byID  map[plan.TaskID]*plan.Task
}

// replace returns what is to replace a task of the plan, and its items if it has some: nothing, if it is the same.
func (r *replacer) replace(old, now *plan.Task, newNames map[plan.TaskID]string) ([]plan.Task, error) {
	if len(old.Needs) != len(now.Needs) {
		return nil, fmt.Errorf("task %q needs other tasks in %s than in %s; a retry cannot change that", old.Name, r.path, r.p.Title())
	}
	for i := range old.Needs {
		if parent, ok := r.byID[old.Needs[i]]; !ok || parent.Name != newNames[now.Needs[i]] {
			return nil, fmt.Errorf("task %q needs other tasks in %s than in %s; a retry cannot change that", old.Name, r.path, r.p.Title())
		}
	}
	same, err := sameWork(old, now)
	switch {
	case err != nil || same:
		return nil, err
	case !r.again[old.ID] && old.Status == plan.Succeeded:
		return nil, fmt.Errorf("task %q has succeeded, and %s changes it; leave it as it was, or run it again: name it with --downstream", old.Name, r.path)
	case !r.again[old.ID]:
		return nil, fmt.Errorf("task %q is changed by %s and would not run; name it too, or leave it as it was", old.Name, r.path)
	case (old.Expanding || old.Expanded) && !reflect.DeepEqual(old.Foreach, now.Foreach):
		return nil, fmt.Errorf("task %q goes over other items in %s, and its items are made already; submit the plan anew", old.Name, r.path)
	}
	out := []plan.Task{{ID: old.ID, Name: old.Name, Queue: now.Queue, Definition: now.Definition, Params: now.Params}}
	for i := range r.tasks {
		t := &r.tasks[i]
		if t.Of != old.ID {
			continue
		}
		if !r.again[t.ID] {
			if t.Status != plan.Succeeded {
				return nil, fmt.Errorf("task %q is changed by %s, and its item %s would not run; name %q instead", old.Name, r.path, t.Name, old.Name)
			}
			continue // what succeeded is kept as it ran
		}
		params, err := carry(now.Params, t.Params, "needs", "args")
		if err != nil {
			return nil, err
		}
		item, err := carry(json.RawMessage("{}"), t.Params, "item")
		if err != nil {
			return nil, err
		}
		var held struct{ Item json.RawMessage }
		if err := json.Unmarshal(item, &held); err != nil {
			return nil, err
		}
		of := *now
		of.ID, of.Plan = old.ID, old.Plan
		out = append(out, plan.ItemTask(&of, t.Index, held.Item, params, time.Now()))
	}
	return out, nil
}

// sameWork reports whether two versions of a task do the same in the same way. Params that a store has delivered do not count, nor does
// the rank, which follows from the whole plan.
func sameWork(old, now *plan.Task) (bool, error) {
	x, y := old.Definition, now.Definition
	x.Rank, y.Rank = 0, 0
	if !reflect.DeepEqual(x, y) || old.Queue != now.Queue {
		return false, nil
	}
	var a, b map[string]any
	if err := errors.Join(decode(old.Params, &a), decode(now.Params, &b)); err != nil {
		return false, fmt.Errorf("params of task %q: %w", old.Name, err)
	}
	delete(a, "needs")
	delete(a, "args")
	return reflect.DeepEqual(a, b), nil
}

func decode(raw json.RawMessage, m *map[string]any) error {
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	return dec.Decode(m)
}

// carry returns params with the given keys of others.
func carry(params, others json.RawMessage, keys ...string) (json.RawMessage, error) {
	var to, from map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(params, &to), json.Unmarshal(others, &from)); err != nil {
		return nil, fmt.Errorf("params are not a JSON object: %w", err)
	}
	for _, k := range keys {
		if v, ok := from[k]; ok {
			to[k] = v
		}
	}
	return json.Marshal(to)
}
