package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/bulk"
	"github.com/seed-1177d267/sluice/internal/cli/view"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/states"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// A taskFilter is the flags that choose tasks: for a list, or tasks of no plan in place of the id of one.
type taskFilter struct {
	what                  rules.Bulk
	queue, group, subject string
	states, reasons       []string
	olderThan             time.Duration
	check                 bool
}

// filterHelp ends the help of a command that takes a filter.
const filterHelp = "In place of a task, a FILTER chooses tasks of no plan: --queue, --group, --state, " +
	"--subject, --older-than and --reason. A task has to meet all of them. The work goes in portions of 1,000 " +
	"tasks. --check only says how many tasks match."

// filterNames are the conditions among the flags.
var filterNames = []string{"queue", "group", "state", "subject", "older-than", "reason"}

// filterFlags gives a command a filter.
func (a *app) filterFlags(cmd *cobra.Command, what rules.Bulk) *taskFilter {
	f := &taskFilter{what: what}
	flags := cmd.Flags()
	flags.StringVar(&f.queue, "queue", "", "only tasks of this queue")
	flags.StringVar(&f.group, "group", "", "only tasks in a queue of this group, or of a group in it")
	flags.StringSliceVar(&f.states, "state", nil, "only tasks in one of these states: "+strings.Join(states.Words(), ", ")+",\nor with that status, a number")
	flags.StringVar(&f.subject, "subject", "", "only tasks with this subject: unfinished ones are found at once")
	spanFlag(cmd, &f.olderThan, "older-than", 0, "only tasks that were added that long ago at least, as in 2h or 3d")
	flags.StringSliceVar(&f.reasons, "reason", nil, "only tasks whose last attempt failed so: an exit status, or one of\n"+strings.Join(rules.ReasonWords(), ", "))
	if what != rules.ListTasks {
		flags.BoolVar(&f.check, "check", false, "only say how many tasks match, and change nothing")
	}
	completeBy(cmd, "queue", a.completeQueueFlag)
	completeBy(cmd, "group", a.completeGroupFlag)
	completeWords(cmd, "state", states.Words())
	completeWords(cmd, "reason", rules.ReasonWords())
	return f
}

// given reports whether flags of the filter are given.
func (f *taskFilter) given(cmd *cobra.Command) bool {
	return cmd.Flags().Changed("check") || slices.ContainsFunc(filterNames, cmd.Flags().Changed)
}

// orTask demands either a filter or the arguments that name a task.
func (f *taskFilter) orTask(cmd *cobra.Command, args []string) error {
	if !f.given(cmd) {
		return asUsed(cmd, args)
	}
	if len(args) > 0 {
		return usagef("%q takes either a task or a filter: drop %q, or the flags of the filter", cmd.CommandPath(), strings.Join(args, " "))
	}
	return f.wrong(cmd)
}

// wrong returns what can be told of the filter before a store is asked.
func (f *taskFilter) wrong(cmd *cobra.Command) error {
	if cmd.Flags().Changed("older-than") && f.olderThan == 0 {
		return usagef("--older-than 0: every task is that old; give an age, as in 2h, or drop it")
	}
	if len(f.states) > 0 {
		if _, _, err := statuses(f.states); err != nil {
			return err
		}
	}
	filter := f.domain()
	if f.queue != "" {
		filter.Queue.ID[0] = 1 // some queue, which is looked for later
	}
	_, _, err := filter.Choose(f.what)
	var at *rules.FilterError
	switch {
	case errors.Is(err, rules.ErrNoCondition):
		return usagef("no condition chooses tasks, and all tasks of no plan would match; give --%s or --%s",
			strings.Join(filterNames[:len(filterNames)-1], ", --"), filterNames[len(filterNames)-1])
	case errors.As(err, &at):
		return usagef("--%s: %w", strings.ReplaceAll(at.Condition, "_", "-"), err)
	}
	return err
}

