package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

func planCheck(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check PLAN",
		Short: "Tell the state of a plan by the exit code",
		Long: "Tell the state of a plan now, without waiting.\n" +
			"\n" +
			"Exit codes: 0 succeeded, 1 failed, 2 bad usage, 3 not finished,\n" +
			"4 the store cannot be reached, 5 cancelled.\n" +
			"\n" +
			planHelp,
	}
	output := outputFlag(cmd)
	junit := cmd.Flags().String("junit", "", "write a report to this `FILE`, as JUnit XML")
	cmd.RunE = a.onPlan(func(ctx context.Context, st store.Store, p plan.Plan) error {
		if err := a.noteUnserved(ctx, st, &p, nil); err != nil {
			return err
		}
		return a.printVerdict(ctx, st, p, output, *junit)
	})
	return cmd
}
