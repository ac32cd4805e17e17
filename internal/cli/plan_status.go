package cli

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/cells"
	"github.com/seed-1177d267/sluice/internal/cli/view"
	"github.com/seed-1177d267/sluice/internal/duration"
	"github.com/seed-1177d267/sluice/internal/explain"
	"github.com/seed-1177d267/sluice/internal/report"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/states"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// How many tasks "plan status" lists. It lists up to mostShown tasks, without items. In a larger
// plan it lists those that failed or run. Under a foreach task it lists so many items of each kind.
const (
	mostShown = 40
	mostItems = 10
)

func planStatus(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status PLAN",
		Short: "Show the state of a plan and its tasks",
		Long:  "Show how a plan stands, with its tasks.\n\n" + planHelp,
	}
	output := outputFlag(cmd)
	cmd.RunE = a.onPlan(func(ctx context.Context, st store.Store, p plan.Plan) error {
		nodes, err := st.Instances(ctx)
		if err != nil {
			return err
		}
		if output.json() {
			return a.printStatusJSON(ctx, st, &p, nodes)
		}
		if err := a.printStatus(ctx, st, &p, nodes); err != nil || explain.Stalled(nodes, &p) || p.State != plan.PlanRunning {
			return err // it says that already
		}
		return a.noteMissing(ctx, st, &p, nodes, nil)
	})
	return cmd
}

// planDetails is a plan with its tasks, items aside, in JSON.
type planDetails struct {
	planEntry
	Tasks []taskEntry `json:"tasks"`
}

func (a *app) printStatusJSON(ctx context.Context, st store.Store, p *plan.Plan, nodes []plan.Instance) error {
	queues, err := queueNames(ctx, st)
	if err != nil {
		return err
	}
	shown := planDetails{planEntry: entryOfPlan(p, nodes), Tasks: []taskEntry{}}
	if err := shown.countRunners(ctx, st, p, nodes); err != nil {
		return err
	}
	if shown.Outdated, err = explain.Outdated(ctx, st, p); err != nil {
		return err
	}
	err = store.EachTask(ctx, st, store.TaskQuery{Plan: p.ID, NoItems: true}, func(t *plan.Task) error {
		e := entryOfTask(t, queues)
		if spread(t) || skips(p, t) {
			items, err := itemsOf(ctx, st, t)
			if err != nil {
				return err
			}
			if t.Status != plan.Succeeded || items.broken()+items.counts.Skipped > 0 {
				e.Counts = &items.counts
			}
		}
		shown.Tasks = append(shown.Tasks, e)
		return nil
	})
	if err != nil {
		return err
	}
	return view.JSON(a.Stdout, shown)
}

