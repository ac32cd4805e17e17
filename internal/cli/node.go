package cli

import "github.com/spf13/cobra"

func nodeCommands(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use:   "node",
		Short: "Look at execution nodes, and limit them",
		Long:  "Look at execution nodes, the processes that claim tasks and run them, and limit them.",
	}, nodeList(a), nodeSet(a))
}
