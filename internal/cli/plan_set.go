package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/cells"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

func planSet(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "set PLAN…",
		Short: "Change the priority of plans",
		Long: "Change the priority of plans, also while they run. Plans that share a queue take turns in " +
			"it. A plan of priority 20 takes twice as many turns as one of priority 10. Tasks that run " +
			"already are not stopped.\n" +
			"\n" + planHelp,
		Example:           "  sluice plan set nightly --priority 50",
		ValidArgsFunction: a.completePlans(unended),
	}
	var priority int
	numberFlag(cmd, &priority, "priority", "", 0, fmt.Sprintf("its turns against those of other plans, 1 to %d; %d is usual", plan.MaxPriority, plan.DefaultPriority))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !cmd.Flags().Changed("priority") {
			return usagef("say what to change: --priority N")
		}
		if err := plan.CheckPriority(priority); err != nil {
			return usagef("--%w", err)
		}
		return a.eachPlan(cmd.Context(), args, func(ctx context.Context, st store.Store, p plan.Plan) error {
			if p.State.Ended() {
				return fmt.Errorf("%s has ended (%s): it takes no more turns", p.Title(), p.State)
			}
			if err := st.SetPriority(ctx, p.ID, priority); err != nil {
				return fmt.Errorf("set %s: %w", p.Title(), err)
			}
			return a.say("%s has priority %d", cells.Clean(p.Title()), priority)
		})
	}
	return cmd
}
