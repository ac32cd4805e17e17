package cli

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/cells"
	"github.com/seed-1177d267/sluice/internal/cli/view"
	"github.com/seed-1177d267/sluice/plugins"
)

// TestHelpFits checks the help of every command. No line is wider than a plain terminal, and only
// Disbatch's own commands name it in their flags.
func TestHelpFits(t *testing.T) {
	out := &bytes.Buffer{}
	a := &app{Program: Program{Stdout: out, Stderr: out, Plugins: plugins.NewRegistry(), Version: "v1.2.3", Getenv: func(string) string { return "" }}}
	root, seen := a.root(), 0
	var look func(*cobra.Command)
	look = func(cmd *cobra.Command) {
		seen++
		out.Reset()
		a.help(cmd, nil)
		for line := range strings.Lines(out.String()) {
			if line = strings.TrimRight(line, "\n"); cells.Width(line) > view.Columns(nil) {
				t.Errorf("%s --help: %d columns: %s", cmd.CommandPath(), cells.Width(line), line)
			}
		}
		if bytes.Contains(out.Bytes(), []byte("\n      --config ")) && !slices.Contains([]string{"sluice disbatch", "sluice runner", "sluice mongo create-users"}, cmd.CommandPath()) &&
			!strings.HasPrefix(cmd.CommandPath(), "sluice config") {
			t.Errorf("%s --help lists --config, which is Disbatch's", cmd.CommandPath())
		}
		for _, c := range cmd.Commands() {
			look(c)
		}
	}
	look(root)
	if seen < 50 {
		t.Errorf("%d commands were looked at", seen)
	}
}

func TestWrapped(t *testing.T) {
	for _, c := range []struct {
		name, text string
		columns    int
		want       string
	}{
		{"a text that fits stays one line", "one two", 7, "one two\n"},
		{"lines of the source are joined before they are broken", "one\ntwo three", 9, "one two\nthree\n"},
		{"paragraphs stay apart", "one\n\ntwo", 9, "one\n\ntwo\n"},
		{"a word that is too long has a line of its own", "a longlonglong b", 6, "a\nlonglonglong\nb\n"},
		{"a list keeps its lines, and goes on under its second column", "List:\n\n  a   one two three four five six\n  bc  two", 26, "List:\n\n  a   one two three four\n      five six\n  bc  two\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := paragraphs(c.text, c.columns); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
