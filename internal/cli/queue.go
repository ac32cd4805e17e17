package cli

import "github.com/spf13/cobra"

func queueCommands(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use:   "queue",
		Short: "Make queues, and set their limits",
		Long: "Make queues, and set their limits. In a queue wait tasks of one plugin, under one " +
			"limit over all nodes. A plan's task without a queue goes to the queue named as " +
			"its plugin; a missing one is made.",
	}, queueList(a), queueCreate(a), queueSet(a), queueDelete(a))
}
