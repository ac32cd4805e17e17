package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/internal/cells"
	"github.com/seed-1177d267/sluice/internal/jsontext"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/secret"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/submit"
	"github.com/seed-1177d267/sluice/plan"
)

// A replacement is what a plan file says that was changed since the plan was submitted, for the tasks of a retry.
type replacement struct {
	tasks  []plan.Task     // the new definitions
	params json.RawMessage // the plan's params, if they are others
	lines  []string        // for people: which params are others, and what ran with the old ones
	stays  string          // for people: which params are not as the file has them by default

	secrets secret.Names
}

// replacements returns the tasks of a changed plan file that replace those selected for a retry.
// The plan's params apply unless others are given. The file must be the same plan with some tasks
// done in another way. It refuses other tasks and other needs. It refuses a change to a task that
// does not run again, unless only the params cause the change.
//
// If lists is set, a foreach task whose items are made may have another list, since the retry compares that
// with the items.
func (file *fileAgain) replacements(selected []rules.Retried, lists bool) (*replacement, error) {
	p, tasks, changed, path := file.p, file.stored, file.tasks, file.path
	r := replacer{file: file, tasks: tasks, lists: lists, again: map[plan.TaskID]bool{}, byID: map[plan.TaskID]*plan.Task{}}
	for _, s := range selected {
		r.again[s.ID] = true
	}
	for i := range tasks {
		r.byID[tasks[i].ID] = &tasks[i]
	}
	named, newNames := byName(tasks), namesOf(changed)
	missing := maps.Clone(named)
	out := &replacement{stays: file.stays(""), secrets: file.secrets}
	var problems []error
	for i := range changed {
		old, ok := named[changed[i].Name]
		if !ok {
			problems = append(problems, fmt.Errorf("task %q is not in %s; add it with sluice plan add, or take it out of %s", changed[i].Name, p.Title(), path))
			continue
		}
		delete(missing, old.Name)
		more, err := r.replace(old, &changed[i], newNames)
		problems = append(problems, err)
		out.tasks = append(out.tasks, more...)
	}
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		problems = append(problems, fmt.Errorf("task %q of %s is not in %s; a retry changes tasks, and removes none", name, p.Title(), path))
	}
	err := errors.Join(problems...)
	if err != nil {
		return nil, asUsage(err)
	}
	if out.lines = file.changedParams(); len(out.lines) > 0 {
		if out.params, err = json.Marshal(file.values); err != nil {
			return nil, err
		}
		if line := keptLine(r.kept); line != "" {
			out.lines = append(out.lines, line)
		}
	}
	return out, nil
}

// keptLine says which tasks a retry keeps as they ran with other params.
func keptLine(names []string) string {
	const most = 8
	if len(names) == 0 {
		return ""
	}
	shown := names[:min(len(names), most)]
	line := "kept as they ran with the old values: "
	if len(names) == 1 {
		line = "kept as it ran with the old values: "
	}
	line += strings.Join(shown, ", ")
	if more := len(names) - len(shown); more > 0 {
		line += fmt.Sprintf(" and %d more", more)
	}
	return line
}

// readReplacing reads the changed file of a plan. tasks are those of the plan, with their params.
func (a *app) readReplacing(ctx context.Context, st store.Store, p *plan.Plan, tasks []plan.Task, path string, given map[string]string) (*fileAgain, error) {
	queues, err := st.Queues(ctx)
	if err != nil {
		return nil, err
	}
	file, err := a.readAgain(ctx, st, p, tasks, queues, path, given, submit.Queues(ctx, st))
	if err == nil {
		err = a.spareInputs(file.tasks)
	}
	return file, err
}

// otherLists returns the foreach tasks whose lists are others in the file, as that has them.
func (f *fileAgain) otherLists() (replace []plan.Task) {
	named := byName(f.stored)
	for i := range f.tasks {
		now := &f.tasks[i]
		if old := named[now.Name]; old != nil && old.HasItems() && !sameForeach(old.Foreach, now.Foreach, f.secrets, f.hidden...) {
			replace = append(replace, plan.Task{ID: old.ID, Name: old.Name, Queue: now.Queue, Definition: now.Definition, Params: now.Params})
		}
	}
	return replace
}

