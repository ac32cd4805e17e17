package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/seed-1177d267/sluice/internal/compiler"
	"github.com/seed-1177d267/sluice/internal/planfile"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// noting makes the reader of a plan file note what is valid but probably not meant. failFast says
// that a failure stops the plan whatever the file says.
func (a *app) noting(o planfile.Options, failFast bool) planfile.Options {
	o.Notes = func(spec *plan.Spec) plan.Problems {
		as := *spec
		if failFast {
			as.OnFailure = plan.Stop
		}
		return append(compiler.Notes(&as), a.pluginNotes(spec, true)...)
	}
	o.Check = a.checking(o.Check)
	o.Note = func(e planfile.Error) {
		if e.Line > 0 {
			a.note("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Message)
		} else {
			a.note("%s", e.Error())
		}
	}
	return o
}

// checking returns a check of what no plugin could run, and, of a plan that has none of that, a further one.
func (a *app) checking(further func(*plan.Spec) plan.Problems) func(*plan.Spec) plan.Problems {
	return func(spec *plan.Spec) plan.Problems {
		problems := a.Plugins.Refused(spec)
		if len(problems) == 0 && further != nil {
			problems = further(spec)
		}
		return problems
	}
}

// pluginNotes asks the plugins about the params of their tasks. here says that the plan's folder is
// on this machine. If it is not, missing files are not noted.
func (a *app) pluginNotes(spec *plan.Spec, here bool) (problems plan.Problems) {
	noters, absent := map[string]plugins.Noter{}, map[string][]int{} // which tasks run a file that is missing
	var files []string                                               // of the problems
	for _, name := range pluginsOf(spec) {
		p, _ := a.Plugins.Get(name)
		if n, ok := p.(plugins.Noter); ok {
			noters[name] = n
		}
	}
	for i := range spec.Tasks {
		t := &spec.Tasks[i]
		noter := noters[cmp.Or(t.Plugin, plan.DefaultPlugin)]
		if noter == nil {
			continue
		}
		params, _ := t.Params.(json.RawMessage) // as files give them
		for _, n := range noter.Notes(params, plugins.Given(spec, t)) {
			switch {
			case n.File != "" && !here:
				continue
			case n.File != "":
				absent[n.File] = append(absent[n.File], i)
			}
			files = append(files, n.File)
			problems = append(problems, plan.Problem{Task: i, Key: n.Key, Item: n.Item, Word: n.Word, Message: fmt.Sprintf("task %q: %s", t.Name, n.Text)})
		}
	}
	for file, runs := range absent {
		if made(spec, file, runs) {
			absent[file] = nil
		}
	}
	kept := problems[:0]
	for i, p := range problems {
		if files[i] == "" || absent[files[i]] != nil {
			kept = append(kept, p)
		}
	}
	return kept
}

// made reports whether another task names the file among its params, and so may make it. runs are
// the tasks that run the file, in order.
func made(spec *plan.Spec, file string, runs []int) bool {
	for i := range spec.Tasks {
		params, _ := spec.Tasks[i].Params.(json.RawMessage)
		if _, runs := slices.BinarySearch(runs, i); !runs && bytes.Contains(params, []byte(file)) {
			return true
		}
	}
	return false
}
