package view

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/seed-1177d267/sluice/internal/cells"
)

// A Screen keeps live lines at the bottom of what a terminal shows and lets lasting lines scroll away above them. It is one
// goroutine's.
type Screen struct {
	w       io.Writer
	size    func() (columns, rows int)
	last    []string // the live lines as they stand there
	columns int      // of the terminal when they were drawn
}

// NewScreen returns a screen on a terminal whose size is asked for before each drawing, so that no signal is needed to follow it.
func NewScreen(w io.Writer, size func() (columns, rows int)) *Screen {
	return &Screen{w: w, size: size}
}

// Show prints the lasting lines. Below them it draws the live lines, in place of the previous ones;
// render makes them for the present size of the terminal. All of it is one write, so that nothing
// flickers; nothing is written when nothing changed.
func (s *Screen) Show(lasting []string, render func(columns, rows int) []string) error {
	columns, rows := s.size()
	live := render(columns, rows)
	if len(lasting) == 0 && columns == s.columns && slices.Equal(live, s.last) {
		return nil
	}
	var b strings.Builder
	b.WriteString("\x1b[?2026h") // terminals that know it show the whole at once
	s.home(&b, columns)
	if len(lasting) > 0 {
		b.WriteString("\x1b[J") // lasting lines may wrap, over more of the live ones than their own
	}
	for _, l := range lasting {
		b.WriteString(l)
		b.WriteString("\r\n")
	}
	for i, l := range live {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(l)
		b.WriteString("\x1b[K")
	}
	// The cursor goes to the start of the line, where an echoed ^C does not wrap. It is not hidden,
	// because a killed process could not show it again.
	b.WriteString("\x1b[J\r\x1b[?2026l")
	s.last, s.columns = live, columns
	_, err := io.WriteString(s.w, b.String())
	return err
}

// Clear takes the live lines away.
func (s *Screen) Clear() error {
	if len(s.last) == 0 {
		return nil
	}
	var b strings.Builder
	columns, _ := s.size()
	s.home(&b, columns)
	b.WriteString("\x1b[J")
	s.last = nil
	_, err := io.WriteString(s.w, b.String())
	return err
}

// home moves the cursor from the last of the live lines to the first. Where the terminal has become narrower it has wrapped them.
func (s *Screen) home(b *strings.Builder, columns int) {
	up := len(s.last) - 1
	if columns > 0 && columns < s.columns {
		for _, l := range s.last {
			up += max(0, cells.Width(plain(l))-1) / columns
		}
	}
	if up > 0 {
		fmt.Fprintf(b, "\x1b[%dA", up)
	}
	b.WriteString("\r")
}

// plain returns a line without its colours.
func plain(s string) string {
	for {
		from := strings.IndexByte(s, '\x1b')
		if from < 0 {
			return s
		}
		to := strings.IndexByte(s[from:], 'm')
		if to < 0 {
			return s[:from]
		}
		s = s[:from] + s[from+to+1:]
	}
}
