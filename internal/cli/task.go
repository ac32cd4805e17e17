package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-1177d267/sluice/internal/cells"
	"github.com/seed-1177d267/sluice/internal/cli/view"
	"github.com/seed-1177d267/sluice/internal/duration"
	"github.com/seed-1177d267/sluice/internal/explain"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

const taskHelp = "A task is named by two words, PLAN TASK, or by its id or the first digits of it. " + planHelp

func taskCommands(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use:   "task",
		Short: "Look at tasks, and act on them",
		Long:  "Look at tasks, and act on them.\n\n" + taskHelp,
	}, taskList(a), taskShow(a), taskLogs(a), taskAdd(a), taskCancel(a), taskRetry(a))
}

// A taskEntry is a task in JSON listings.
type taskEntry struct {
	ID        plan.TaskID     `json:"id"`
	Name      string          `json:"name"`
	Plan      plan.PlanID     `json:"plan,omitzero"`
	Queue     string          `json:"queue"`
	State     string          `json:"state"`
	Status    plan.Status     `json:"status"`
	Reason    plan.Reason     `json:"reason,omitempty"`
	Allowed   bool            `json:"allowed,omitempty"` // it went wrong, and its plan allows that
	Detail    string          `json:"detail,omitempty"`
	Exit      *plan.Exit      `json:"exit,omitempty"`
	Attempt   int             `json:"attempt,omitempty"`
	Rescues   int             `json:"rescues,omitempty"`
	Node      plan.NodeName   `json:"node,omitempty"`
	Progress  *plan.Progress  `json:"progress,omitempty"` // of a running task that said how far it is
	Of        plan.TaskID     `json:"of,omitzero"`
	Index     *int            `json:"index,omitempty"`
	Item      json.RawMessage `json:"item,omitempty"` // what an item is for
	Items     int             `json:"items,omitempty"`
	Counts    *plan.Counts    `json:"counts,omitempty"` // of the items
	NotBefore time.Time       `json:"not_before,omitzero"`
	Created   time.Time       `json:"created"`
	Started   startTime       `json:"started,omitzero"`
	Ended     time.Time       `json:"ended,omitzero"`
}

// A startTime is when the last attempt at a task was started: zero if there was none, and null in JSON if nobody knows.
type startTime struct {
	time.Time
	unknown bool
}

// IsZero reports whether there is nothing to say of it.
func (s startTime) IsZero() bool { return !s.unknown && s.Time.IsZero() }

// MarshalJSON implements json.Marshaler.
func (s startTime) MarshalJSON() ([]byte, error) {
	if s.unknown {
		return []byte("null"), nil
	}
	return json.Marshal(s.Time)
}

// notKnown stands in tables for a time that nobody knows.
const notKnown = "-"

// startUnknown reports whether a task ran, and when it began is not known: other programs' nodes and task runners keep no such time.
func startUnknown(t *plan.Task) bool {
	ran := t.Status == plan.Running || t.Status.Finished() && t.Status != plan.Cancelled
	return ran && t.Started.IsZero() && t.Node != "" && !t.Expanded
}

func entryOfTask(t *plan.Task, queues map[plan.QueueID]string) taskEntry {
	e := taskEntry{
		ID: t.ID, Name: t.Name, Plan: t.Plan, Queue: queues[t.Queue], State: t.State(), Status: t.Status, Reason: t.Reason, Allowed: t.Allowed(), Detail: t.Detail,
		Exit: t.Exit, Attempt: t.Attempt, Rescues: t.Rescues, Node: t.Node, Progress: t.Progress, Of: t.Of, Items: t.Items, NotBefore: t.NotBefore,
		Created: t.Created, Started: startTime{t.Started, startUnknown(t)}, Ended: t.Ended,
	}
	if !t.Of.IsZero() {
		e.Index = &t.Index
	}
	return e
}

func queueNames(ctx context.Context, r store.Reader) (map[plan.QueueID]string, error) {
	queues, err := r.Queues(ctx)
	names := make(map[plan.QueueID]string, len(queues))
	for _, q := range queues {
		names[q.ID] = q.Name
	}
	return names, err
}

