package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/seed-1177d267/sluice/internal/cells"
	"github.com/seed-1177d267/sluice/internal/cli/paint"
)

// A choice is a flag that takes one of several words.
type choice struct {
	value string
	words []string
}

func (c *choice) String() string { return c.value }
func (c *choice) Type() string   { return strings.Join(c.words, "|") }

// Set implements pflag.Value.
func (c *choice) Set(word string) error {
	for _, w := range c.words {
		if w == word {
			c.value = word
			return nil
		}
	}
	return fmt.Errorf("it is one of %s%s", strings.Join(c.words, ", "), didYouMean(word, c.words))
}

// A format is how a listing is printed.
type format struct{ choice }

// outputFlag gives the command its --output.
func outputFlag(cmd *cobra.Command) *format {
	f := &format{choice{"table", []string{"table", "json"}}}
	cmd.Flags().VarP(f, "output", "o", "how to print it")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(f.words, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
	return f
}

func (f *format) json() bool { return f.value == "json" }

// printJSON writes a value for programs, indented for people. A nil slice must not get here: lists are never null.
func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// A table is printed in columns that are as wide as their widest cell.
type table struct {
	head []string
	rows [][]string
	// paint colours a cell that was padded already; nil leaves it as it is.
	paint func(column int, word, padded string) string
}

func (t *table) add(row ...string) { t.rows = append(t.rows, row) }

func (t *table) print(w io.Writer) error {
	widths := make([]int, len(t.head))
	for _, row := range append([][]string{t.head}, t.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], cells.Width(cell))
		}
	}
	var b strings.Builder
	line := func(row []string, paint func(int, string, string) string) {
		var l strings.Builder
		for i, cell := range row {
			padded := cell
			if i < len(row)-1 {
				padded = cells.Pad(cell, widths[i]+2)
			}
			if paint != nil {
				padded = paint(i, cell, padded)
			}
			l.WriteString(padded)
		}
		b.WriteString(strings.TrimRight(l.String(), " "))
		b.WriteByte('\n')
	}
	line(t.head, nil)
	for _, row := range t.rows {
		line(row, t.paint)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// paint returns the palette for what is written to w: NO_COLOR (https://no-color.org) and TERM=dumb switch colours off, --color
// overrules both.
func (a *app) paint(w io.Writer) paint.Palette {
	switch a.colorFlag.value {
	case "always":
		return true
	case "never":
		return false
	}
	return paint.Palette(isTerminal(w) && a.Getenv("NO_COLOR") == "" && a.Getenv("TERM") != "dumb")
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// ago says how long a time lies back, and "" for no time.
func ago(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	return paint.Span(now.Sub(t)) + " ago"
}