func (a *app) printStatus(ctx context.Context, st store.Store, p *plan.Plan, nodes []plan.Instance) error {
	now := time.Now()
	fmt.Fprintln(a.Stdout, report.StyledVerdict(p, now, a.paint(a.Stdout)))
	closing, stalled, outside, half := "", "", "", ""
	switch {
	case underSubmission(p):
		half = a.submission(p, now)
	case p.State == plan.PlanRunning && p.Closing == plan.ClosedByPerson:
		closing = "a person cancelled it; what runs is being stopped"
	case p.State == plan.PlanRunning && p.Closing == plan.ClosedByTimeout:
		closing = "its timeout of " + duration.Text(p.Timeout) + " is over; what runs is being stopped"
	case p.State == plan.PlanRunning && p.Closing == plan.ClosedByFailure:
		closing = "a task failed; what runs goes on, and nothing more starts"
	}
	last := ""
	if p.InFinally() {
		last = fmt.Sprintf("the other tasks ended (%s), and tasks of finally run; to stop them: %s", rules.StateSeen(p), a.command("plan", "cancel", p.Title()))
	}
	if explain.Stalled(nodes, p) {
		n, err := explain.Outside(ctx, st, nodes, p)
		if err != nil {
			return err
		}
		if stalled = "no node runs it; " + a.goOn(p); n > 0 {
			stalled, outside = "", "none runs it"+stillRuns(n)+"; "+a.goOn(p)
		}
	}
	asked, only, err := awaiting(ctx, st, p)
	if err != nil {
		return err
	}
	if only {
		stalled = ""
	}
	strays, end, err := explain.Strays(ctx, st, nodes, p)
	if err != nil {
		return err
	}
	lost := ""
	if strays > 0 {
		lost = view.Number(strays, "task") + " of nodes that are gone; " + end
	}
	old, err := explain.Outdated(ctx, st, p)
	if err != nil {
		return err
	}
	failures, err := failuresRow(ctx, st, p)
	if err != nil {
		return err
	}
	started := ago(rules.Began(p), now)
	if !p.Retried.IsZero() {
		started += ", by a retry; first " + ago(p.Created, now)
	}
	for _, row := range [][2]string{
		{"id", p.ID.String()}, {"file", p.Source}, {"by", p.By}, {"started", started}, {"left", leftOf(p, now)}, {"timeout", timeoutOf(p, now)}, {"closing", closing}, {"finally", last}, {"stalled", stalled}, {"nodes", outside}, {"lost", lost}, {"tasks", half},
		{"outdated", report.Outdated(p, old, a.command)}, {"failures", failures}, {"asks", asks(asked, p, a.command)},
	} {
		if row[1] != "" {
			fmt.Fprintf(a.Stdout, "  %-8s %s\n", row[0], cells.Clean(row[1]))
		}
	}
	tasks, all, err := shownTasks(ctx, st, p)
	if err != nil || len(tasks) == 0 {
		return err
	}
	if err := tellSkips(ctx, st, tasks); err != nil {
		return err
	}
	fmt.Fprintln(a.Stdout)
	t := a.table("TASK", "STATE", "TOOK", "DETAIL")
	for i := range tasks {
		task := &tasks[i]
		if !spread(task) && !skips(p, task) {
			t.Add(task.Key(), states.OfTask(task), tookTask(task, now), a.detail(task, nodes))
			continue
		}
		items, err := itemsOf(ctx, st, task)
		if err != nil {
			return err
		}
		t.Add(task.Key(), items.state(task), tookTask(task, now), a.itemsDetail(items, task, nodes))
		if err := a.addItems(ctx, st, t, items, now, nodes); err != nil {
			return err
		}
	}
	if err := t.Print(a.Stdout); err != nil {
		return err
	}
	if !all {
		a.note("these are the tasks that run or failed; to list all tasks: %s", a.command("task", "list", "--plan", p.Title()))
	}
	return nil
}

// addItems adds those of a foreach task's items to a table that a person looks for: what failed and what runs.
func (a *app) addItems(ctx context.Context, st store.Store, t *view.Table, items *itemsState, now time.Time, nodes []plan.Instance) error {
	failed := states.WordOf(plan.Failed.String(), items.counts.Broken() == 0) // all items of a foreach may fail, or none
	for _, kind := range []struct {
		shown []plan.Task
		all   int
		word  string
	}{
		{items.failed, items.broken(), failed}, {items.active, items.counts.Running + items.counts.Claimed, "running"},
	} {
		values, err := itemValues(ctx, st, kind.shown)
		if err != nil {
			return err
		}
		for i := range kind.shown {
			item := &kind.shown[i]
			t.Add("  "+values.label(item, a.ellipsis()), states.OfTask(item), tookTask(item, now), a.detail(item, nodes))
		}
		if more := kind.all - len(kind.shown); more > 0 {
			t.Add(fmt.Sprintf("  and %s more", report.Thousands(more)), kind.word)
		}
	}
	return nil
}

// shownTasks returns the tasks that "plan status" lists, in the plan's order and without items, and whether these are all.
func shownTasks(ctx context.Context, st store.Store, p *plan.Plan) (tasks []plan.Task, all bool, err error) {
	tasks, more, err := someTasks(ctx, st, store.TaskQuery{Plan: p.ID, NoItems: true}, mostShown, nil)
	if err != nil || !more {
		return tasks, true, err
	}
	found, _, err := someTasks(ctx, st, store.TaskQuery{Plan: p.ID, Statuses: slices.Concat(activeStatuses, brokenStatuses)}, mostShown, nil)
	if err != nil {
		return nil, false, err
	}
	var of []plan.TaskID
	tasks = nil
	for _, t := range found {
		switch {
		case t.Of.IsZero():
			tasks = append(tasks, t)
		case !slices.Contains(of, t.Of):
			of = append(of, t.Of)
		}
	}
	of = slices.DeleteFunc(of, func(id plan.TaskID) bool {
		return slices.ContainsFunc(tasks, func(t plan.Task) bool { return t.ID == id })
	})
	if len(of) > 0 {
		parents, err := st.Tasks(ctx, store.TaskQuery{IDs: of, Limit: len(of)})
		if err != nil {
			return nil, false, err
		}
		tasks = append(tasks, parents...)
	}
	sort.Slice(tasks, func(x, y int) bool { return bytes.Compare(tasks[x].ID.ID[:], tasks[y].ID.ID[:]) < 0 })
	return tasks, false, nil
}

