package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/cli/view"
)

// Run runs the command in the arguments (without the program's name) and returns the process's exit
// code. It has reported errors on Stderr.
func (p Program) Run(ctx context.Context, args []string) int {
	out := &view.Output{W: p.Stdout}
	p.Stdout = out
	a := &app{Program: p, words: args}
	// Package net/http tells its own logger what a server sends unasked, and that may be a secret which the server repeats.
	log.SetOutput(io.Discard)
	a.quit.start()
	if a.Disco != nil {
		a.Disco.Settle(a.disco.open(a))
	}
	root := a.root()
	root.SetArgs(args)
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		plainUsages(root)
	}
	err := root.ExecuteContext(ctx)
	if _, said := errors.AsType[*saidError](err); err != nil && !said {
		a.tell(err)
	}
	if lost := out.Failed(); lost != nil && !view.Lost(err) {
		a.tell(lost)
		err = cmp.Or(err, lost)
	}
	return exitCode(err)
}

func init() { cobra.EnableCommandSorting = false } // they are listed in the order of their use

func (a *app) root() *cobra.Command {
	a.colorFlag = choice{"auto", []string{"auto", "always", "never"}}
	root := &cobra.Command{
		Use:   "sluice",
		Short: "Run plans: graphs of tasks that survive the death of any process",
		Long: "Sluice runs plans. A plan is a graph of tasks. A task runs when its parents have " +
			"finished, with their outputs. All state is in a store (a SQLite file, or " +
			"MongoDB), so a plan survives the death of any process.",
		Example: "  sluice plan example > plan.yaml     a plan file to begin with\n" +
			"  sluice plan run plan.yaml           run it here, to its end\n" +
			"  sluice serve                        see it in a browser",
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       a.version().String(),

		PersistentPreRunE: a.checkFlags,
	}
	root.SetIn(a.Stdin)
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	root.SetFlagErrorFunc(flagError)
	flags := root.PersistentFlags()
	flags.StringVar(&a.storeFlag, "store", "", "the `URI` of the store: sqlite:PATH or mongodb://HOST/DATABASE (default: "+
		"$SLUICE_STORE, else a file of your own)")
	flags.StringVar(&a.configFlag, "config", "", "Disbatch's configuration `FILE`, which names the database; the user is disbatch_web")
	forDisbatch(flags, "config")
	a.server.add(flags)
	flags.Var(&a.colorFlag, "color", "colours: auto, always or never")
	group(root)
	titled(root, "work", "Commands:", slices.Concat([]*cobra.Command{serveCommand(a), workerCommand(a)}, commandGroups(a), []*cobra.Command{versionCommand(a), manCommand(a)})...)
	titled(root, onDisbatch, "", runnerCommand(a), configCommands(a))
	root.AddCommand(disbatchCommand())
	completeChoices(root)
	root.SetHelpCommandGroupID("work")
	root.SetCompletionCommandGroupID("work")
	strict(root)
	a.byUsage(root)
	takeLines(root)
	oneLine(root)
	root.SetHelpFunc(a.help)
	root.SetUsageFunc(func(cmd *cobra.Command) error {
		_, err := fmt.Fprint(cmd.OutOrStdout(), usage(cmd, view.Columns(cmd.OutOrStdout())))
		return err
	})
	return root
}
