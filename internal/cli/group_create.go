package cli

import (
	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/cells"
	"github.com/seed-1177d267/sluice/internal/compiler"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

func groupCreate(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "create NAME",
		Short:   "Make a group of queues",
		Long:    "Make a group of queues. \"sluice queue set QUEUE --group NAME\" puts a queue into it.",
		Example: "  sluice group create acme --weight 4 --rate 100/s\n  sluice group create acme-mail --parent acme",
	}
	flags := a.groupFlags(cmd, false)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		g := plan.Group{Name: args[0]}
		if err := flags.apply(cmd, &g.GroupSettings); err != nil {
			return err
		}
		if err := compiler.CheckQueueName("group", g.Name); err != nil {
			return asUsage(err)
		}
		return a.makingStore(ctx, func(st store.Store) error {
			groups, err := st.Groups(ctx)
			if err != nil {
				return err
			}
			if _, err := rules.SetGroup(groups, &plan.Group{}, &g); err != nil {
				return err
			}
			if err := st.PutGroup(ctx, plan.Group{}, g); err != nil {
				return err
			}
			return a.say("group %s has %s", cells.Clean(g.Name), cells.Clean(groupSaid(&g)))
		})
	}
	return cmd
}
