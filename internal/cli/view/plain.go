package view

import (
	"fmt"
	"io"
	"strings"
)

// A Plain prints a line for each end, and what tasks had printed. If the moment is brief, it prints
// a line for each failure and each retry, and for tasks that are no items if these are few. One line about the progress of the plan takes the place
// of all others.
type Plain struct {
	W        io.Writer
	Notes    io.Writer
	Palette  Palette
	Progress *Reporter // nil: no progress is shown
}

// Tells implements Watch.
func (v *Plain) Tells(m *Moment, e *Event) bool {
	return e.End(false) != "" && !(m.Brief && e.Status.Finished() && !Broken(e.Status) && !e.Stays)
}

// Show implements Watch.
func (v *Plain) Show(m *Moment) error {
	printNotes(v.Notes, m.Said)
	all := told(v, m, v.Palette)
	if m.Brief && v.Progress != nil {
		if line := v.Progress.Line(m.Plan.Counts, m.Now); line != "" {
			all = append(all, line)
		}
	}
	if len(all) == 0 {
		return nil
	}
	_, err := io.WriteString(v.W, strings.Join(all, "\n")+"\n")
	return err
}

// Close implements Watch.
func (v *Plain) Close() {}

// A Quiet shows nothing until the end, but for notes.
type Quiet struct{ Notes io.Writer }

// Tells implements Watch.
func (v *Quiet) Tells(*Moment, *Event) bool { return false }

// Show implements Watch.
func (v *Quiet) Show(m *Moment) error {
	printNotes(v.Notes, m.Said)
	return nil
}

// Close implements Watch.
func (v *Quiet) Close() {}

// printNotes prints notes. Where that fails nobody can be told, and the rest of what is to be shown does not suffer.
func printNotes(w io.Writer, said []string) {
	for _, text := range said {
		fmt.Fprintln(w, text)
	}
}
