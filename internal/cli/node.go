package cli

import "github.com/spf13/cobra"

func nodeCommands(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use:   "node",
		Short: "Show and limit execution nodes",
		Long:  "Show and limit execution nodes, the processes that claim and run tasks.",
	}, nodeList(a), nodeSet(a))
}
