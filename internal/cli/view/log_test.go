package view

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

func TestLastLinesAreCountedWithinEntries(t *testing.T) {
	entries := []plan.LogEntry{{Text: "a\n"}, {Text: "b\nc\n"}, {Text: "d"}}
	for n, want := range map[int]string{0: "", 1: "d", 2: "c\nd", 3: "b\nc\nd", 9: "a\nb\nc\nd"} {
		var b bytes.Buffer
		p := Log{W: &b}
		p.Print(LastLines(entries, n))
		if b.String() != want {
			t.Errorf("the last %d lines are %q, want %q", n, b.String(), want)
		}
	}
	if got := LastLines(entries, 1); len(got) != 1 { // of an entry that is cut to nothing, an attempt would be said to begin
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
					e = rules.RetriedEntry(time.Now())
				case back:
					e = rules.GivenBackEntry(time.Now(), e.Attempt)
				}
				entries = append(entries, e)
			}
			var got []string
			for _, try := range Tries(entries, &task) {
				got = append(got, fmt.Sprintf("%d%s:%d", try.Number, map[bool]string{true: "+"}[try.Again], len(try.Entries)))
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("got %q, want %q", strings.Join(got, " "), c.want)
			}
		})
	}
}

func TestALogDoesNotChangeTheTerminal(t *testing.T) {
	var b bytes.Buffer
	p := Log{W: &b, Tame: true}
	p.Print([]plan.LogEntry{{Attempt: 1, Text: "\x1b[2J\x1b[32mgreen\x1b[0m\n"}})
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
		{"and what was given back", false, [][]plan.LogEntry{{first, rules.GivenBackEntry(time.Time{}, 1)}, {first}},
			"a\n" + rules.GivenBackEntry(time.Time{}, 1).Text + "[attempt 1, again]\na\n"},
		{"but not where only one was asked for", true, [][]plan.LogEntry{{second}}, "b\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b bytes.Buffer
			p := Log{W: &b, One: c.one}
			for _, entries := range c.print {
				p.Print(entries)
			}
			if b.String() != c.want {
				t.Errorf("got\n%s\nwant\n%s", b.String(), c.want)
			}
		})
	}
}

func TestALogSaysWhereAnAttemptBegins(t *testing.T) {
	at := time.Date(2030, 1, 2, 3, 4, 5, 6e6, time.Local)
	var b bytes.Buffer
	p := Log{W: &b, Times: true, Many: true}
	p.Print([]plan.LogEntry{{At: at, Attempt: 1, Text: "no newline"}, {At: at, Attempt: 2, Text: "a\n"}})
	want := "[attempt 1]\n2030-01-02T03:04:05.006 no newline\n[attempt 2]\n2030-01-02T03:04:05.006 a\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
	b.Reset()
	p = Log{W: &b, Many: true}
	p.Print([]plan.LogEntry{{Attempt: 1, Text: "a\n"}, rules.RetriedEntry(at), {Attempt: 1, Text: "b\n"}, rules.GivenBackEntry(at, 1), {Attempt: 1, Text: "c\n"}})
	want = "[attempt 1]\na\n" + rules.RetriedEntry(at).Text + "[attempt 1, again]\nb\n" + rules.GivenBackEntry(at, 1).Text + "[attempt 1, again]\nc\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestARetryIsToldOnALineOfItsOwn(t *testing.T) {
	var b bytes.Buffer
	p := Log{W: &b}
	p.Print([]plan.LogEntry{{Attempt: 1, Stream: plan.Stdout, Text: "no newline"}, rules.RetriedEntry(time.Time{}), {Attempt: 1, Stream: plan.Stdout, Text: "again"}})
	if want := "no newline\nretried by a person: attempts count from 1 again\n[attempt 1, again]\nagain"; b.String() != want {
		t.Errorf("the log is\n%s\nwant\n%s", b.String(), want)
	}
}
