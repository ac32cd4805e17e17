package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/cli/view"
)

// A build is which program this is.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Date     string `json:"date,omitempty"` // of the commit
	Go       string `json:"go"`
	System   string `json:"system"`
}

// version reads the build's own information if the linker has set none.
func (a *app) version() build {
	b := build{Version: a.Version, Revision: a.Revision, Date: a.Date, Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if b.Version == "" {
		b.Version = "devel"
		if ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
			b.Version = info.Main.Version
		}
	}
	if ok && b.Revision == "" {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Revision = s.Value
			case "vcs.time":
				b.Date = s.Value
			}
		}
	}
	return b
}

func (b build) String() string {
	s := b.Version
	if b.Revision != "" {
		s += " (" + b.Revision[:min(12, len(b.Revision))]
		if day, _, ok := strings.Cut(b.Date, "T"); ok {
			s += ", " + day
		}
		s += ")"
	}
	return fmt.Sprintf("%s %s %s", s, b.Go, b.System)
}

func versionCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "version", Short: "Print the version of this program"}
	output := outputFlag(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		if output.json() {
			return view.JSON(a.Stdout, a.version())
		}
		_, err := fmt.Fprintln(a.Stdout, "sluice version", a.version()) // as --version says it
		return err
	}
	return cmd
}
