package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/cells"
	"github.com/seed-1177d267/sluice/internal/halt"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

func planDelete(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "delete PLAN…",
		Short: "Delete plans that have ended, with their tasks and logs",
		Long: "Delete plans that have ended, with their tasks and logs. A plan whose submission " +
			"from a file stopped half-way may be deleted too: none of its tasks ever ran.\n" +
			"\n" + planHelp,
		ValidArgsFunction: a.completePlans(deletable),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.eachPlan(cmd.Context(), args, func(ctx context.Context, st store.Store, p plan.Plan) error {
			if p.State == plan.PlanSubmitting && p.Size > 0 {
				var err error
				if p, err = halt.Cancel(ctx, st, p); err != nil {
					return fmt.Errorf("delete %s: %w", p.Title(), err)
				}
			}
			if !p.State.Ended() {
				return fmt.Errorf("%s is %s; only a plan that has ended can be deleted; to end it: %s",
					p.Title(), p.State, a.command("plan", "cancel", p.Title()))
			}
			if err := halt.Delete(ctx, st, p); err != nil {
				return fmt.Errorf("delete %s: %w", p.Title(), err)
			}
			return a.say("%s is deleted", cells.Clean(p.Title()))
		})
	}
	return cmd
}
