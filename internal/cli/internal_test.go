package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/hint"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

func TestExitCode(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		want int
	}{
		{"no error is success", nil, 0},
		{"any error is failure", errors.New("x"), 1},
		{"a failed plan is failure", verdict(plan.PlanFailed), 1},
		{"an abandoned plan is failure", verdict(plan.PlanAbandoned), 1},
		{"a conflict is failure", fmt.Errorf("x: %w", plan.ErrConflict), 1},
		{"what was typed wrong is bad usage", usagef("x"), 2},
		{"a plan that is not valid is bad usage", plan.Problems{{Message: "x"}}, 2},
		{"a name that is not there is bad usage", fmt.Errorf("x: %w", plan.ErrNotFound), 2},
		{"a name that is taken is bad usage", fmt.Errorf("x: %w", plan.ErrExists), 2},
		{"a plan that runs is not finished", verdict(plan.PlanRunning), 3},
		{"a plan that is submitted is not finished", verdict(plan.PlanSubmitting), 3},
		{"a deadline is not finished in time", context.DeadlineExceeded, 3},
		{"a store that is away cannot be reached", fmt.Errorf("x: %w", plan.ErrUnavailable), 4},
		{"a store that is not there cannot be opened", fmt.Errorf("x: %w", plan.ErrNoStore), 4},
		{"a store of a newer version cannot be opened", plan.ErrNewerSchema, 4},
		{"a full store cannot be written", plan.ErrFull, 4},
		{"a store that does not answer in time cannot be reached", fmt.Errorf("%w: %w", plan.ErrUnavailable, context.DeadlineExceeded), 4},
		{"a cancelled plan is cancelled", verdict(plan.PlanCancelled), 5},
		{"Ctrl-C is an interrupt", fmt.Errorf("x: %w", errInterrupted), 130},
		{"a context that a signal ended is an interrupt", context.Canceled, 130},
		{"a succeeded plan is success", verdict(plan.PlanSucceeded), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := exitCode(c.err); got != c.want {
				t.Errorf("exitCode(%v) = %d, want %d", c.err, got, c.want)
			}
		})
	}
}

func TestAnEarlyInterruptIsToldAsOne(t *testing.T) {
	var b strings.Builder
	a := &app{Program: Program{Stderr: &b, Getenv: func(string) string { return "" }}}
	a.tell(context.Canceled)
	if got, want := b.String(), "sluice: interrupted\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAListTellsWhenARetryBeganAndWhatItTook(t *testing.T) {
	var b strings.Builder
	a := &app{Program: Program{Stdout: &b, Getenv: func(string) string { return "" }}}
	now := time.Now()
	p := plan.Plan{
		Name: "nightly", Run: 3, State: plan.PlanFailed, Created: now.Add(-9 * time.Hour), Retried: now.Add(-2*time.Hour - time.Second), Ended: now.Add(-2 * time.Hour),
	}
	if err := a.printPlans(t.Context(), nil, []plan.Plan{p}, nil, false); err != nil {
		t.Fatal(err)
	}
	if _, row, _ := strings.Cut(b.String(), "\n"); !strings.Contains(row, "2h00m ago  1.0s") {
		t.Errorf("the list is\n%s", b.String())
	}
}

func TestAgesMayBeInDaysAndWeeks(t *testing.T) {
	for word, want := range map[string]time.Duration{"30d": 30 * 24 * time.Hour, "2w": 14 * 24 * time.Hour, "90m": 90 * time.Minute, "0": 0} {
		if age, err := parseAge(word); err != nil || age != want {
			t.Errorf("%q is %v, %v; want %v", word, age, err, want)
		}
	}
	for _, word := range []string{"", "d", "-3d", "-1h", "3 d", "99999999d", "soon"} {
		if age, err := parseAge(word); err == nil {
			t.Errorf("%q is taken for %v", word, age)
		}
	}
}

func TestNoDurationIsLessThanNothing(t *testing.T) {
	for word, want := range map[string]time.Duration{"0": 0, "90s": 90 * time.Second, "1h30m": 90 * time.Minute, "1d": 24 * time.Hour} {
		if span, err := parseSpan(word); err != nil || span != want {
			t.Errorf("%q is %v, %v; want %v", word, span, err, want)
		}
	}
	for _, word := range []string{"", "5", "-5s", "soon"} {
		if span, err := parseSpan(word); err == nil {
			t.Errorf("%q is taken for %v", word, span)
		}
	}
}

