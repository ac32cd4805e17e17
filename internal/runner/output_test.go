package runner

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// texts returns what entries say.
func texts(entries []Entry) []string {
	var all []string
	for _, e := range entries {
		all = append(all, e.Text)
	}
	return all
}

// instant returns the n-th second of a time of the tests' own.
func instant(n int) time.Time { return time.Unix(1_700_000_000+int64(n), 0) }

func TestOutputComesInLinesHoweverItIsRead(t *testing.T) {
	for _, c := range []struct {
		name  string
		reads []string
		want  []string
	}{
		{"whole lines", []string{"a\nb\n"}, []string{"a\n", "b\n"}},
		{"a line in pieces", []string{"a", "b", "c\nd\n"}, []string{"abc\n", "d\n"}},
		{"no newline at the end", []string{"a\n", "b"}, []string{"a\n", "b"}},
		{"empty lines", []string{"\n\n", "\n"}, []string{"\n", "\n", "\n"}},
		{"nothing", nil, nil},
		{"a character cut in two", []string{"caf\xc3", "\xa9\n"}, []string{"café\n"}},
		{"bytes that are not UTF-8", []string{"caf\xe9 \xff\n"}, []string{`caf\xe9 \xff` + "\n"}},
		{"a NUL", []string{"a\x00b\n"}, []string{`a\x00b` + "\n"}},
		{"the replacement character itself", []string{"\ufffd\xff\n"}, []string{"\ufffd\\xff\n"}},
		{"carriage returns stay", []string{"10%\r20%\r\n"}, []string{"10%\r20%\r\n"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := NewOutput(0)
			l := newLines(out, Stdout)
			for _, r := range c.reads {
				l.write([]byte(r), instant(0))
			}
			l.close(instant(1))
			if got := texts(out.Drain()); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestALongLineIsCutBetweenCharacters(t *testing.T) {
	line := strings.Repeat("é", 3*longestLine) + "\n"
	for _, size := range []int{7, 1000, len(line)} {
		out := NewOutput(4 << 20)
		l := newLines(out, Stdout)
		for part := range slices.Chunk([]byte(line), size) {
			l.write(part, instant(0))
		}
		l.close(instant(1))
		got := texts(out.Drain())
		for _, text := range got {
			if len(text) > longestLine || strings.Contains(text, `\x`) {
				t.Fatalf("read %d bytes at once: a piece of %d bytes, %.20q…", size, len(text), text)
			}
		}
		if strings.Join(got, "") != line {
			t.Errorf("read %d bytes at once: the pieces are not the line", size)
		}
	}
}

func TestAnEntryHasTheTimeOfItsFirstByte(t *testing.T) {
	out := NewOutput(0)
	l := newLines(out, Stderr)
	l.write([]byte("a"), instant(1))
	l.write([]byte("b\nc\nd"), instant(2))
	l.write([]byte("e\n"), instant(3))
	l.close(instant(4))
	want := []Entry{{instant(1), Stderr, "ab\n"}, {instant(2), Stderr, "c\n"}, {instant(2), Stderr, "de\n"}}
	if got := out.Drain(); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestTheFirstAndTheLastHalfAreKept(t *testing.T) {
	for _, c := range []struct {
		name  string
		limit int
		line  func(i int) string
		lines int
	}{
		{"lines", 8 << 10, func(i int) string { return fmt.Sprintf("line %d\n", i) }, 2000},
		{"empty lines", 8 << 10, func(int) string { return "\n" }, 2000},
		{"lines longer than a half", 8 << 10, func(i int) string { return strings.Repeat(strconv.Itoa(i%10), 6000) + "\n" }, 50},
		{"bytes that are written as four each", 1 << 10, func(int) string { return strings.Repeat("\xff", 100) + "\n" }, 50},
		{"the smallest limit", 1, func(i int) string { return fmt.Sprintf("line %d\n", i) }, 500},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := NewOutput(c.limit)
			l := newLines(out, Stdout)
			var whole strings.Builder
			for i := range c.lines {
				l.write([]byte(c.line(i)), instant(i))
				whole.WriteString(storable(c.line(i)))
			}
			l.close(instant(c.lines))
			out.close()
			entries := out.Drain()
			var parts [2]strings.Builder
			part, size, dropped := 0, 0, -1
			for _, e := range entries {
				if e.Stream != Note {
					parts[part].WriteString(e.Text)
					size += len(e.Text) + entryCost
					continue
				}
				if m := regexp.MustCompile(`^\[(\d+) bytes dropped here\]\n$`).FindStringSubmatch(e.Text); m != nil {
					part = 1
					dropped, _ = strconv.Atoi(m[1])
				}
			}
			first, last := parts[0].String(), parts[1].String()
			if limit := max(c.limit, minLimit); size > limit || size < limit/2 {
				t.Errorf("%d bytes are kept, of a limit of %d", size, limit)
			}
			if first == "" || !strings.HasPrefix(whole.String(), first) {
				t.Errorf("the first part is not the beginning: %.60q…", first)
			}
			if last == "" || !strings.HasSuffix(whole.String(), last) {
				t.Errorf("the last part is not the end: %.60q…", last)
			}
			if want := whole.Len() - len(first) - len(last); dropped != want {
				t.Errorf("%d bytes are said to be dropped, want %d", dropped, want)
			}
			if more := out.Drain(); more != nil {
				t.Errorf("drained again: %q", texts(more))
			}
		})
	}
}

func TestDrainTakesEachEntryOnce(t *testing.T) {
	out := NewOutput(minLimit)
	l := newLines(out, Stdout)
	var got []string
	for i := range 20 { // the first half of the limit holds 13 of them
		l.write(fmt.Appendf(nil, "line%2d\n", i), instant(i))
		got = append(got, texts(out.Drain())...)
		if i < 13 && len(got) != i+1 {
			t.Fatalf("after line %d: %q", i, got)
		}
	}
	if n := len(got); n != 14 || !strings.Contains(got[13], "shown when the command has ended") {
		t.Errorf("before the end: %q, want 13 lines and a note that the rest comes later", got)
	}
	l.close(instant(20))
	out.close()
	got = append(got, texts(out.Drain())...)
	for i := range 20 {
		if n := strings.Count(strings.Join(got, ""), fmt.Sprintf("line%2d\n", i)); n != 1 {
			t.Errorf("line %d came %d times", i, n)
		}
	}
}

func TestSecretsAreNotInEntries(t *testing.T) {
	out := NewOutput(0, "hunter2", "one\nsecond line\n")
	stdout, stderr := newLines(out, Stdout), newLines(out, Stderr)
	stdout.write([]byte("password is hun"), instant(0))
	stderr.write([]byte("hun"), instant(0))
	stdout.write([]byte("ter2, not hunter1\n\tsecond line\r\n"), instant(0))
	stderr.write([]byte("t\n"), instant(0))
	stdout.write([]byte("one\n"), instant(0))
	stdout.write([]byte("second line\nhunter"), instant(0))
	stdout.close(instant(1))
	stderr.close(instant(1))
	want := []string{"hunt\n", "password is ***, not hunter1\n", "\t***\r\n", "***\n", "***"}
	got := texts(out.Drain())
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The property: whatever is printed, what is kept is valid UTF-8 without NUL and, where nothing was dropped, says all of it.
func FuzzOutput(f *testing.F) {
	f.Add([]byte("a\nb\x00\xff\n"), 1)
	f.Add([]byte("\xe2\x82\xac\n\n"), 2)
	f.Fuzz(func(t *testing.T, text []byte, size int) {
		if size < 1 {
			return
		}
		out := NewOutput(8 << 20)
		l := newLines(out, Stdout)
		for part := range slices.Chunk(text, size) {
			l.write(part, instant(0))
		}
		l.close(instant(0))
		all := strings.Join(texts(out.Drain()), "")
		if !utf8.ValidString(all) || strings.Contains(all, "\x00") {
			t.Errorf("%q cannot be stored", all)
		}
		if want := storable(string(text)); len(text) <= longestLine && all != want {
			t.Errorf("%q, want %q", all, want)
		}
	})
}
