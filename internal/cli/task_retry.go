package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/bulk"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

func taskRetry(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "retry {PLAN TASK | ID | FILTER}",
		Short: "Retry failed tasks, and the skipped tasks below them",
		Long: "Run a task again that failed, with what was skipped below it in its plan; of tasks of no plan only " +
			"the one that is named.\n\n" + taskHelp + "\n\n" + filterHelp + " Without --state, those match that " +
			"failed, were stopped or were lost.",
		Example: "  sluice task retry nightly verify\n  sluice task retry --queue imap --reason timeout,75\n" +
			"  sluice task retry --queue imap --state cancelled --check",
	}
	flags := retryFlags(cmd)
	filter := a.filterFlags(cmd, rules.BulkRetry)
	cmd.Args = filter.orTask
	one := a.onTask(func(ctx context.Context, st store.Store, t plan.Task) error {
		if t.Plan.IsZero() {
			return a.retryPlain(ctx, st, t, flags)
		}
		p, err := st.Plan(ctx, t.Plan)
		if err != nil {
			return err
		}
		return a.retry(ctx, st, p, []plan.TaskID{t.ID}, flags)
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return one(cmd, args)
		}
		if *flags.downstream || flags.output.json() {
			return usagef("--downstream and --output json are of one task; name it, or drop them")
		}
		filter.check = filter.check || *flags.dryRun
		return a.inBulk(cmd.Context(), filter, "retried", bulk.Order{})
	}
	return cmd
}