func TestCommandsAreOfferedAsAShellTakesThem(t *testing.T) {
	a := &app{storeFlag: "sqlite:my plans.db", Program: Program{Redact: func(uri string) string { return strings.ReplaceAll(uri, "my", "our") }}}
	if got, want := a.command("task", "logs", "p#1", "copy[3]"), "sluice task logs p#1 'copy[3]' --store 'sqlite:our plans.db'"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	a = &app{}
	if got, want := a.command("x", "it's"), `sluice x 'it'\''s'`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := a.command("x", "a\x1b[2Jé'b\\"), `sluice x $'a\x1b[2J\xc3\xa9\'b\\'`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAPlanSaysWhatWentWrongInTheWordsOfItsTasks(t *testing.T) {
	for _, c := range []struct {
		counts plan.Counts
		want   string
	}{
		{plan.Counts{Held: 3, Running: 1, Succeeded: 2}, "2/6"},
		{plan.Counts{Succeeded: 18, Terminated: 3}, "21/21, 3 stopped"},
		{plan.Counts{Succeeded: 1, Failed: 2, Orphaned: 1}, "4/4, 2 failed, 1 lost"},
		{plan.Counts{Succeeded: 2, Failed: 6, Allowed: 1, Gathered: 1}, "9/9, 6 failed, 1 allowed"},
	} {
		if got := done(c.counts); got != c.want {
			t.Errorf("%+v: got %q, want %q", c.counts, got, c.want)
		}
	}
}

// The names of other tools lead to commands and flags that there are.
func TestOtherWordsAreThere(t *testing.T) {
	root := (&app{Program: Program{Plugins: plugins.NewRegistry()}}).root()
	find := func(words string) *cobra.Command {
		words, flag, _ := strings.Cut(words, " --")
		cmd, rest, err := root.Find(strings.Fields(words))
		if err != nil || len(rest) > 0 || flag != "" && cmd.Flags().Lookup(flag) == nil {
			t.Errorf("there is no %q with flag %q", words, flag)
		}
		return cmd
	}
	for _, is := range otherWords {
		find(is)
	}
	for was, is := range otherWords {
		if cmd, rest, _ := root.Find(strings.Fields(was)); len(rest) == 0 {
			t.Errorf("%q leads to %q, but is a command itself: %q", was, is, cmd.CommandPath())
		}
	}
	for was, is := range otherCommands {
		find(is)
		words, flag, _ := strings.Cut(was, " --")
		if find(words).Flags().Lookup(flag) != nil {
			t.Errorf("%q leads to %q, but is there", was, is)
		}
	}
}

// Each hint names a command that there is, with flags that it takes.
func TestEachHintIsACommand(t *testing.T) {
	root := (&app{Program: Program{Plugins: plugins.NewRegistry()}}).root()
	p := plan.Plan{Name: "nightly", Run: 1, Size: 2}
	of, alone := plan.Task{Name: "copy", Plan: plan.PlanID{ID: plan.NewID(time.Now())}}, plan.Task{Name: "copy"}
	q := plan.Queue{Name: "imap", Pin: []plan.NodeName{"mig01"}, NodeThreads: 1}
	_, ready := hint.Submission(&p, time.Now())
	_, full := hint.Full(&q)
	_, slower := hint.Slower(&q, 4)
	for _, h := range []hint.Hint{
		hint.Start(&alone, &p), hint.Start(&of, &p), hint.Resume(&p), ready, hint.Retry(&of, &p), hint.Retry(&alone, &p), hint.Below(&of, &p), hint.Log(&of, &p),
		hint.Log(&alone, &p), full, slower, hint.MoreEach(&q), hint.MoreThreads("mig01", 2), hint.Unpin(&q), hint.Unignore(&q), hint.Pinned(&q), hint.Balance(),
	} {
		cmd, rest, err := root.Find(h.Do)
		if err != nil || !cmd.Runnable() || h.Key == "" {
			t.Errorf("%s: %q is no command: %v", h.Key, h.Do, err)
			continue
		}
		line := strings.ReplaceAll(strings.Join(rest, "\n"), "\nN", "\n1") // N is for the person to choose
		if err := cmd.ParseFlags(strings.Split(line, "\n")); err != nil {
			t.Errorf("%s: %q: %v", h.Key, h.Do, err)
		}
	}
}
