package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/internal/cli/view"
	"github.com/seed-1177d267/sluice/internal/compiler"
	"github.com/seed-1177d267/sluice/internal/explain"
	"github.com/seed-1177d267/sluice/internal/hint"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// noteUnserved notes on stderr that the plan only waits for an answer, or that no live node can run the
// rest of it, and what to do.
// needed are the plugins of its tasks, if the caller knows them.
func (a *app) noteUnserved(ctx context.Context, st store.Reader, p *plan.Plan, needed []string) error {
	if underSubmission(p) {
		a.note("%s is not ready: %s", p.Title(), a.submission(p, time.Now()))
	}
	if p.State != plan.PlanRunning {
		return nil
	}
	nodes, err := st.Instances(ctx)
	if err != nil {
		return err
	}
	asked, only, err := awaiting(ctx, st, p)
	if err != nil {
		return err
	}
	stalled := explain.Stalled(nodes, p)
	switch {
	case only:
		a.note("%s", waitsFor(asked, p, a.command))
	case stalled:
		outside, err := explain.Outside(ctx, st, nodes, p)
		if err != nil {
			return err
		}
		a.note("no node runs %s%s; %s", p.Title(), stillRuns(outside), a.goOn(p))
	}
	if stalled {
		return nil
	}
	return a.noteMissing(ctx, st, p, nodes, needed)
}

// noteMissing notes on stderr that no live node has a plugin that the rest of the plan needs. needed is
// as for noteUnserved.
func (a *app) noteMissing(ctx context.Context, st store.Reader, p *plan.Plan, nodes []plan.Instance, needed []string) (err error) {
	if needed == nil {
		if needed, err = pluginsLeft(ctx, st, p); err != nil {
			return err
		}
	}
	if missing := explain.Missing(nodes, p.ID, needed); len(missing) > 0 {
		a.note("no live node has the plugin %s, which %s needs; %s lists what they have", strings.Join(missing, ", "), p.Title(), a.command("node", "list"))
	}
	return nil
}

// stillRuns says which part of a plan without nodes continues, because task runners have some of
// its tasks, and which does not.
func stillRuns(outside int) string {
	if outside == 0 {
		return ""
	}
	return fmt.Sprintf(", but task runners go on with %s; nothing else of it starts, or is tried again, before there is a node", view.Number(outside, "task"))
}

// startThere says how to bring a node to what a server has.
const startThere = "start one on the store that the server is for: sluice worker --store URI"

// goOn says how to bring a node to a plan that none runs.
func (a *app) goOn(p *plan.Plan) string {
	if a.served() {
		return startThere
	}
	here := "go on with: " + a.command(hint.Resume(p).Do...)
	if p.Own {
		return here
	}
	return "start one: " + a.command("worker") + ", or " + here
}

// pluginsOf returns the plugins of a plan's tasks.
func pluginsOf(spec *plan.Spec) (plugins []string) {
	for _, q := range compiler.Queues(spec) {
		if !slices.Contains(plugins, q.Plugin) {
			plugins = append(plugins, q.Plugin)
		}
	}
	return plugins
}

// notBuiltIn says that this program does not have the plugin, and which it has; "" if it does.
func (a *app) notBuiltIn(plugin string) string {
	if _, ok := a.Plugins.Get(plugin); ok {
		return ""
	}
	names := a.Plugins.Names()
	return fmt.Sprintf("which is not built in here; there are %s%s", strings.Join(names, ", "), hint.Meant(plugin, names))
}

// pluginsLeft returns the plugins of what is unfinished in the plan, as far as its first thousand such tasks tell.
func pluginsLeft(ctx context.Context, r store.Reader, p *plan.Plan) ([]string, error) {
	left, err := r.Tasks(ctx, store.TaskQuery{Plan: p.ID, Statuses: []plan.Status{plan.Held, plan.Queued}, Limit: 1000})
	if err != nil || len(left) == 0 {
		return nil, err
	}
	queues, err := r.Queues(ctx)
	if err != nil {
		return nil, err
	}
	return pluginsOfTasks(left, queues), nil
}

// pluginsOfTasks returns the plugins of the queues that the tasks are in.
func pluginsOfTasks(tasks []plan.Task, queues []plan.Queue) (needed []string) {
	for i := range tasks {
		k := slices.IndexFunc(queues, func(q plan.Queue) bool { return q.ID == tasks[i].Queue })
		if k >= 0 && !slices.Contains(needed, queues[k].Plugin) {
			needed = append(needed, queues[k].Plugin)
		}
	}
	return needed
}