// query returns what a list asks the store for, at an instant, and which of the tasks that it gets the filter chooses.
// A nil keep chooses all.
func (f *taskFilter) query(ctx context.Context, st store.Store) (q store.TaskQuery, keep func(*plan.Task) bool, err error) {
	filter := f.domain()
	statuses, meets, err := filter.Choose(f.what)
	if err != nil {
		return q, nil, err
	}
	q = store.TaskQuery{Statuses: statuses, Subject: f.subject}
	if f.queue != "" {
		found, err := f.findQueue(ctx, st)
		if err != nil {
			return q, nil, err
		}
		q.Queue = found.ID
	}
	if _, apart, _ := states.Parse(f.states); apart == nil && f.group == "" && f.olderThan == 0 && len(f.reasons) == 0 {
		return q, nil, nil
	}
	in, err := bulk.QueuesOf(ctx, st, f.group)
	if err != nil {
		return q, nil, err
	}
	now, err := st.Now(ctx)
	return q, func(t *plan.Task) bool { return (in == nil || in[t.Queue]) && meets(t, now) }, err
}

// findQueue returns the queue of the filter. Tasks of no plan outlive their queue, which its id still names.
func (f *taskFilter) findQueue(ctx context.Context, r store.Reader) (plan.Queue, error) {
	q, err := findQueue(ctx, r, f.queue)
	if id, bad := plan.ParseID(f.queue); errors.Is(err, plan.ErrNotFound) && bad == nil {
		return plan.Queue{ID: plan.QueueID{ID: id}, Name: f.queue}, nil
	}
	return q, err
}

func (f *taskFilter) domain() rules.TaskFilter {
	return rules.TaskFilter{Group: f.group, States: f.states, Subject: f.subject, OlderThan: f.olderThan, Reasons: f.reasons}
}

// inBulk does something with all tasks that a filter chooses, and says what became of them. done is the
// word for that.
func (a *app) inBulk(ctx context.Context, f *taskFilter, done string, o bulk.Order) error {
	return a.withStore(ctx, func(st store.Store) error {
		o.What, o.Filter, o.Check = f.what, f.domain(), f.check
		if f.queue != "" {
			q, err := f.findQueue(ctx, st)
			if err == nil && o.Change.Params != nil && q.Plugin != "" { // a server may have other plugins
				err = a.refusedBy(&q, o.Change.Params)
			}
			if err != nil {
				return err
			}
			o.Filter.Queue = q.ID
		}
		if o.Change.Params != nil {
			o.Accept = func(ctx context.Context, tasks []plan.Task) error {
				return a.refusedIn(ctx, st, tasks, o.Change.Params)
			}
		}
		sum, failed := bulk.All(ctx, st, o)
		if failed != nil && sum.Changed == 0 {
			return failed
		}
		text := view.Number(sum.Changed, "task") + " " + done
		if o.Check {
			text = view.Number(sum.Matched, "task") + " would be " + done
		}
		if _, err := fmt.Fprintln(a.Stdout, text); err != nil {
			return err
		}
		if sum.Active > 0 {
			a.note("nodes have %s of them, and stop them", view.Number(sum.Active, "task"))
		}
		if sum.LeftOut > 0 {
			a.note("%s left out: a node claimed them meanwhile, they ended, or they are being handed over", view.Number(sum.LeftOut, "task"))
		}
		return failed
	})
}

// refusedIn asks the plugins of the queues of tasks about params.
func (a *app) refusedIn(ctx context.Context, st store.Store, tasks []plan.Task, params []byte) error {
	queues, err := st.Queues(ctx)
	for i := range queues {
		q := &queues[i]
		if err == nil && slices.ContainsFunc(tasks, func(t plan.Task) bool { return t.Queue == q.ID }) {
			err = a.refusedBy(q, params)
		}
	}
	return err
}

// refusedBy asks the plugin of a queue about params of a task of no plan.
func (a *app) refusedBy(q *plan.Queue, params []byte) error {
	if err := a.refusedWith(q, "task", params); err != nil {
		return fmt.Errorf("queue %q: %w", q.Name, err)
	}
	return nil
}
