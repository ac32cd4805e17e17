package cli

import (
	"time"

	"github.com/spf13/cobra"
)

func balanceCheck(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Check a balance document in a file",
		Long: "Check a balance document in a file, and report each mistake with file, line and " +
			"column. The file is JSON with comments and trailing commas, as Disbatch's " +
			"configuration file. The command connects to nothing.",
		Example: "  sluice balance check balance.json",
	}
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		_, b, err := a.balanceFile(args[0])
		if err != nil {
			return err
		}
		return a.say("%s is valid; it allows %d tasks now", args[0], b.MaxTasks(time.Now()))
	}
	return cmd
}
