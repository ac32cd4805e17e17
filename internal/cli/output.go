package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/seed-1177d267/sluice/internal/cells"
	"github.com/seed-1177d267/sluice/internal/cli/paint"
	"github.com/seed-1177d267/sluice/internal/duration"
	"github.com/seed-1177d267/sluice/internal/report"
)

// A choice is a flag that takes one of several words.
type choice struct {
	value string
	words []string
}

func (c *choice) String() string    { return c.value }
func (c *choice) choices() []string { return c.words }
func (c *choice) Type() string      { return strings.Join(c.words, "|") }

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

// completeChoices lets shells complete the words of every flag that is a choice.
func completeChoices(cmd *cobra.Command) {
	complete := func(f *pflag.Flag) {
		if c, ok := f.Value.(interface{ choices() []string }); ok {
			completeWords(cmd, f.Name, c.choices())
		}
	}
	cmd.LocalFlags().VisitAll(complete)
	for _, c := range cmd.Commands() {
		completeChoices(c)
	}
}

// completeWords lets shells complete the words of a flag.
func completeWords(cmd *cobra.Command, flag string, words []string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
}

// A format is how a listing is printed.
type format struct{ choice }

// outputFlag gives the command its --output.
func outputFlag(cmd *cobra.Command) *format {
	f := &format{choice{"table", []string{"table", "json"}}}
	cmd.Flags().VarP(f, "output", "o", "how to print it")
	return f
}

// wideFlag is outputFlag for a listing that has more columns than fit a plain terminal.
func wideFlag(cmd *cobra.Command) *format {
	f := &format{choice{"table", []string{"table", "wide", "json"}}}
	cmd.Flags().VarP(f, "output", "o", "how to print it; wide: a table with ids")
	return f
}

func (f *format) wide() bool { return f.value == "wide" }

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

// add adds a row. What its cells say others may have written: nothing in it moves the cursor, or breaks the line.
func (t *table) add(row ...string) {
	for i := range row {
		row[i] = cells.Clean(row[i])
	}
	t.rows = append(t.rows, row)
}

// narrow is how wide a column stays at least that is cut.
const narrow = 12

// fit cuts cells so that no row is wider than a terminal: those of the last column, which is the one for people, then those of the widest
// column, and those of the first one, which names the row, last.
func (t *table) fit(columns int, widths []int) {
	over := 2*(len(widths)-1) - columns
	for _, w := range widths {
		over += w
	}
	least := func(i int) int { return min(widths[i], max(narrow, cells.Width(t.head[i]))) }
	cut := func(i int) {
		by := min(max(over, 0), widths[i]-least(i))
		widths[i], over = widths[i]-by, over-by
	}
	last := len(widths) - 1
	cut(last)
	for over > 0 && last > 1 {
		widest := 1
		for i := 2; i < last; i++ {
			if widths[i]-least(i) > widths[widest]-least(widest) {
				widest = i
			}
		}
		if widths[widest] == least(widest) {
			break
		}
		cut(widest)
	}
	cut(0)
	for _, row := range t.rows {
		for i := range row {
			row[i] = cells.Cut(row[i], widths[i], "~")
		}
	}
}

func (t *table) print(w io.Writer) error {
	widths := make([]int, len(t.head))
	for _, row := range append([][]string{t.head}, t.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], cells.Width(cell))
		}
	}
	if f, ok := fileOf(w); ok && t.head[len(t.head)-1] != "ID" {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
			t.fit(n, widths)
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
	f, ok := fileOf(w)
	return ok && term.IsTerminal(int(f.Fd()))
}

// fileOf returns the file that is written to, if it is one.
func fileOf(w io.Writer) (*os.File, bool) {
	if o, ok := w.(*output); ok {
		w = o.w
	}
	f, ok := w.(*os.File)
	return f, ok
}

// An output is standard output that remembers that it could not be written, so that no command has to look after each line and none ends
// well whose output is lost.
type output struct {
	w   io.Writer
	mu  sync.Mutex
	err error // the first one
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	n, err := o.w.Write(p)
	if err == nil {
		return n, nil
	}
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		err = path.Err // its name is not the user's
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	err = &outputError{err}
	o.err = cmp.Or(o.err, err)
	return n, err
}

func (o *output) failed() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// An outputError says that standard output cannot be written: whatever else was asked may have been done.
type outputError struct{ err error }

func (e *outputError) Error() string { return "standard output cannot be written: " + e.err.Error() }
func (e *outputError) Unwrap() error { return e.err }

// isOutput reports whether an error is one of writing the output.
func isOutput(err error) bool {
	var o *outputError
	return errors.As(err, &o)
}

// A span is a flag's duration: no command can wait, or go back, for less than nothing.
type span time.Duration

// spanFlag gives a command a flag that takes a duration.
func spanFlag(cmd *cobra.Command, d *time.Duration, name string, value time.Duration, usage string) {
	*d = value
	cmd.Flags().Var((*span)(d), name, usage)
}

func (s *span) Type() string { return "duration" }

func (s *span) String() string {
	if *s == 0 {
		return "0" // for which the help shows no default
	}
	return time.Duration(*s).String()
}

// Set implements pflag.Value.
func (s *span) Set(word string) error {
	d, err := time.ParseDuration(word)
	if err != nil {
		return errors.New("it is a duration, as in 30s, 10m or 1h30m")
	}
	if d < 0 {
		return errors.New("it cannot be less than 0")
	}
	*s = span(d)
	return nil
}

// limitFlag gives a listing its --limit.
func limitFlag(cmd *cobra.Command, value int) *int {
	n := countFlag(value)
	cmd.Flags().Var(&n, "limit", "how many at most; 0: all")
	return (*int)(&n)
}

// noteMore says below a listing that there is more than its limit, unless the person set that.
func (a *app) noteMore(cmd *cobra.Command, more bool, things string) error {
	if more && !cmd.Flags().Changed("limit") {
		a.note("there are more %s; --limit 0 lists all", things)
	}
	return nil
}

// countFlag is a flag's number of things, of which there are never less than none.
type countFlag int

func (c *countFlag) Type() string   { return "int" }
func (c *countFlag) String() string { return strconv.Itoa(int(*c)) }

// Set implements pflag.Value.
func (c *countFlag) Set(word string) error {
	n, err := strconv.Atoi(word)
	if err != nil || n < 0 {
		return errors.New("it is a number, 0 or more")
	}
	*c = countFlag(n)
	return nil
}

// number counts things by their word.
func number(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return report.Thousands(n) + " " + thing + "s"
}

// ago says how long a time lies back, and "" for no time.
func ago(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	return duration.Text(now.Sub(t)) + " ago"
}
