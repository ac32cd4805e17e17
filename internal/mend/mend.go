// Package mend compares a plan in a store with a changed version of it, for retries: which tasks the
// version does in another way, and what replaces them. It opens no store.
package mend

import (
	"bytes"
	"cmp"
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
	"github.com/seed-1177d267/sluice/plan"
)

// A Version is a plan as somebody has changed it since it was submitted.
type Version struct {
	Plan    *plan.Plan
	Name    string       // of the version, for errors: the path of its file
	Stored  []plan.Task  // of the plan, with their params
	Tasks   []plan.Task  // of the version, compiled for the plan's id
	Secrets secret.Names // which are not printed,
	Hidden  []string     // nor these, which they are in params
	Mark    string       // for what is cut off values
	// AsBefore reports whether a task ran as the version says, with the params of its time. nil: no task did.
	AsBefore func(old *plan.Task) bool
	// Partly says that a later retry replaces what does not run again now.
	Partly bool
}

// Replacements returns the tasks of the version that replace those selected for a retry. The version
// must be the same plan with some tasks done in another way. Replacements refuses other tasks and other
// needs. It refuses a change to a task that does not run again, unless only the params cause the change:
// kept are the names of such tasks.
//
// If lists is set, a foreach task whose items are made may have another list, since the retry compares that
// with the items.
func (v *Version) Replacements(selected []rules.Retried, lists bool) (replace []plan.Task, kept []string, err error) {
	r := replacer{Version: v, lists: lists, again: map[plan.TaskID]bool{}, byID: map[plan.TaskID]*plan.Task{}}
	for _, s := range selected {
		r.again[s.ID] = true
	}
	for i := range v.Stored {
		r.byID[v.Stored[i].ID] = &v.Stored[i]
	}
	named, newNames := ByName(v.Stored), NamesOf(v.Tasks)
	missing := maps.Clone(named)
	var problems []error
	for i := range v.Tasks {
		now := &v.Tasks[i]
		old, ok := named[now.Name]
		if !ok {
			do := "add it with sluice plan add"
			if rules.CheckTakesTasks(v.Plan) != nil {
				do = "submit the plan again"
			}
			problems = append(problems, fmt.Errorf("task %q is not in %s; %s, or take it out of %s", now.Name, v.Plan.Title(), do, v.Name))
			continue
		}
		delete(missing, old.Name)
		more, err := r.replace(old, now, newNames)
		problems = append(problems, err)
		replace = append(replace, more...)
	}
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		problems = append(problems, fmt.Errorf("task %q of %s is not in %s; a retry changes tasks, and removes none", name, v.Plan.Title(), v.Name))
	}
	return replace, r.kept, errors.Join(problems...)
}

type replacer struct {
	*Version
	lists bool
	again map[plan.TaskID]bool
	byID  map[plan.TaskID]*plan.Task
	kept  []string // ran with other params, and stay
}

func (r *replacer) asBefore(old *plan.Task) bool { return r.AsBefore != nil && r.AsBefore(old) }

