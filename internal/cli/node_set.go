package cli

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/cli/view"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

func nodeSet(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "set NAME",
		Short: "Limit how many tasks a node runs at once",
		Long: "Limit how many tasks a node runs at once, over all processes of that name. No " +
			"process runs more than its own --threads. Nodes follow within a second, and " +
			"running tasks continue. The node need not exist yet.",
		Example: "  sluice node set mig01 --maxthreads 8\n  sluice node set mig01 --maxthreads 0     # it claims nothing more\n  sluice node set mig01 --maxthreads unlimited",
	}
	most := 0
	cmd.Flags().Var(threadsOf(&most, 0), "maxthreads", "how many tasks it runs at once; 0: none")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx, name := cmd.Context(), plan.NodeName(args[0])
		if err := rules.CheckNodeName(args[0]); err != nil {
			return asUsage(err)
		}
		if !cmd.Flags().Changed("maxthreads") {
			return usagef("nothing to change: give --maxthreads")
		}
		return a.withStore(ctx, func(st store.Store) error {
			nodes, err := st.Instances(ctx)
			if err != nil {
				return err
			}
			if err := st.SetMaxThreads(ctx, name, most); err != nil {
				return err
			}
			if !slices.ContainsFunc(nodes, func(i plan.Instance) bool { return i.Node == name }) {
				if err := a.noteAbsent(ctx, st, name, nodes); err != nil {
					return err
				}
			}
			return a.say("node %s has maxthreads %s", name, threadsText(most))
		})
	}
	return cmd
}

// noteAbsent notes that none of these nodes has the name. It also notes that the node is another
// program's, which applies the limit itself.
func (a *app) noteAbsent(ctx context.Context, st store.Store, name plan.NodeName, nodes []plan.Instance) error {
	heard, err := foreignHeard(ctx, st, name)
	if err != nil {
		return err
	}
	if !heard.IsZero() {
		now, err := st.Now(ctx)
		if err != nil {
			return err
		}
		if now.Sub(heard) <= foreignSilent {
			a.note("node %s belongs to another program (last heartbeat %s), which applies "+
				"maxthreads itself", name, view.Ago(heard, now))
			return nil
		}
	}
	a.noteNoNode(name, nodes)
	return nil
}
