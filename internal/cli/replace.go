package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/internal/cells"
	"github.com/seed-1177d267/sluice/internal/planfile"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/submit"
	"github.com/seed-1177d267/sluice/plan"
)

// replacements returns the new definitions that a changed plan file has for tasks that are selected for a retry. It refuses a file that
// is not the same plan with some tasks done in another way: other tasks, other needs, or a change to a task that does not run again. mark
// stands for what is cut off values in what it says of that.
func replacements(
	ctx context.Context, st store.Store, p *plan.Plan, tasks []plan.Task, selected []plan.Retried, path, mark string,
) ([]plan.Task, error) {
	changed, err := compileAgain(p, path, submit.Queues(ctx, st))
	if err != nil {
		return nil, err
	}
	r := replacer{p: p, path: path, mark: mark, tasks: tasks, again: map[plan.TaskID]bool{}, byID: map[plan.TaskID]*plan.Task{}}
	for _, s := range selected {
		r.again[s.ID] = true
	}
	byName := map[string]*plan.Task{}
	for i := range tasks {
		r.byID[tasks[i].ID] = &tasks[i]
		if tasks[i].Of.IsZero() {
			byName[tasks[i].Name] = &tasks[i]
		}
	}
	newNames := map[plan.TaskID]string{}
	for i := range changed {
		newNames[changed[i].ID] = changed[i].Name
	}
	missing := maps.Clone(byName)
	var out []plan.Task
	var problems []error
	for i := range changed {
		old, ok := byName[changed[i].Name]
		if !ok {
			problems = append(problems, fmt.Errorf("task %q is not in %s; add it with sluice plan add, or take it out of %s", changed[i].Name, p.Title(), path))
			continue
		}
		delete(missing, old.Name)
		more, err := r.replace(old, &changed[i], newNames)
		problems = append(problems, err)
		out = append(out, more...)
	}
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		problems = append(problems, fmt.Errorf("task %q of %s is not in %s; a retry changes tasks, and takes none out", name, p.Title(), path))
	}
	return out, asUsage(errors.Join(problems...))
}

// touched reports whether the file that a plan came from was written to since, as far as that can be told from here.
func touched(p *plan.Plan) bool {
	if p.Source == "" {
		return false
	}
	info, err := os.Stat(p.Source)
	return err == nil && info.ModTime().After(p.Created)
}

// noteChanged says that the file that a plan came from is another one since, and that its changes are not what a retry runs. tasks are
// those of the plan, with their params.
func (a *app) noteChanged(ctx context.Context, r store.Reader, p *plan.Plan, tasks []plan.Task) error {
	queues, err := r.Queues(ctx)
	if err != nil {
		return err
	}
	now, err := compileAgain(p, p.Source, func(need plan.QueueNeed) (plan.QueueID, error) {
		for i := range queues {
			if queues[i].Name == need.Name {
				return queues[i].ID, nil
			}
		}
		return plan.QueueID{}, nil // that one is not there yet is a change
	})
	if err == nil && sameTasks(tasks, now) {
		return nil
	}
	path := p.Source
	if dir, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
			path = rel
		}
	}
	a.note("%s has changed since %s was submitted, and the tasks are as they were then: to take the changes add --with %s", path, p.Title(), path)
	return nil
}

// sameTasks reports whether a compiled plan file has the tasks that a plan has, done in the same way.
func sameTasks(tasks, compiled []plan.Task) bool {
	names, newNames, old := map[plan.TaskID]string{}, map[plan.TaskID]string{}, make(map[string]*plan.Task, len(tasks))
	for i := range tasks {
		names[tasks[i].ID] = tasks[i].Name
		if tasks[i].Of.IsZero() {
			old[tasks[i].Name] = &tasks[i]
		}
	}
	if len(old) != len(compiled) {
		return false
	}
	for i := range compiled { // in another order their ids are those of other tasks
		newNames[compiled[i].ID] = compiled[i].Name
	}
	for i := range compiled {
		t, ok := old[compiled[i].Name]
		if !ok || list(t.Needs, func(id plan.TaskID) string { return names[id] }) != list(compiled[i].Needs, func(id plan.TaskID) string { return newNames[id] }) {
			return false
		}
		if changes, err := changesOf(t, &compiled[i], ""); err != nil || len(changes) > 0 {
			return false
		}
	}
	return true
}

// loadAgain loads a plan file with the params that the plan has.
func loadAgain(p *plan.Plan, path string) (*plan.Spec, error) {
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
	return spec, nil
}

// compileAgain compiles a plan file with the params that the plan has, and for its id. queue is as for plan.Spec.Compile.
func compileAgain(p *plan.Plan, path string, queue func(plan.QueueNeed) (plan.QueueID, error)) ([]plan.Task, error) {
	spec, err := loadAgain(p, path)
	if err != nil {
		return nil, err
	}
	_, tasks, err := spec.CompileAgain(p.ID, time.Now(), queue)
	return tasks, err
}

type replacer struct {
	p     *plan.Plan
	path  string
	mark  string
	tasks []plan.Task
	again map[plan.TaskID]bool
	byID  map[plan.TaskID]*plan.Task
}

