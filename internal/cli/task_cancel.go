package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/cells"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

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
	cmd.RunE = a.onTask(func(ctx context.Context, st store.Store, t plan.Task) error {
		if err := rules.CheckCancelTask(&t); err != nil {
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
	return cmd
}