// replace returns what is to replace a task of the plan, and its items if it has some: nothing, if it is the same.
func (r *replacer) replace(old, now *plan.Task, newNames map[plan.TaskID]string) ([]plan.Task, error) {
	v := r.Version
	needs := joined(now.Needs, func(id plan.TaskID) string { return newNames[id] })
	needed := joined(old.Needs, func(id plan.TaskID) string {
		if parent, ok := r.byID[id]; ok {
			return parent.Key()
		}
		return id.String() // it is of no plan, or deleted
	})
	if needs != needed {
		return nil, fmt.Errorf("task %q needs %s in %s, and %s in %s; a retry cannot change what a task needs; submit the plan again",
			old.Name, cmp.Or(needs, "nothing"), v.Name, cmp.Or(needed, "nothing"), v.Plan.Title())
	}
	if err := rules.CheckReplaced(old, now); err != nil {
		return nil, err
	}
	changes, err := Changes(old, now, v.Mark, v.Secrets, v.Hidden...)
	switch {
	case err != nil:
		return nil, err
	case len(changes) == 0 && !(r.again[old.ID] && holdsHidden(old)):
		return nil, nil // else the server does not show whether a secret is another one now
	case v.Partly && !r.again[old.ID]:
		return nil, nil
	case !r.again[old.ID] && old.Status.Finished() && r.asBefore(old): // also one that was skipped, or may fail
		r.kept = append(r.kept, old.Key())
		return nil, nil
	case !r.again[old.ID] && old.Status == plan.Succeeded:
		return nil, fmt.Errorf("task %q has succeeded, and %s changes its %s; leave it as it was, or run it again: name it with --downstream",
			old.Name, v.Name, strings.Join(changes, ", its "))
	case !r.again[old.ID]:
		return nil, fmt.Errorf("task %q would not run, and %s changes its %s; name it too, or leave it as it was", old.Name, v.Name, strings.Join(changes, ", its "))
	case (old.Expanding || old.Expanded && !r.lists) && !SameForeach(old.Foreach, now.Foreach, v.Secrets, v.Hidden...):
		return nil, fmt.Errorf("task %q goes over other items in %s, and its items are made already: %s changes its %s; submit the plan again",
			old.Name, v.Name, v.Name, strings.Join(changes, ", its "))
	}
	out := []plan.Task{{ID: old.ID, Name: old.Name, Queue: now.Queue, Definition: now.Definition, Params: now.Params}}
	for i := range v.Stored {
		t := &v.Stored[i]
		if t.Of != old.ID {
			continue
		}
		if rules.Gone(t.Status, t.Reason) {
			continue
		}
		if !r.again[t.ID] {
			if t.Status != plan.Succeeded && !(len(t.Needs) > 0 && t.State() == string(plan.ReasonSkipped)) { // its when decides again once it is asked
				return nil, fmt.Errorf("%s changes task %q, its %s, and its item %s would not run; name %q instead",
					v.Name, old.Name, strings.Join(changes, ", its "), t.Name, old.Name)
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

// holdsHidden reports whether a part of a task is not shown.
func holdsHidden(t *plan.Task) bool {
	return bytes.Contains(t.Params, []byte(secret.Hidden)) || strings.Contains(t.If, secret.Hidden) ||
		t.Approve != nil && strings.Contains(t.Approve.Question, secret.Hidden)
}

// Changes returns what differs between two versions of a task, by the keys of a plan file, with
// both values where they are known. It returns none if both do the same in the same way. Params
// that a store has delivered do not count, nor does the rank, which follows from the whole plan.
// Secrets that a server did not show do not count either; hidden are those of the plan's params.
// Names of secrets follow from the params.
func Changes(old, now *plan.Task, mark string, secrets secret.Names, hidden ...string) ([]string, error) {
	var changes []string
	shownOld, shownNow := *old, *now
	secrets.HideTask(&shownOld, hidden...)
	secrets.HideTask(&shownNow, hidden...)
	x, y := reflect.ValueOf(old.Definition), reflect.ValueOf(now.Definition)
	shownX, shownY := reflect.ValueOf(shownOld.Definition), reflect.ValueOf(shownNow.Definition)
	for i := range x.NumField() {
		field := x.Type().Field(i)
		was, is := x.Field(i).Interface(), y.Field(i).Interface()
		if field.Name == "Rank" || field.Name == "Secrets" || reflect.DeepEqual(was, is) || reflect.DeepEqual(was, shownY.Field(i).Interface()) ||
			field.Name == "Foreach" && SameForeach(old.Foreach, now.Foreach, secrets, hidden...) {
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

// SameForeach reports whether two tasks go over the same, but for secrets in a that a server did not show.
func SameForeach(a, b *plan.Foreach, secrets secret.Names, hidden ...string) bool {
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

// ByName returns the tasks that are no items by their names.
func ByName(tasks []plan.Task) map[string]*plan.Task {
	named := make(map[string]*plan.Task, len(tasks))
	for i := range tasks {
		if tasks[i].Of.IsZero() {
			named[tasks[i].Name] = &tasks[i]
		}
	}
	return named
}

// NamesOf returns the names of tasks by their ids.
func NamesOf(tasks []plan.Task) map[plan.TaskID]string {
	names := make(map[plan.TaskID]string, len(tasks))
	for i := range tasks {
		names[tasks[i].ID] = tasks[i].Name
	}
	return names
}

// joined writes the words of tasks as a list.
func joined(ids []plan.TaskID, word func(plan.TaskID) string) string {
	words := make([]string, len(ids))
	for i, id := range ids {
		words[i] = word(id)
	}
	return strings.Join(words, ", ")
}
