package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/cells"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

func groupSet(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "set NAME",
		Short: "Change a group's parent, weight, rate and URIs, pause and resume it",
		Long: "Change the settings of a group of queues. Nodes follow with their next claim. Running " +
			"tasks continue. \"sluice queue set QUEUE --group NAME\" puts a queue into a group.",
		Example: "  sluice group set acme --rate 50/s,burst=100\n  sluice group set acme --pause\n  sluice group set acme --resume\n  sluice group set acme-mail --parent none",
	}
	flags := a.groupFlags(cmd, true)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := flags.needed(cmd); err != nil {
			return err
		}
		return a.withStore(cmd.Context(), func(st store.Store) error {
			g, err := changeGroup(cmd.Context(), st, args[0], func(s *plan.GroupSettings) error { return flags.apply(cmd, s) })
			if err != nil {
				return err
			}
			return a.say("group %s has %s", cells.Clean(g.Name), cells.Clean(groupSaid(&g)))
		})
	}
	return cmd
}

func groupDelete(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "delete NAME",
		Short:   "Delete a group of queues",
		Long:    "Delete a group of queues. A group with a queue or a group in it is not deleted.",
		Example: "  sluice group delete acme",
		RunE: a.onStore(func(ctx context.Context, st store.Store, args []string) error {
			_, g, err := findGroup(ctx, st, args[0])
			if err != nil {
				return err
			}
			if err := st.DeleteGroup(ctx, g); err != nil {
				return err
			}
			return a.say("group %s is deleted", cells.Clean(g.Name))
		}),
	}
}
