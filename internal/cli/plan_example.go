package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/hint"
	"github.com/seed-1177d267/sluice/internal/planfile"
)

func planExample(a *app) *cobra.Command {
	examples := planfile.Examples()
	var list strings.Builder
	names := make([]string, len(examples))
	for i, e := range examples {
		names[i] = e.Name
		fmt.Fprintf(&list, "  %-10s  %s\n", e.Name, e.Use)
	}
	return &cobra.Command{
		Use:   "example [NAME]",
		Short: "Print a plan file to begin with",
		Long: "Print a plan file to begin with. Each example runs in an empty folder, and needs a POSIX shell alone:\n\n" + list.String() +
			"\nWithout a NAME the first one is printed. Its first lines name the others.",
		Example:           "  sluice plan example > plan.yaml\n  sluice plan example batch > batch.yaml",
		ValidArgsFunction: cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp),
		RunE: func(_ *cobra.Command, args []string) error {
			e := examples[0]
			if len(args) == 1 {
				i := slices.Index(names, args[0])
				if i < 0 {
					return usagef("there is no example %q; there are %s%s", args[0], strings.Join(names, ", "), hint.Meant(args[0], names))
				}
				e = examples[i]
			}
			_, err := a.Stdout.Write(e.Text())
			return err
		},
	}
}

func planSchema(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of plan files, for editors",
		Long: "Print the JSON Schema of plan files, for editors. Most editors read it by the first line of a plan file, as " +
			"\"sluice plan example\" prints it. A server has it at /plan.schema.json.",
		Example: "  sluice plan schema > sluice.schema.json",
		RunE: func(*cobra.Command, []string) error {
			_, err := a.Stdout.Write(planfile.Schema())
			return err
		},
	}
}
