package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-1177d267/sluice/plugins"
)

func TestEachCommandHasAManualPageWithItsFlags(t *testing.T) {
	out := &bytes.Buffer{}
	a := &app{Program: Program{
		Stdout: out, Stderr: out, Plugins: plugins.NewRegistry(), Version: "v1.2.3", Revision: "0123456789abcdef", Date: "2030-01-02T03:04:05Z", Getenv: func(string) string { return "" },
	}}
	dir, root, seen := t.TempDir(), a.root(), 0
	if err := a.writeManuals(dir, root); err != nil {
		t.Fatal(err)
	}
	var look func(*cobra.Command)
	look = func(cmd *cobra.Command) {
		text, err := os.ReadFile(filepath.Join(dir, strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1"))
		if err != nil {
			t.Error(err)
			return
		}
		seen++
		if head := `1 "2030-01-02" "sluice v1.2.3" "Sluice"`; !strings.HasPrefix(string(text), ".TH ") || !strings.Contains(string(text), head) {
			t.Errorf("%s: the page does not begin with .TH and have %s", cmd.CommandPath(), head)
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && !strings.Contains(string(text), roff("--"+f.Name)+`\fR`) {
				t.Errorf("%s: the page does not have --%s", cmd.CommandPath(), f.Name)
			}
		})
		for _, c := range cmd.Commands() {
			if !c.Hidden && c.IsAvailableCommand() {
				look(c)
			}
		}
	}
	look(root)
	if pages, err := os.ReadDir(dir); err != nil || len(pages) != seen || seen < 50 {
		t.Errorf("%d pages for %d commands, %v", len(pages), seen, err)
	}
}

func TestRoff(t *testing.T) {
	for text, want := range map[string]string{
		"plain":                   "plain",
		"--all of it":             `\-\-all of it`,
		`Ctrl-\ stops`:            `Ctrl\-\e stops`,
		".hidden\n'quoted'\nrest": "\\&.hidden\n\\&'quoted'\nrest",
	} {
		if got := roff(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}
