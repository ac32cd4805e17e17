package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

func planReady(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ready PLAN",
		Short: "Make a plan ready to run",
		Long: "Make a plan ready to run, after all its tasks were added. If its submission from " +
			"a file stopped half-way, the command first adds the missing tasks from that " +
			"file.\n" +
			"\n" + planHelp,
	}
	cmd.RunE = a.onPlan(func(ctx context.Context, st store.Store, p plan.Plan) error {
		if p.State != plan.PlanSubmitting && p.State != plan.PlanRunning {
			return fmt.Errorf("%s has ended (%s): begin another plan", p.Title(), p.State)
		}
		var err error
		if underSubmission(&p) {
			p, err = a.endSubmission(ctx, st, p)
		} else if err = st.Ready(ctx, p.ID); err == nil {
			p, err = st.Plan(ctx, p.ID)
		}
		if err != nil {
			return err
		}
		return a.noteUnserved(ctx, st, &p, nil)
	})
	return cmd
}
