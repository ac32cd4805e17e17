package cli

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/duration"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// A value is what a flag takes: it implements pflag.Value for values of any type.
type value[T any] struct {
	to    *T
	kind  string // the word for the value in the help
	parse func(word string) (T, error)
	text  func(T) string
}

func (v *value[T]) Type() string   { return v.kind }
func (v *value[T]) String() string { return v.text(*v.to) }

func (v *value[T]) Set(word string) error {
	t, err := v.parse(word)
	if err == nil {
		*v.to = t
	}
	return err
}

// settings are the flags that a T is made and changed with.
type settings[T any] struct {
	names []string
	sets  []func(*T) error // by name
}

// on has a flag change a T as set does.
func (s *settings[T]) on(flag string, set func(*T) error) {
	s.names, s.sets = append(s.names, flag), append(s.sets, set)
}

// apply changes what the flags say that were given.
func (s *settings[T]) apply(cmd *cobra.Command, t *T) error {
	for i, name := range s.names {
		if !cmd.Flags().Changed(name) {
			continue
		}
		if err := s.sets[i](t); err != nil {
			if _, told := errors.AsType[*usageError](err); told {
				return err
			}
			return usagef("--%s: %w", name, err)
		}
	}
	return nil
}

// needed refuses a command that is given none of the flags.
func (s *settings[T]) needed(cmd *cobra.Command) error {
	if !slices.ContainsFunc(s.names, cmd.Flags().Changed) {
		return usagef("nothing to change: give one of --%s", strings.Join(s.names, ", --"))
	}
	return nil
}

// spanFlag gives a command a flag that takes a duration: no command can wait, or go back, for less than nothing.
func spanFlag(cmd *cobra.Command, d *time.Duration, name string, of time.Duration, usage string) {
	*d = of
	cmd.Flags().Var(&value[time.Duration]{d, "duration", parseSpan, spanText}, name, usage)
}

func parseSpan(word string) (time.Duration, error) {
	if word == "0" {
		return 0, nil
	}
	if strings.HasPrefix(word, "-") {
		return 0, errors.New("it cannot be less than 0")
	}
	return duration.Parse(word)
}

func spanText(d time.Duration) string {
	if d == 0 {
		return "0" // for which the help shows no default
	}
	return d.String()
}

// parseAge reads the age of a thing to be kept.
func parseAge(word string) (time.Duration, error) {
	age, err := parseSpan(word)
	if err != nil {
		err = errors.New("it is an age, as in 30d, 2w or 12h")
	}
	return age, err
}

// parseWithin returns what reads a number from least to most; else it is wrong.
func parseWithin(least, most int, wrong string) func(word string) (int, error) {
	return func(word string) (int, error) {
		n, err := strconv.Atoi(word)
		if err != nil || n < least || n > most {
			return 0, errors.New(wrong)
		}
		return n, nil
	}
}

// limitFlag gives a listing its --limit.
func limitFlag(cmd *cobra.Command, most int) *int {
	parse := parseWithin(0, math.MaxInt, "it is a number, 0 or more")
	cmd.Flags().Var(&value[int]{&most, "int", parse, strconv.Itoa}, "limit", "how many at most; 0: all")
	return &most
}

const unlimited = "unlimited"

// threadsOf is a flag's limit of tasks, least or more; -1 is unlimited.
func threadsOf(n *int, least int) *value[int] {
	parse := func(word string) (int, error) {
		if word == unlimited {
			return -1, nil
		}
		n, err := strconv.Atoi(word)
		if err != nil || n < least || rules.CheckLimit("", n) != nil {
			return 0, fmt.Errorf("it is a number of tasks, %d to %d, or %s", least, plan.MaxThreads, unlimited)
		}
		return n, nil
	}
	return &value[int]{n, "N|" + unlimited, parse, threadsText}
}

func threadsText(n int) string {
	if n < 0 {
		return unlimited
	}
	return strconv.Itoa(n)
}
