package cli

import "github.com/spf13/cobra"

func taskCommands(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use:   "task",
		Short: "Show tasks, and act on them",
		Long:  "Look at tasks, and act on them.\n\n" + taskHelp,
	}, taskList(a), taskShow(a), taskLogs(a), taskAdd(a), taskCancel(a), taskRetry(a))
}
