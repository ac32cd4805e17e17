package view

import (
	"io"

	"github.com/seed-1177d267/sluice/plan"
)

// KeepEnds is the largest number of tasks to run for which the end of each stays on the terminal. If
// more are to run only the failures stay, and the ends of tasks that are no items if these are few.
const KeepEnds = 100

// A Live redraws a few lines in place on a terminal.
type Live struct {
	screen  *Screen
	palette Palette
	all     bool
}

// NewLive returns a view on a terminal. all says that each end is to stay, with what the task printed.
func NewLive(w io.Writer, palette Palette, all bool) *Live {
	size := func() (int, int) {
		columns, rows := Size(w)
		if columns <= 0 || rows <= 0 {
			return 80, 24
		}
		return columns, rows
	}
	return &Live{screen: NewScreen(w, size), palette: palette, all: all}
}

// Tells implements Watch.
func (v *Live) Tells(m *Moment, e *Event) bool {
	if !v.all && e.Status == plan.Succeeded && (m.Brief && !e.Stays || !e.Of.IsZero()) {
		return false
	}
	return e.End(false) != ""
}

// Show implements Watch.
func (v *Live) Show(m *Moment) error {
	f := m.Frame
	f.Note = m.Note
	return v.screen.Show(told(v, m, v.palette), func(columns, rows int) []string { return Render(f, columns, rows, v.palette) })
}

// Close implements Watch.
func (v *Live) Close() { _ = v.screen.Clear() } // what follows says whether the terminal is gone
