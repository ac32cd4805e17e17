package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

func taskRetry(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:               "retry {PLAN TASK | ID}",
		Short:             "Retry a failed task, and the skipped tasks below it",
		Long:              "Run a task again that failed, with what was skipped below it in its plan; of tasks of no plan only the one that is named.\n\n" + taskHelp,
		Args:              between(1, 2),
		ValidArgsFunction: a.completePlan,
	}
	flags := retryFlags(cmd)
	cmd.RunE = a.onTask(func(ctx context.Context, st store.Store, t plan.Task) error {
		if t.Plan.IsZero() {
			return a.retryPlain(ctx, st, t, flags)
		}
		p, err := st.Plan(ctx, t.Plan)
		if err != nil {
			return err
		}
		return a.retry(ctx, st, p, []plan.TaskID{t.ID}, flags)
	})
	return cmd
}