// ago says when that was; "" if it never was.
func ago(at, now time.Time) string {
	if at.IsZero() {
		return ""
	}
	return fmt.Sprintf("%s (%s)", at.Local().Format(time.DateTime), view.Ago(at, now))
}

var (
	activeStatuses = []plan.Status{plan.Claimed, plan.Running}
	brokenStatuses = []plan.Status{plan.Failed, plan.Terminated, plan.Orphaned}
)

// spread reports whether the items of a foreach task tell its state: they are made, and may not all
// have succeeded.
func spread(t *plan.Task) bool {
	return t.HasItems() && (t.Status != plan.Succeeded || t.ContinueOnError || t.MaxFailures != "")
}

// skips reports whether items of a task that succeeded may have been skipped.
func skips(p *plan.Plan, t *plan.Task) bool { return t.HasItems() && p.Counts.Skipped > 0 }

// An itemsState says how the items of a foreach task stand.
type itemsState struct {
	counts         plan.Counts
	failed, active []plan.Task // the first of them
}

func itemsOf(ctx context.Context, r store.Reader, of *plan.Task) (*itemsState, error) {
	s := &itemsState{}
	err := store.EachTask(ctx, r, store.TaskQuery{Plan: of.Plan, Of: of.ID}, func(t *plan.Task) error {
		rules.Count(&s.counts, rules.CountedOf(t), 1)
		switch {
		case view.Broken(t.Status) && len(s.failed) < mostItems:
			s.failed = append(s.failed, *t)
		case t.Status.Active() && len(s.active) < mostItems:
			s.active = append(s.active, *t)
		}
		return nil
	})
	return s, err
}

// broken returns how many items went wrong, allowed or not.
func (s *itemsState) broken() int { return s.counts.Broken() + s.counts.Allowed }

// state is the word for a foreach task: what waits for its items is held by its status, and runs as people see it.
func (s *itemsState) state(t *plan.Task) string {
	c := &s.counts
	switch {
	case t.Status != plan.Held || c.Unfinished() == 0:
		return states.OfTask(t)
	case c.Running+c.Claimed > 0 || c.Unfinished() < c.Total():
		return plan.Running.String()
	case c.Queued > 0:
		return plan.Queued.String()
	}
	return states.OfTask(t)
}

// itemsDetail is what a table says of a foreach task beyond its state.
func (a *app) itemsDetail(s *itemsState, t *plan.Task, nodes []plan.Instance) string {
	parts := []string{a.detail(t, nodes)}
	switch c := &s.counts; {
	case t.Status == plan.Held:
	case t.Status == plan.Cancelled:
		return parts[0]
	default:
		if t.Status == plan.Succeeded && c.Allowed > 0 {
			parts = append(parts, report.Thousands(c.Allowed)+" allowed")
		}
		if c.Skipped > 0 {
			parts = append(parts, report.Thousands(c.Skipped)+" skipped")
		}
		return strings.Join(parts, ", ")
	}
	parts = []string{fmt.Sprintf("%s/%s items done", report.Thousands(s.counts.Done()), report.Thousands(cmp.Or(s.counts.Total(), t.Items)))}
	for _, part := range []struct {
		n    int
		word string
	}{{s.counts.Broken(), "failed"}, {s.counts.Allowed, "allowed"}, {s.counts.Cancelled, "cancelled"}, {s.counts.Skipped, "skipped"}} {
		if part.n > 0 {
			parts = append(parts, report.Thousands(part.n)+" "+part.word)
		}
	}
	return strings.Join(parts, ", ")
}
