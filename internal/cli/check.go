package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// lacks returns what a task would not find in this process, as far as that is certain before anything runs.
func (a *app) lacks(plugin string, params json.RawMessage, first bool) []plugins.Lack {
	p, _ := a.Plugins.Get(plugin)
	if c, ok := p.(plugins.Checker); ok {
		return c.Check(params, first)
	}
	return nil
}

func lackText(task string, l *plugins.Lack) string {
	if l.Key != "" {
		return fmt.Sprintf("task %q: %s: %v", task, l.Variable, l.Err)
	}
	return fmt.Sprintf("task %q: env %s: %v", task, l.Variable, l.Err)
}

// checkSpec says what the tasks of a plan would not find in this process.
func (a *app) checkSpec(spec *plan.Spec) plan.Problems {
	var problems plan.Problems
	for i := range spec.Tasks {
		t := &spec.Tasks[i]
		params, _ := t.Params.(json.RawMessage) // as files give them
		for _, l := range a.lacks(cmp.Or(t.Plugin, plan.DefaultPlugin), params, len(t.Parents()) == 0) {
			problems = append(problems, plan.Problem{Task: i, Key: cmp.Or(l.Key, "env"), Word: l.Variable, Item: -1, Message: lackText(t.Name, &l)})
		}
	}
	return problems
}

// checkRun is checkSubmitter and checkSpec.
func (a *app) checkRun(spec *plan.Spec) plan.Problems {
	return append(a.checkSubmitter(spec), a.checkSpec(spec)...)
}

// checkSubmitter finds tasks that exclude who submits the plan, where nobody knows who that is. A server knows it,
// or it is the one to refuse.
func (a *app) checkSubmitter(spec *plan.Spec) (problems plan.Problems) {
	if url, _ := a.serverURL(); url != "" {
		return nil
	}
	for i := range spec.Tasks {
		if t := &spec.Tasks[i]; t.Approve != nil && t.Approve.NotSubmitter {
			problems = append(problems, plan.Problem{Task: i, Key: "not_submitter", Item: -1, Message: fmt.Sprintf(
				"task %q: not_submitter excludes who submits the plan, and without a server nobody knows who that is; submit it with --server URL to a server with an access file, or drop not_submitter", t.Name)})
		}
	}
	return problems
}

// cannotRun says that this program cannot run a plan, which would wait for ever.
func (a *app) cannotRun(p *plan.Plan, plugin string) error {
	return usagef("%s has tasks for plugin %q, %s; a program that has it goes on with the plan", p.Title(), plugin, a.notBuiltIn(plugin))
}

// checkStored refuses to run the rest of a stored plan if this process lacks what its tasks need,
// such as a plugin. runs tells which finished tasks run again, and in what form; nil: none does.
func (a *app) checkStored(ctx context.Context, st store.Reader, p *plan.Plan, runs func(*plan.Task) *plan.Task) error {
	queues, err := st.Queues(ctx)
	if err != nil {
		return err
	}
	plugin := make(map[plan.QueueID]string, len(queues))
	for i := range queues {
		plugin[queues[i].ID] = queues[i].Plugin
	}
	built := map[string]bool{}
	for _, name := range a.Plugins.Names() {
		built[name] = true
	}
	q := store.TaskQuery{Plan: p.ID, Needs: true, Params: true}
	if runs == nil {
		q.Statuses = []plan.Status{plan.Held, plan.Queued, plan.Claimed, plan.Running}
		runs = func(t *plan.Task) *plan.Task { return t }
	}
	const most = 10 // lines that say what is missing
	first, more := map[string]string{}, map[string]int{}
	var missing []string
	err = store.EachTask(ctx, st, q, func(t *plan.Task) error {
		needs := len(t.Needs)
		if !t.Of.IsZero() {
			needs++ // those of its foreach task
		}
		status := t.Status
		if t = runs(t); t == nil {
			return nil
		}
		if name, known := plugin[t.Queue]; known && !built[name] {
			return a.cannotRun(p, name)
		}
		for _, l := range a.lacks(plugin[t.Queue], t.Params, needs == 0 || status == plan.Queued) {
			key := l.Err.Error()
			if first[key] == "" {
				first[key] = lackText(t.Key(), &l)
				missing = append(missing, key)
			} else {
				more[key]++
			}
		}
		return nil
	})
	if err != nil || len(missing) == 0 {
		return err
	}
	of := p.Title()
	if p.Source != "" {
		of += " (" + p.Source + ")"
	}
	var lines []string
	for _, key := range missing[:min(len(missing), most)] {
		line := of + ": " + first[key]
		switch n := more[key]; {
		case n == 1:
			line += "; another task needs it too"
		case n > 1:
			line += fmt.Sprintf("; %d more tasks need it too", n)
		}
		lines = append(lines, line)
	}
	return usagef("%s", strings.Join(lines, "\n"))
}
