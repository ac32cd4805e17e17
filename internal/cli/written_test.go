package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-1177d267/sluice/plugins"
)

func TestEachFlagOfAFileIsKnownToBeReadOrWritten(t *testing.T) {
	known := map[string]bool{}
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		cmd.Flags().AddFlagSet(cmd.PersistentFlags())
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !strings.Contains(f.Usage, "`FILE`") {
				return
			}
			known[f.Name] = true
			if slices.Contains(readFlags, f.Name) == slices.Contains(writtenFlags, f.Name) {
				t.Errorf("%s --%s: name it in readFlags or in writtenFlags", cmd.CommandPath(), f.Name)
			}
		})
		if cmd.PersistentPreRunE != nil && cmd.HasParent() || cmd.PersistentPreRun != nil {
			t.Errorf("%s does not come by checkWritten", cmd.CommandPath())
		}
		for _, c := range cmd.Commands() {
			visit(c)
		}
	}
	visit((&app{Program: Program{Plugins: plugins.NewRegistry()}}).root())
	for _, name := range slices.Concat(readFlags, writtenFlags) {
		if !known[name] {
			t.Errorf("no command has --%s", name)
		}
	}
}
