package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/bulk"
	"github.com/seed-1177d267/sluice/internal/cells"
	"github.com/seed-1177d267/sluice/internal/explain"
	"github.com/seed-1177d267/sluice/internal/hint"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

func taskCancel(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cancel {PLAN TASK | ID | FILTER}",
		Short: "Cancel tasks: stop them, or never start them",
		Long: "Cancel a task: stop it if it runs, else never start it. Its children are skipped, " +
			"except for two kinds. A clean-up (when: any_failed) runs if the task was stopped, " +
			"which counts as a failure. A task that ran and waits for another attempt is stopped, " +
			"too. A child with when: all_done runs in any case. In a " +
			"plan with on_failure: stop, neither runs once the task was stopped.\n" +
			"\n" + taskHelp + "\n\n" + filterHelp,
		Example: "  sluice task cancel nightly 'copy[3]'\n  sluice task cancel --queue imap --subject 'order 4711'\n" +
			"  sluice task cancel --queue imap --older-than 2d --check",
	}
	filter := a.filterFlags(cmd, rules.BulkCancel)
	cmd.Args = filter.orTask
	one := a.onTask(func(ctx context.Context, st store.Store, t plan.Task) error {
		if err := rules.CheckCancelTask(&t); err != nil {
			return err
		}
		cleanUps, err := cleanUpsOf(ctx, st, &t)
		if err != nil {
			return err
		}
		if err := st.CancelTask(ctx, t.ID); err != nil {
			return fmt.Errorf("cancel task %s: %w", t.Key(), err)
		}
		word, next, stopped := "is cancelled", hint.Hint{}, t.Status.Active()
		switch {
		case t.Status.Active():
			word = fmt.Sprintf("will be stopped by node %s", cells.Clean(string(t.Node)))
			nodes, err := st.Instances(ctx)
			if err != nil {
				return err
			}
			if explain.Holds(nodes, &t) {
				break
			}
			links, err := explain.Task(ctx, st, t.ID)
			if err != nil {
				return err
			}
			word, next = "is marked to be stopped, but "+cells.Clean(links[0].Why), links[0].Hint
		case t.Expanded || t.Ran:
			now, err := st.Task(ctx, t.ID)
			if err != nil && !errors.Is(err, plan.ErrTooMuchOutput) {
				return err
			}
			switch stopped = !now.Status.Finished() || now.Status == plan.Terminated; {
			case !now.Status.Finished():
				word = "is being cancelled: it ends when those of its items have that run"
			case now.Status == plan.Terminated:
				word = "is stopped, since it ran, and counts as failed"
			}
		}
		_, err = fmt.Fprintf(a.Stdout, "%s %s\n", cells.Clean(t.Key()), word)
		if next.Do != nil {
			a.note("to end it: %s", a.command(next.Do...))
		}
		if stopped {
			err = errors.Join(err, a.noteCleanUps(ctx, st, &t, cleanUps))
		}
		return err
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return one(cmd, args)
		}
		return a.inBulk(cmd.Context(), filter, "cancelled", bulk.Order{})
	}
	return cmd
}
