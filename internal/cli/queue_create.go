package cli

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/compiler"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

func queueCreate(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "create NAME",
		Short:   "Make a queue",
		Example: "  sluice queue create imap --plugin exec --threads 4\n  sluice queue create mail --pin mig01,mig02 --node-threads 2",
	}
	var flags queueFlags
	flags.add(a, cmd, -1)
	plugin := cmd.Flags().String("plugin", plan.DefaultPlugin, "the plugin of its tasks")
	completeWords(cmd, "plugin", a.Plugins.Names())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		q := plan.Queue{Name: args[0], Plugin: *plugin, Unlimited: true}
		if err := flags.apply(cmd, &q); err != nil {
			return err
		}
		if err := cmp.Or(compiler.CheckQueueName("queue", q.Name), compiler.CheckPluginName(q.Plugin)); err != nil {
			return asUsage(err)
		}
		return a.makingStore(ctx, func(st store.Store) error {
			made, err := st.CreateQueue(ctx, q)
			if errors.Is(err, plan.ErrExists) {
				return fmt.Errorf("queue %q: %w; change it with %q", q.Name, plan.ErrExists, a.command("queue", "set", q.Name))
			}
			if err != nil {
				return err
			}
			a.noteBoth(&q)
			if err := a.noteNobody(ctx, st, flags.named()); err != nil {
				return err
			}
			return a.say("%v", made.ID)
		})
	}
	return cmd
}
