package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/internal/duration"
	"github.com/seed-1177d267/sluice/internal/mend"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/secret"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/submit"
	"github.com/seed-1177d267/sluice/plan"
)

// A replacement is what a plan file says that was changed since the plan was submitted, for the tasks of a retry.
type replacement struct {
	tasks   []plan.Task              // the new definitions
	params  json.RawMessage          // the plan's params, if they are others
	choices map[string]rules.Choices // of these
	timeout *time.Duration           // the plan's timeout, if it is another one
	lines   []string                 // for people: what of these is other, and what ran with the old params
	stays   string                   // for people: which params are not as the file has them by default

	secrets secret.Names
}

// replacements returns the tasks of a changed plan file that replace those selected for a retry, as
// mend.Version has them. With partly, what does not run again is left to a later retry.
func (file *fileAgain) replacements(selected []rules.Retried, lists, partly bool) (*replacement, error) {
	out := &replacement{stays: file.stays(""), choices: file.text.choices, secrets: file.secrets}
	var kept []string
	var err error
	version := file.version()
	version.Partly = partly
	if out.tasks, kept, err = version.Replacements(selected, lists); err != nil {
		return nil, asUsage(err)
	}
	if partly { // its params come with the later retry
		return out, nil
	}
	if out.lines = file.changedParams(); len(out.lines) > 0 {
		if out.params, err = json.Marshal(file.values); err != nil {
			return nil, err
		}
		if line := keptLine(kept); line != "" {
			out.lines = append(out.lines, line)
		}
	}
	if file.timeout != file.p.Timeout {
		out.timeout = &file.timeout
		out.lines = append(out.lines, fmt.Sprintf("the timeout of the plan is %s now, and was %s", timeoutText(file.timeout), timeoutText(file.p.Timeout)))
	}
	return out, nil
}

func timeoutText(d time.Duration) string {
	if d == 0 {
		return "none"
	}
	return duration.Text(d)
}

// version returns the file as a version of its plan.
func (f *fileAgain) version() *mend.Version {
	return &mend.Version{Plan: f.p, Name: f.path, Stored: f.stored, Tasks: f.tasks, Secrets: f.secrets, Hidden: f.hidden, Mark: f.mark, AsBefore: f.asBefore}
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
	named := mend.ByName(f.stored)
	for i := range f.tasks {
		now := &f.tasks[i]
		if old := named[now.Name]; old != nil && old.HasItems() && !mend.SameForeach(old.Foreach, now.Foreach, f.secrets, f.hidden...) {
			replace = append(replace, plan.Task{ID: old.ID, Name: old.Name, Queue: now.Queue, Definition: now.Definition, Params: now.Params})
		}
	}
	return replace
}

// mostValue is how many columns of a value are shown.
const mostValue = 40