// eachTask calls do with every task that the query selects, in its order.
func eachTask(ctx context.Context, r store.Reader, q store.TaskQuery, do func(*plan.Task) error) error {
	return eachPage(ctx, r, q, func(tasks []plan.Task) error {
		for i := range tasks {
			if err := do(&tasks[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// eachPage is eachTask with many tasks at a time.
func eachPage(ctx context.Context, r store.Reader, q store.TaskQuery, do func([]plan.Task) error) error {
	q.Limit = 1000
	for {
		found, err := r.Tasks(ctx, q)
		if err != nil {
			return err
		}
		if err := do(found); err != nil {
			return err
		}
		if len(found) < q.Limit {
			return nil
		}
		q.After = found[len(found)-1].ID
	}
}

// someTasks reads up to limit tasks (0: all) that the query selects and keep takes, if it is given, and reports whether there are more.
func someTasks(ctx context.Context, r store.Reader, q store.TaskQuery, limit int, keep func(*plan.Task) bool) (tasks []plan.Task, more bool, err error) {
	for {
		q.Limit = 1000
		if limit > 0 && keep == nil {
			q.Limit = min(q.Limit, limit-len(tasks)+1)
		}
		found, err := r.Tasks(ctx, q)
		if err != nil {
			return nil, false, err
		}
		last := len(found) < q.Limit
		if len(found) > 0 {
			q.After = found[len(found)-1].ID
		}
		if keep != nil {
			found = slices.DeleteFunc(found, func(t plan.Task) bool { return !keep(&t) })
		}
		tasks = append(tasks, found...)
		if limit > 0 && len(tasks) > limit {
			return tasks[:limit], true, nil
		}
		if last {
			return tasks, false, nil
		}
	}
}

func taskList(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List tasks, newest first, or those of a plan in its order",
		Long:    "List tasks: the newest first, or with --plan those of that plan, in its order, each foreach task with its items below it.",
		Args:    noneBut("plan"),
		Example: "  sluice task list --plan nightly --state failed\n  sluice task list --state running --output json",
	}
	output := wideFlag(cmd)
	in := cmd.Flags().String("plan", "", "only tasks of this plan")
	queue := cmd.Flags().String("queue", "", "only tasks of this queue")
	state := cmd.Flags().StringSlice("state", nil, "only tasks in one of these states: "+strings.Join(plan.Words(), ", ")+",\nor with that status, a number")
	cmd.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "status" { // as Disbatch's tools call it
			name = "state"
		}
		return pflag.NormalizedName(name)
	})
	limit := limitFlag(cmd, 100)
	completeBy(cmd, "plan", a.completeFlag)
	completeBy(cmd, "queue", a.completeQueueFlag)
	completeWords(cmd, "state", plan.Words())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx := cmd.Context()
		q := store.TaskQuery{Newest: true}
		var keep func(*plan.Task) bool
		var err error
		if len(*state) > 0 {
			if q.Statuses, keep, err = statuses(*state); err != nil {
				return err
			}
		}
		return a.withStore(ctx, func(st store.Store) error {
			if *in != "" {
				p, err := findPlan(ctx, st, *in)
				if err != nil {
					return err
				}
				q.Plan, q.Newest = p.ID, false
			}
			queues, err := queueNames(ctx, st)
			if err != nil {
				return err
			}
			if *queue != "" {
				found, err := findQueue(ctx, st, *queue)
				if err != nil {
					return err
				}
				q.Queue = found.ID
			}
			tasks, more, err := someTasks(ctx, st, q, *limit, keep)
			if err != nil {
				return err
			}
			if *in != "" {
				itemsBelow(tasks)
			}
			nodes, err := st.Instances(ctx)
			if err != nil {
				return err
			}
			values, err := itemValues(ctx, st, tasks)
			if err != nil {
				return err
			}
			if !output.json() {
				if err := tellSkips(ctx, st, tasks); err != nil {
					return err
				}
			}
			if err := a.printTasks(output, tasks, queues, values, nodes); err != nil {
				return err
			}
			if !output.json() {
				a.noteFailures(tasks)
			}
			if *in == "" { // a task of a plan is never in such a queue
				if err := a.noteRefused(ctx, st); err != nil {
					return err
				}
			}
			return a.noteMore(cmd, more, "tasks")
		})
	}
	return cmd
}

// itemsBelow orders tasks of one plan as it has them, the items of a foreach task after that: their ids lie anywhere among the others.
func itemsBelow(tasks []plan.Task) {
	sort.SliceStable(tasks, func(x, y int) bool { return tasks[x].Place().Compare(tasks[y].Place()) < 0 })
}

// statuses reads the words of --state; see plan.ParseStates.
func statuses(words []string) (codes []plan.Status, keep func(*plan.Task) bool, err error) {
	codes, keep, err = plan.ParseStates(words)
	if wrong := plan.StateError(""); errors.As(err, &wrong) {
		return nil, nil, usagef("%w%s", err, didYouMean(string(wrong), plan.Words()))
	}
	return codes, keep, err
}

func (a *app) printTasks(output *format, tasks []plan.Task, queues map[plan.QueueID]string, values values, nodes []plan.Instance) error {
	if output.json() {
		entries := make([]taskEntry, len(tasks))
		for i := range tasks {
			entries[i] = entryOfTask(&tasks[i], queues)
			entries[i].Item = values[tasks[i].ID]
		}
		return view.JSON(a.Stdout, entries)
	}
	t := view.Table{Head: []string{"TASK", "STATE", "QUEUE", "TOOK", "NODE", "DETAIL"}, Paint: a.paint(a.Stdout).States(1)}
	if output.wide() {
		t.Head = append(t.Head, "ID")
	}
	now := time.Now()
	for i := range tasks {
		task := &tasks[i]
		row := []string{values.label(task, a.ellipsis()), task.Word(), queues[task.Queue], tookTask(task, now), string(task.Node), a.detail(task, nodes)}
		if output.wide() {
			row = append(row, task.ID.String())
		}
		t.Add(row...)
	}
	return t.Print(a.Stdout)
}

func tookTask(t *plan.Task, now time.Time) string {
	switch {
	case startUnknown(t):
		return notKnown
	case t.Started.IsZero():
		return ""
	case t.Status == plan.Running:
		return duration.Text(now.Sub(t.Started))
	case t.Ended.IsZero():
		return ""
	}
	return duration.Text(t.Ended.Sub(t.Started))
}

// detail is what a table says of a task beyond its state, in one line. nodes are those of its store.
func (a *app) detail(t *plan.Task, nodes []plan.Instance) string {
	d, _, _ := strings.Cut(t.Detail, "\n")
	if t.Progress != nil {
		d = t.Progress.String() // of this attempt, and not why the one before failed
	}
	d = cells.Cut(cells.Clean(d), 80, a.ellipsis())
	switch {
	case t.Status.Active() && !explain.Holds(nodes, t):
		return fmt.Sprintf("its node %s is gone", t.Node)
	case t.Items > 0 && (t.Status == plan.Held && t.Expanded || t.Status == plan.Succeeded):
		return view.Number(t.Items, "item")
	case t.Status > plan.Failed && d == "":
		return fmt.Sprintf("status %d", t.Status)
	case t.Attempt > 1 && d == "":
		return fmt.Sprintf("attempt %d", t.Attempt)
	case t.Attempt > 1:
		return fmt.Sprintf("attempt %d: %s", t.Attempt, d)
	}
	return d
}

// tellSkips gives tasks that were skipped a detail that says why: stores keep none, as it follows from the tasks that they need.
func tellSkips(ctx context.Context, r store.Reader, tasks []plan.Task) error {
	why, err := explain.Skips(ctx, r, tasks)
	for i := range tasks {
		tasks[i].Detail = cmp.Or(why[tasks[i].ID], tasks[i].Detail)
	}
	return err
}

func taskCancel(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cancel {PLAN TASK | ID}",
		Short: "Cancel a task: stop it, or never start it",
		Long: "Cancel a task: stop it if it runs, else never start it. What needs it is skipped; but a clean-up (when:\n" +
			"any_failed) that needs it runs if it was stopped, which counts as a failure, and one with when: all_done in any case. With\n" +
			"on_failure: stop in the plan neither does, once it was stopped.\n\n" + taskHelp,
		Args:              between(1, 2),
		ValidArgsFunction: a.completePlan,
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		return a.withTask(ctx, args, func(st store.Store, t plan.Task) error {
			if err := plan.CheckCancelTask(&t); err != nil {
				return err
			}
			if err := st.CancelTask(ctx, t.ID); err != nil {
				return fmt.Errorf("cancel task %s: %w", t.Key(), err)
			}
			word := "is cancelled"
			switch {
			case t.Status.Active():
				word = fmt.Sprintf("will be stopped by node %s", cells.Clean(string(t.Node)))
			case t.Expanded:
				now, err := st.Task(ctx, t.ID)
				if err != nil && !errors.Is(err, plan.ErrTooMuchOutput) {
					return err
				}
				if !now.Status.Finished() {
					word = "is being cancelled: it ends when those of its items have that run"
				}
			}
			_, err := fmt.Fprintf(a.Stdout, "%s %s\n", cells.Clean(t.Key()), word)
			return err
		})
	}
	return cmd
}

func taskRetry(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:               "retry {PLAN TASK | ID}",
		Short:             "Run a task again that failed, with what was skipped below it",
		Long:              "Run a task again that failed, with what was skipped below it in its plan; of tasks of no plan only the one that is named.\n\n" + taskHelp,
		Args:              between(1, 2),
		ValidArgsFunction: a.completePlan,
	}
	flags := retryFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		return a.withTask(ctx, args, func(st store.Store, t plan.Task) error {
			if t.Plan.IsZero() {
				return a.retryPlain(ctx, st, t, flags)
			}
			p, err := st.Plan(ctx, t.Plan)
			if err != nil {
				return err
			}
			return a.retry(ctx, st, p, []plan.TaskID{t.ID}, flags)
		})
	}
	return cmd
}