type replacer struct {
	lists bool
	file  *fileAgain
	tasks []plan.Task
	again map[plan.TaskID]bool
	byID  map[plan.TaskID]*plan.Task
	kept  []string // ran with other params, and stay
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
		return nil, fmt.Errorf("task %q needs %s in %s, and %s in %s; a retry cannot change what a task needs; submit the plan again",
			old.Name, cmp.Or(needs, "nothing"), r.file.path, cmp.Or(needed, "nothing"), r.file.p.Title())
	}
	changes, err := changesOf(old, now, r.file.mark, r.file.secrets, r.file.hidden...)
	switch {
	case err != nil:
		return nil, err
	case len(changes) == 0 && !(r.again[old.ID] && bytes.Contains(old.Params, []byte(secret.Hidden))):
		return nil, nil // else the server does not show whether a secret is another one now
	case !r.again[old.ID] && old.Status.Finished() && r.file.asBefore(old): // also one that was skipped, or may fail
		r.kept = append(r.kept, old.Key())
		return nil, nil
	case !r.again[old.ID] && old.Status == plan.Succeeded:
		return nil, fmt.Errorf("task %q has succeeded, and %s changes its %s; leave it as it was, or run it again: name it with --downstream",
			old.Name, r.file.path, strings.Join(changes, ", its "))
	case !r.again[old.ID]:
		return nil, fmt.Errorf("task %q would not run, and %s changes its %s; name it too, or leave it as it was", old.Name, r.file.path, strings.Join(changes, ", its "))
	case (old.Expanding || old.Expanded && !r.lists) && !sameForeach(old.Foreach, now.Foreach, r.file.secrets, r.file.hidden...):
		return nil, fmt.Errorf("task %q goes over other items in %s, and its items are made already: %s changes its %s; submit the plan again",
			old.Name, r.file.path, r.file.path, strings.Join(changes, ", its "))
	}
	out := []plan.Task{{ID: old.ID, Name: old.Name, Queue: now.Queue, Definition: now.Definition, Params: now.Params}}
	for i := range r.tasks {
		t := &r.tasks[i]
		if t.Of != old.ID {
			continue
		}
		if rules.Gone(t.Status, t.Reason) {
			continue
		}
		if !r.again[t.ID] {
			if t.Status != plan.Succeeded && !(len(t.Needs) > 0 && t.State() == string(plan.ReasonSkipped)) { // its when decides again once it is asked
				return nil, fmt.Errorf("%s changes task %q, its %s, and its item %s would not run; name %q instead",
					r.file.path, old.Name, strings.Join(changes, ", its "), t.Name, old.Name)
			}
			r.kept = append(r.kept, t.Key())
			continue // what succeeded is kept as it ran
		}
		params, err := carryInputs(now.Params, t.Params)
		if err != nil {
			return nil, err
		}
		of := *now
		of.ID, of.Plan = old.ID, old.Plan
		out = append(out, rules.ItemTask(&of, t.Index, rules.ItemOf(t.Params), params, time.Now()))
	}
	return out, nil
}

// changesOf returns what differs between two versions of a task, by the keys of a plan file, with
// both values where they are known. It returns none if both do the same in the same way. Params
// that a store has delivered do not count, nor does the rank, which follows from the whole plan.
// Secrets that a server did not show do not count either; hidden are those of the plan's params.
// Names of secrets follow from the params.
func changesOf(old, now *plan.Task, mark string, secrets secret.Names, hidden ...string) ([]string, error) {
	var changes []string
	shownOld, shownNow := *old, *now
	secrets.HideTask(&shownOld, hidden...)
	secrets.HideTask(&shownNow, hidden...)
	x, y := reflect.ValueOf(old.Definition), reflect.ValueOf(now.Definition)
	shownX, shownY := reflect.ValueOf(shownOld.Definition), reflect.ValueOf(shownNow.Definition)
	for i := range x.NumField() {
		field := x.Type().Field(i)
		was, is := x.Field(i).Interface(), y.Field(i).Interface()
		if field.Name == "Rank" || field.Name == "Secrets" || reflect.DeepEqual(was, is) || field.Name == "Foreach" && sameForeach(old.Foreach, now.Foreach, secrets, hidden...) {
			continue
		}
		key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if key == "continue_on_error" { // in plan files it is written as in GitHub Actions
			key = "continue-on-error"
		}
		changes = append(changes, change(key, shownX.Field(i).Interface(), shownY.Field(i).Interface(), mark))
	}
	if old.Queue != now.Queue {
		changes = append(changes, "queue")
	}
	var a, b, shownA, shownB map[string]any
	if err := errors.Join(decode(old.Params, &a), decode(now.Params, &b), decode(shownOld.Params, &shownA), decode(shownNow.Params, &shownB)); err != nil {
		return nil, fmt.Errorf("params of task %q: %w", old.Name, err)
	}
	for _, delivered := range []string{"needs", "args"} {
		delete(a, delivered)
		delete(b, delivered)
	}
	keys := maps.Clone(a)
	maps.Copy(keys, b)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if !reflect.DeepEqual(a[key], b[key]) && !reflect.DeepEqual(a[key], shownB[key]) {
			changes = append(changes, change(key, shownA[key], shownB[key], mark))
		}
	}
	return changes, nil
}

// sameForeach reports whether two tasks go over the same, but for secrets in a that a server did not show.
func sameForeach(a, b *plan.Foreach, secrets secret.Names, hidden ...string) bool {
	if a == nil || b == nil {
		return a == b
	}
	if shown := secrets.HideForeach(b, hidden...); jsontext.Same(a.List, shown.List) {
		b = shown
	}
	x, y := *a, *b
	x.List, y.List = nil, nil
	return reflect.DeepEqual(x, y) && jsontext.Same(a.List, b.List)
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
			unset bool
		}{
			{"delay", max(v.Delay, 0), v.Delay == 0}, {"factor", v.Factor, v.Factor == 0}, {"max", max(v.Max, 0), v.Max == 0},
			{"on", v.On, v.On == ""}, {"not_on", v.NotOn, v.NotOn == ""},
		} {
			if !part.unset {
				text += fmt.Sprintf(", %s %v", part.key, part.value)
			}
		}
	default:
		raw, err := jsontext.Marshal(v)
		if err != nil { // what came from JSON can be written as JSON
			return "?"
		}
		text = string(raw)
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

// carryInputs returns params with what others have of the parents.
func carryInputs(params, others json.RawMessage) (json.RawMessage, error) {
	var to, from map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(params, &to), json.Unmarshal(others, &from)); err != nil {
		return nil, fmt.Errorf("params are not a JSON object: %w", err)
	}
	for _, k := range []string{"needs", "args"} {
		if v, ok := from[k]; ok {
			to[k] = v
		}
	}
	return json.Marshal(to)
}
