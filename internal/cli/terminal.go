package cli

import (
	"io"
	"strings"

	"github.com/seed-1177d267/sluice/internal/cli/view"
)

// unicode reports whether the locale can show more than ASCII.
func (a *app) unicode() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToUpper(a.Getenv(name)); v != "" {
			return strings.Contains(v, "UTF-8") || strings.Contains(v, "UTF8")
		}
	}
	return false
}

func (a *app) ellipsis() string { return view.Ellipsis(a.unicode()) }

// paint returns the palette for what is written to w: NO_COLOR (https://no-color.org) and TERM=dumb switch colours off, --color
// overrules both.
func (a *app) paint(w io.Writer) view.Palette {
	switch a.colorFlag.value {
	case "always":
		return true
	case "never":
		return false
	}
	return view.Palette(view.IsTerminal(w) && a.Getenv("NO_COLOR") == "" && a.Getenv("TERM") != "dumb")
}

// redraws reports whether live progress can be shown on standard output.
func (a *app) redraws() bool { return a.Getenv("TERM") != "dumb" && view.Redraws(a.Stdout) }

// table returns a table for standard output whose second column has states.
func (a *app) table(head ...string) *view.Table {
	return &view.Table{Head: head, Paint: a.paint(a.Stdout).States(1)}
}
