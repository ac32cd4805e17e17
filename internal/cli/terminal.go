package cli

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
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

// person returns the lines that a person types, and false if nobody is at a terminal to be asked something on standard error.
func (a *app) person() (*bufio.Scanner, bool) {
	in, ok := a.Stdin.(*os.File)
	if !ok || !view.IsTerminal(in) || !view.IsTerminal(a.Stderr) {
		return nil, false
	}
	return bufio.NewScanner(in), true
}

// answered returns the first of the words that a person's next line begins; "" if it begins none. There is no next line where the scan failed.
func (a *app) answered(lines *bufio.Scanner, words ...string) (word string, scanned bool) {
	if !lines.Scan() {
		fmt.Fprintln(a.Stderr)
		return "", false
	}
	answer := strings.ToLower(strings.TrimSpace(lines.Text()))
	i := slices.IndexFunc(words, func(w string) bool { return answer != "" && strings.HasPrefix(w, answer) })
	if i < 0 {
		return "", true
	}
	return words[i], true
}

// table returns a table for standard output whose second column has states.
func (a *app) table(head ...string) *view.Table {
	return &view.Table{Head: head, Paint: a.paint(a.Stdout).States(1)}
}
