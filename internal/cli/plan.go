package cli

import "github.com/spf13/cobra"

func planCommands(a *app) *cobra.Command {
	cmd := group(&cobra.Command{Use: "plan", Short: "Run plans, and manage them", Long: "Run plans, and look after them.\n\n" + planHelp})
	titled(cmd, "run", "Run them:", planRun(a), planSubmit(a), planWait(a), planCheck(a))
	titled(cmd, "look", "Look at them:", planList(a), planStatus(a), planLogs(a), planFailures(a), planExplain(a), planGraph(a))
	titled(cmd, "act", "Act on them:", planRetry(a), planCancel(a), planDelete(a), planPrune(a))
	titled(cmd, "files", "Plan files:", planExample(a), planValidate(a), planSchema(a), planImport(a))
	titled(cmd, "build", "Plans made task by task, as by a script:", planCreate(a), planAdd(a), planReady(a))
	return cmd
}
