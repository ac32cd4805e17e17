// Package vttest is a terminal for tests: it understands the little that live progress writes, and wraps long lines as terminals do.
package vttest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/internal/cells"
)

// A Terminal shows the text that is written to it. A resize wraps the text again, as in most
// terminals.
type Terminal struct {
	t             testing.TB
	columns, rows int
	lines         []string // all of them, with those that have scrolled away
	x, y          int
	writes        int
}

// New returns an empty terminal of that size. An escape sequence that it does not know fails the
// test.
func New(t testing.TB, columns, rows int) *Terminal {
	return &Terminal{t: t, columns: columns, rows: rows, lines: []string{""}}
}

// Size returns its columns and rows.
func (v *Terminal) Size() (columns, rows int) { return v.columns, v.rows }

// Writes returns how often it was written to.
func (v *Terminal) Writes() int { return v.writes }

// Text returns all that it shows, and what has scrolled away above.
func (v *Terminal) Text() string { return strings.Join(v.lines, "\n") }

// Write implements io.Writer.
func (v *Terminal) Write(p []byte) (int, error) {
	v.writes++
	rest := string(p)
	for rest != "" {
		if !strings.HasPrefix(rest, "\x1b[") {
			r := []rune(rest)[0]
			v.put(r)
			rest = rest[len(string(r)):]
			continue
		}
		end := strings.IndexAny(rest, "AJKmhl")
		if end < 0 {
			v.t.Fatalf("the terminal was asked for %q", rest)
		}
		v.control(rest[2:end], rest[end])
		rest = rest[end+1:]
	}
	return len(p), nil
}

func (v *Terminal) control(arg string, what byte) {
	switch {
	case what == 'A':
		var n int
		_, _ = fmt.Sscan(arg, &n)
		v.y = max(v.y-n, len(v.lines)-v.rows, 0)
	case what == 'K' && arg == "":
		v.lines[v.y] = cells.Cut(v.lines[v.y], v.x, "")
	case what == 'J' && arg == "":
		v.lines = v.lines[:v.y+1]
		v.control("", 'K')
	case what == 'm', arg == "?2026":
	default:
		v.t.Errorf("the terminal was asked for %q", arg+string(what))
	}
}

func (v *Terminal) put(r rune) {
	switch r {
	case '\r':
		v.x = 0
		return
	case '\n':
		v.down()
		return
	}
	w := cells.Width(string(r))
	if v.x+w > v.columns {
		v.down()
		v.x = 0
	}
	line := v.lines[v.y]
	before := cells.Pad(cells.Cut(line, v.x, ""), v.x)
	after := ""
	if cells.Width(line) > v.x+w {
		after = strings.TrimPrefix(line, cells.Cut(line, v.x+w, ""))
	}
	v.lines[v.y] = before + string(r) + after
	v.x += w
}

func (v *Terminal) down() {
	v.y++
	if v.y == len(v.lines) {
		v.lines = append(v.lines, "")
	}
}

// Resize wraps what is there to the new width, with the cursor on the last row of the line that it was on.
func (v *Terminal) Resize(columns int) {
	var lines []string
	for i, l := range v.lines {
		for cells.Width(l) > columns {
			head := cells.Cut(l, columns, "")
			lines = append(lines, head)
			l = strings.TrimPrefix(l, head)
		}
		lines = append(lines, l)
		if i == v.y {
			v.y = len(lines) - 1
		}
	}
	v.lines, v.columns = lines, columns
}
