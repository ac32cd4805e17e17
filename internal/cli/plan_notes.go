package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"sync"

	"github.com/seed-1177d267/sluice/internal/planfile"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// noting makes reading a plan file tell of what is valid in it and probably not meant. failFast says that a failure stops the plan whatever
// the file says.
func (a *app) noting(o planfile.Options, failFast bool) planfile.Options {
	o.Notes = func(spec *plan.Spec) plan.Problems {
		as := *spec
		if failFast {
			as.OnFailure = plan.Stop
		}
		return append(as.Notes(), a.pluginNotes(spec)...)
	}
	o.Note = func(e planfile.Error) {
		if e.Line > 0 {
			a.note("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Message)
		} else {
			a.note("%s", e.Error())
		}
	}
	return o
}

// pluginNotes asks the plugins about the params of their tasks.
func (a *app) pluginNotes(spec *plan.Spec) (problems plan.Problems) {
	noters := map[string]plugins.Noter{}
	for _, name := range pluginsOf(spec) {
		p, _ := a.Plugins.Get(name)
		if n, ok := p.(plugins.Noter); ok {
			noters[name] = n
		}
	}
	items := telling(spec)
	for i := range spec.Tasks {
		t := &spec.Tasks[i]
		noter := noters[cmp.Or(t.Plugin, plan.DefaultPlugin)]
		if noter == nil {
			continue
		}
		given := spec.Params
		if t.Foreach != nil {
			given = maps.Clone(given)
			if given == nil {
				given = map[string]json.RawMessage{}
			}
			if given["item"] = items(t.Foreach); given["item"] == nil {
				given["item"] = json.RawMessage(`""`) // there is one, of which no more is known
			}
		}
		params, _ := t.Params.(json.RawMessage) // as files give them
		for _, n := range noter.Notes(params, given) {
			problems = append(problems, plan.Problem{Task: i, Key: n.Key, Item: n.Item, Word: n.Word, Message: fmt.Sprintf("task %q: %s", t.Name, n.Text)})
		}
	}
	return problems
}

// telling returns what returns an item of a foreach task that is a list or an object, if there is one and it is known before the plan runs.
func telling(spec *plan.Spec) func(*plan.Foreach) json.RawMessage {
	params := sync.OnceValue(func() json.RawMessage {
		all, _ := json.Marshal(spec.Params) // raw values that were decoded before
		return all
	})
	known := map[string]json.RawMessage{} // by path: many tasks may go over one param
	return func(f *plan.Foreach) json.RawMessage {
		switch {
		case f == nil:
			return nil
		case f.Value == "":
			return firstComposite(f.List)
		}
		item, ok := known[f.Value]
		if !ok {
			list, _, _ := plan.Lookup(f.Value, func(word string) (json.RawMessage, bool, error) { return params(), word == "params", nil })
			item = firstComposite(list)
			known[f.Value] = item
		}
		return item
	}
}

// firstComposite returns the first item of a list that is a list or an object, if there is one.
func firstComposite(list json.RawMessage) json.RawMessage {
	if list == nil {
		return nil
	}
	items, _ := plan.Items(list) // what is wrong with them is said elsewhere
	for _, item := range items {
		if item[0] == '{' || item[0] == '[' {
			return item
		}
	}
	return nil
}
