package cli

import "github.com/spf13/cobra"

func queueCommands(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use:   "queue",
		Short: "Make queues, and set their limits",
		Long: "Make queues, and set their limits. A queue is where tasks of one plugin wait, under one limit over all nodes. A plan's task that\n" +
			"names no queue goes to the one named as its plugin, which is made when it is missing.",
	}, queueList(a), queueCreate(a), queueSet(a), queueDelete(a))
}
