package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

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

func TestAgesMayBeInDaysAndWeeks(t *testing.T) {
	for word, want := range map[string]time.Duration{"30d": 30 * 24 * time.Hour, "2w": 14 * 24 * time.Hour, "90m": 90 * time.Minute, "0": 0} {
		var v ageValue
		if err := v.Set(word); err != nil || time.Duration(v) != want {
			t.Errorf("Set(%q) = %v, %v; want %v", word, time.Duration(v), err, want)
		}
	}
	for _, word := range []string{"", "d", "-3d", "-1h", "1.5d", "99999999d", "soon"} {
		var v ageValue
		if err := v.Set(word); err == nil {
			t.Errorf("Set(%q) took it for %v", word, time.Duration(v))
		}
	}
}

func TestNoDurationIsLessThanNothing(t *testing.T) {
	for word, want := range map[string]time.Duration{"0": 0, "90s": 90 * time.Second, "1h30m": 90 * time.Minute} {
		var v span
		if err := v.Set(word); err != nil || time.Duration(v) != want {
			t.Errorf("Set(%q) = %v, %v; want %v", word, time.Duration(v), err, want)
		}
	}
	for _, word := range []string{"", "5", "-5s", "soon"} {
		var v span
		if err := v.Set(word); err == nil {
			t.Errorf("Set(%q) took it for %v", word, time.Duration(v))
		}
	}
}

func TestTableKeepsColumnsUnderWideCharacters(t *testing.T) {
	table := table{head: []string{"NAME", "STATE"}, paint: func(column int, word, padded string) string {
		if column == 1 {
			return "<" + padded + ">"
		}
		return padded
	}}
	table.add("漢字漢", "x")
	table.add("ab", "y")
	var b strings.Builder
	if err := table.print(&b); err != nil {
		t.Fatal(err)
	}
	if want := "NAME    STATE\n漢字漢  <x>\nab      <y>\n"; b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
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

func TestLastLinesAreCountedWithinEntries(t *testing.T) {
	entries := []plan.LogEntry{{Text: "a\n"}, {Text: "b\nc\n"}, {Text: "d"}}
	for n, want := range map[int]string{0: "", 1: "d", 2: "c\nd", 3: "b\nc\nd", 9: "a\nb\nc\nd"} {
		var b bytes.Buffer
		p := logPrinter{w: &b}
		p.print(lastLines(entries, n))
		if b.String() != want {
			t.Errorf("the last %d lines are %q, want %q", n, b.String(), want)
		}
	}
	if got := lastLines(entries, 1); len(got) != 1 { // of an entry that is cut to nothing, an attempt would be said to begin
		t.Errorf("the last line is of %d entries, want 1", len(got))
	}
}

func TestAttemptsOfALog(t *testing.T) {
	// A log is written as the numbers of its entries' attempts, r for a retry, and b for an attempt that is given back.
	for _, c := range []struct {
		name    string
		attempt int // the task's last
		log     string
		want    string
	}{
		{"an empty log has none", 0, "", ""},
		{"entries of one attempt are together", 1, "1 1", "1:2"},
		{"attempts are told by their numbers", 2, "1 2 2", "1:1 2:2"},
		{"after a retry they begin again", 1, "1 2 r 1", "1:1 2:1 0+:1 1+:1"},
		{"also where the number is the same", 1, "1 r 1 1", "1:1 0+:1 1+:2"},
		{"and where the first one printed nothing", 2, "1 2 r 2", "1:1 2:1 0+:1 2+:1"},
		{"a retry that has not run yet has no attempt", 0, "1 r", "1:1 0+:1"},
		{"one that was given back does not count", 1, "1 1b 1", "1:2 1+:1"},
		{"nor does it where the next one has printed nothing yet", 1, "1 1b", "1:2 1+:0"},
		{"a further attempt may have printed nothing", 3, "2", "2:1 3:0"},
		{"the first after a retry too", 1, "1 r", "1:1 0+:1 1+:0"},
		{"what another program logged is of the last one", 1, "0 0", "1:2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			task := plan.Task{Attempt: c.attempt}
			var entries []plan.LogEntry
			for _, word := range strings.Fields(c.log) {
				e := plan.LogEntry{Stream: plan.Stdout, Text: "x\n"}
				number, back := strings.CutSuffix(word, "b")
				switch e.Attempt, _ = strconv.Atoi(number); {
				case word == "r":
					e = plan.RetriedEntry(time.Now())
				case back:
					e = plan.GivenBackEntry(time.Now(), e.Attempt)
				}
				entries = append(entries, e)
			}
			var got []string
			for _, try := range attempts(entries, &task) {
				got = append(got, fmt.Sprintf("%d%s:%d", try.number, map[bool]string{true: "+"}[try.again], len(try.entries)))
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("got %q, want %q", strings.Join(got, " "), c.want)
			}
		})
	}
}

func TestALogDoesNotChangeTheTerminal(t *testing.T) {
	var b bytes.Buffer
	p := logPrinter{w: &b, tame: true}
	p.print([]plan.LogEntry{{Attempt: 1, Text: "\x1b[2J\x1b[32mgreen\x1b[0m\n"}})
	if got, want := b.String(), "\x1b[32mgreen\x1b[0m\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestALogThatIsFollowedSaysWhereTheNextAttemptBegins(t *testing.T) {
	first, second := plan.LogEntry{Attempt: 1, Text: "a\n"}, plan.LogEntry{Attempt: 2, Text: "b\n"}
	for _, c := range []struct {
		name  string
		one   bool
		print [][]plan.LogEntry
		want  string
	}{
		{"one has no mark", false, [][]plan.LogEntry{{first}, {first}}, "a\na\n"},
		{"the second has one", false, [][]plan.LogEntry{{first}, {second}}, "a\n[attempt 2]\nb\n"},
		{"also if the first printed nothing", false, [][]plan.LogEntry{{second}}, "[attempt 2]\nb\n"},
		{"and what was given back", false, [][]plan.LogEntry{{first, plan.GivenBackEntry(time.Time{}, 1)}, {first}},
			"a\n" + plan.GivenBackEntry(time.Time{}, 1).Text + "[attempt 1, again]\na\n"},
		{"but not where only one was asked for", true, [][]plan.LogEntry{{second}}, "b\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b bytes.Buffer
			p := logPrinter{w: &b, one: c.one}
			for _, entries := range c.print {
				p.print(entries)
			}
			if b.String() != c.want {
				t.Errorf("got\n%s\nwant\n%s", b.String(), c.want)
			}
		})
	}
}

func TestLogPrinterSaysWhereAnAttemptBegins(t *testing.T) {
	at := time.Date(2030, 1, 2, 3, 4, 5, 6e6, time.Local)
	var b bytes.Buffer
	p := logPrinter{w: &b, times: true, many: true}
	p.print([]plan.LogEntry{{At: at, Attempt: 1, Text: "no newline"}, {At: at, Attempt: 2, Text: "a\n"}})
	want := "[attempt 1]\n2030-01-02T03:04:05.006 no newline\n[attempt 2]\n2030-01-02T03:04:05.006 a\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
	b.Reset()
	p = logPrinter{w: &b, many: true}
	p.print([]plan.LogEntry{{Attempt: 1, Text: "a\n"}, plan.RetriedEntry(at), {Attempt: 1, Text: "b\n"}, plan.GivenBackEntry(at, 1), {Attempt: 1, Text: "c\n"}})
	want = "[attempt 1]\na\n" + plan.RetriedEntry(at).Text + "[attempt 1, again]\nb\n" + plan.GivenBackEntry(at, 1).Text + "[attempt 1, again]\nc\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
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
