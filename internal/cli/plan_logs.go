package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/cli/view"
	"github.com/seed-1177d267/sluice/internal/feed"
	"github.com/seed-1177d267/sluice/internal/report"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

func planLogs(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "logs PLAN",
		Short: "Print the logs of a plan",
		Long: "Print the logs of a plan, each line behind the name of its task.\n" +
			"\n" +
			"Tasks come one after the other, each after its parents. With --follow, lines then " +
			"come as tasks print them, until the plan has ended. The exit code is 0 however " +
			"the plan ended; sluice plan wait tells that. For one task: sluice task logs.\n" +
			"\n" + planHelp,
		Example: "  sluice plan logs nightly\n  sluice plan logs -f nightly | grep error",
	}
	follow := cmd.Flags().BoolP("follow", "f", false, "continue until the plan has ended")
	times := cmd.Flags().Bool("timestamps", false, "begin what a task printed in each line with its local time")
	cmd.RunE = a.onPlan(func(ctx context.Context, st store.Store, p plan.Plan) error {
		if *follow {
			ctx = a.patient(ctx, nil)
			if err := a.noteUnserved(ctx, st, &p, nil); err != nil {
				return err
			}
		}
		l := a.newManyLogs(st, store.TaskQuery{Plan: p.ID}, *times)
		l.over = func(ctx context.Context) (bool, error) {
			now, err := st.Plan(ctx, p.ID)
			if err != nil {
				return false, err
			}
			p = now
			return p.State.Ended(), nil
		}
		if err := l.print(ctx, *follow); err != nil {
			return err
		}
		if !l.Printed {
			a.note("no task of %s has printed anything%s", p.Title(), yet(p.State.Ended()))
		}
		if *follow {
			a.note("%s", report.Verdict(&p, time.Now()))
		}
		return nil
	})
	return cmd
}

// yet ends a sentence about what was not printed.
func yet(over bool) string {
	if over {
		return ""
	}
	return " yet"
}

// printItemLogs prints what the items of a foreach task printed.
func (a *app) printItemLogs(ctx context.Context, st store.Store, t *plan.Task, s logSettings) error {
	if s.tail >= 0 || s.since > 0 || s.attempt != 0 || s.stdout || s.stderr || s.withRunner {
		return usagef("%s is a foreach task, and each of its items has a log: give this flag with one of them, as %s", t.Key(), rules.ItemName(t.Name, 0))
	}
	l := a.newManyLogs(st, store.TaskQuery{Plan: t.Plan, Of: t.ID}, s.times)
	l.over = func(ctx context.Context) (bool, error) {
		found, err := st.Tasks(ctx, store.TaskQuery{IDs: []plan.TaskID{t.ID}, Limit: 1})
		return len(found) == 0 || found[0].Status.Finished(), err
	}
	if err := l.print(ctx, s.follow); err != nil || l.Printed {
		return err
	}
	a.note("no item of %s has printed anything%s", t.Key(), yet(t.Status.Finished() || s.follow))
	return nil
}

// manyLogs prints the logs of many tasks. It holds a page of one log at a time, and of each task how far its log was read.
type manyLogs struct {
	view.Many
	st   store.Store
	q    store.TaskQuery // the tasks
	over func(context.Context) (bool, error)
	mark string // for what is cut off labels
	read map[plan.TaskID]*oneLog
}

// oneLog is how far the log of a task was read.
type oneLog struct {
	view.Named
	cursor int64
	done   bool // the task had ended before the log was read
	runs   bool
}

func (a *app) newManyLogs(st store.Store, q store.TaskQuery, times bool) *manyLogs {
	return &manyLogs{
		Many: view.Many{W: a.Stdout, Palette: a.paint(a.Stdout), Tame: view.IsTerminal(a.Stdout), Times: times},
		st:   st, q: q, mark: a.ellipsis(), read: map[plan.TaskID]*oneLog{},
	}
}

// print prints all entries, and with follow continues until the end.
func (l *manyLogs) print(ctx context.Context, goOn bool) error {
	f, err := feed.Follow(ctx, l.st, l.q.Plan)
	if err != nil {
		return err
	}
	if err := l.readAll(ctx); err != nil || !goOn {
		return err
	}
	tick := time.NewTicker(pollOf(l.st, logPoll))
	defer tick.Stop()
	for {
		// The end first: what tasks printed is there before their end is.
		over, err := l.over(ctx)
		if err != nil {
			return err
		}
		if over { // a feed may be late
			return l.readAll(ctx)
		}
		changes, err := f.Next(ctx)
		if err != nil {
			return err
		}
		if err := l.readChanged(ctx, changes); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// readAll reads what is new of every task. Items come behind their foreach task.
func (l *manyLogs) readAll(ctx context.Context) error {
	items := func(of plan.TaskID) error {
		q := store.TaskQuery{Plan: l.q.Plan, Of: of, Brief: true}
		return store.EachPage(ctx, l.st, q, func(tasks []plan.Task) error { return l.readTasks(ctx, tasks) })
	}
	if !l.q.Of.IsZero() {
		return items(l.q.Of)
	}
	return store.EachTask(ctx, l.st, store.TaskQuery{Plan: l.q.Plan, NoItems: true}, func(t *plan.Task) error {
		err := l.readTasks(ctx, []plan.Task{*t})
		if err == nil && t.Items > 0 {
			err = items(t.ID)
		}
		return err
	})
}

// readChanged reads what is new of the tasks that changed, and of those that run.
func (l *manyLogs) readChanged(ctx context.Context, changes []store.Change) error {
	var tasks []plan.Task
	for _, c := range changes {
		if !c.Task.IsZero() && c.Attempt > 0 && (l.q.Of.IsZero() || c.Of == l.q.Of) {
			tasks = append(tasks, plan.Task{ID: c.Task, Name: c.Name, Of: c.Of, Status: c.Status, Started: c.At})
		}
	}
	if err := l.readTasks(ctx, tasks); err != nil {
		return err
	}
	for id, o := range l.read {
		if o.runs {
			if err := l.readLog(ctx, id, o); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *manyLogs) readTasks(ctx context.Context, tasks []plan.Task) error {
	var unknown []plan.Task
	for i := range tasks {
		if t := &tasks[i]; l.read[t.ID] == nil && !t.Started.IsZero() {
			unknown = append(unknown, *t)
		}
	}
	values, err := itemValues(ctx, l.st, unknown)
	if err != nil {
		return err
	}
	for i := range unknown {
		t := &unknown[i]
		l.read[t.ID] = &oneLog{Named: view.Named{Label: values.label(t, l.mark)}}
	}
	for i := range tasks {
		t := &tasks[i]
		o := l.read[t.ID]
		if o == nil || o.done && t.Status.Finished() {
			continue
		}
		o.done, o.runs = t.Status.Finished(), t.Status.Active()
		if err := l.readLog(ctx, t.ID, o); err != nil {
			return err
		}
		if o.done {
			err = l.End(&o.Named)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readLog prints what is new of a task's log.
func (l *manyLogs) readLog(ctx context.Context, id plan.TaskID, o *oneLog) error {
	return eachPage(ctx, l.st, id, &o.cursor, func(entries []plan.LogEntry) error { return l.Entries(&o.Named, entries) })
}