// replace returns what is to replace a task of the plan, and its items if it has some: nothing, if it is the same.
func (r *replacer) replace(old, now *plan.Task, newNames map[plan.TaskID]string) ([]plan.Task, error) {
	needs := list(now.Needs, func(id plan.TaskID) string { return newNames[id] })
	needed := list(old.Needs, func(id plan.TaskID) string {
		if parent, ok := r.byID[id]; ok {
			return parent.Key()
		}
		return id.String() // it is of no plan, or deleted
	})
	if needs != needed {
		return nil, fmt.Errorf("task %q needs %s in %s, and %s in %s; a retry cannot change what a task needs: submit the plan anew",
			old.Name, cmp.Or(needs, "nothing"), r.path, cmp.Or(needed, "nothing"), r.p.Title())
	}
	changes, err := changesOf(old, now, r.mark)
	switch {
	case err != nil || len(changes) == 0:
		return nil, err
	case !r.again[old.ID] && old.Status == plan.Succeeded:
		return nil, fmt.Errorf("task %q has succeeded, and %s changes its %s; leave it as it was, or run it again: name it with --downstream",
			old.Name, r.path, strings.Join(changes, ", its "))
	case !r.again[old.ID]:
		return nil, fmt.Errorf("task %q would not run, and %s changes its %s; name it too, or leave it as it was", old.Name, r.path, strings.Join(changes, ", its "))
	case (old.Expanding || old.Expanded) && !sameForeach(old.Foreach, now.Foreach):
		return nil, fmt.Errorf("task %q goes over other items in %s, and its items are made already: %s changes its %s; submit the plan anew",
			old.Name, r.path, r.path, strings.Join(changes, ", its "))
	}
	out := []plan.Task{{ID: old.ID, Name: old.Name, Queue: now.Queue, Definition: now.Definition, Params: now.Params}}
	for i := range r.tasks {
		t := &r.tasks[i]
		if t.Of != old.ID {
			continue
		}
		if !r.again[t.ID] {
			if t.Status != plan.Succeeded {
				return nil, fmt.Errorf("%s changes task %q, its %s, and its item %s would not run; name %q instead",
					r.path, old.Name, strings.Join(changes, ", its "), t.Name, old.Name)
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

// changesOf returns what differs between two versions of a task, by the keys of a plan file, with both values where they are known: none
// if they do the same in the same way. Params that a store has delivered do not count, nor does the rank, which follows from the whole
// plan.
func changesOf(old, now *plan.Task, mark string) ([]string, error) {
	var changes []string
	x, y := reflect.ValueOf(old.Definition), reflect.ValueOf(now.Definition)
	for i := range x.NumField() {
		field := x.Type().Field(i)
		was, is := x.Field(i).Interface(), y.Field(i).Interface()
		if field.Name == "Rank" || reflect.DeepEqual(was, is) || field.Name == "Foreach" && sameForeach(old.Foreach, now.Foreach) {
			continue
		}
		key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if key == "continue_on_error" { // in plan files it is written as in GitHub Actions
			key = "continue-on-error"
		}
		changes = append(changes, change(key, was, is, mark))
	}
	if old.Queue != now.Queue {
		changes = append(changes, "queue")
	}
	var a, b map[string]any
	if err := errors.Join(decode(old.Params, &a), decode(now.Params, &b)); err != nil {
		return nil, fmt.Errorf("params of task %q: %w", old.Name, err)
	}
	for _, delivered := range []string{"needs", "args"} {
		delete(a, delivered)
		delete(b, delivered)
	}
	keys := maps.Clone(a)
	maps.Copy(keys, b)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if !reflect.DeepEqual(a[key], b[key]) {
			changes = append(changes, change(key, a[key], b[key], mark))
		}
	}
	return changes, nil
}

// sameForeach compares the values of lists: a store may spell JSON in its own way.
func sameForeach(a, b *plan.Foreach) bool {
	if a == nil || b == nil {
		return a == b
	}
	x, y := *a, *b
	x.List, y.List = nil, nil
	var lists [2]any
	for i, list := range []json.RawMessage{a.List, b.List} {
		if list == nil {
			continue
		}
		dec := json.NewDecoder(bytes.NewReader(list))
		dec.UseNumber()
		if dec.Decode(&lists[i]) != nil {
			return false
		}
	}
	return reflect.DeepEqual(x, y) && reflect.DeepEqual(lists[0], lists[1])
}

// change writes what a key was and is.
func change(key string, was, is any, mark string) string {
	return fmt.Sprintf("%s (%s, now %s)", key, inShort(was, mark), inShort(is, mark))
}

// mostValue is how many columns of a value are shown.
const mostValue = 40

func inShort(value any, mark string) string {
	if value == nil || reflect.ValueOf(value).IsZero() {
		return "unset"
	}
	text := ""
	switch v := value.(type) {
	case time.Duration:
		text = v.String()
	case plan.Retry:
		text = fmt.Sprintf("%d attempts", v.Attempts)
		for _, part := range []struct {
			key   string
			value any
		}{{"delay", v.Delay}, {"factor", v.Factor}, {"max", v.Max}} {
			if !reflect.ValueOf(part.value).IsZero() {
				text += fmt.Sprintf(", %s %v", part.key, part.value)
			}
		}
	default:
		var b strings.Builder
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(v); err != nil { // what came from JSON can be written as JSON
			return "?"
		}
		text = strings.TrimSuffix(b.String(), "\n")
	}
	return cells.Cut(cells.Clean(text), mostValue, mark)
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
