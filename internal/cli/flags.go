package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
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
