package view

import (
	"io"
	"io/fs"
	"os"

	"golang.org/x/term"
)

// How wide text for people is. Longer lines than mostColumns are hard to read, however wide the
// terminal is.
const (
	plainColumns = 80 // where the output is no terminal
	leastColumns = 40
	mostColumns  = 120
)

// Columns returns how wide text for people may be on an output.
func Columns(w io.Writer) int {
	if columns, _ := Size(w); columns > 0 {
		return min(max(columns, leastColumns), mostColumns)
	}
	return plainColumns
}

// Size returns the columns and rows of the terminal that is written to, zeros where it is none.
func Size(w io.Writer) (columns, rows int) {
	if f, ok := file(w); ok {
		if c, r, err := term.GetSize(int(f.Fd())); err == nil {
			return c, r
		}
	}
	return 0, 0
}

// IsTerminal reports whether a terminal is written to.
func IsTerminal(w io.Writer) bool {
	f, ok := file(w)
	return ok && term.IsTerminal(int(f.Fd()))
}

// FileInfo describes the regular file that is written to; nil if it is none.
func FileInfo(w io.Writer) fs.FileInfo {
	if f, ok := file(w); ok {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			return info
		}
	}
	return nil
}

// Redraws reports whether a terminal is written to that understands escape sequences.
func Redraws(w io.Writer) bool {
	f, ok := file(w)
	return ok && IsTerminal(f) && enableSequences(f)
}

// file returns the file that is written to, if it is one.
func file(w io.Writer) (*os.File, bool) {
	if o, ok := w.(*Output); ok {
		w = o.W
	}
	f, ok := w.(*os.File)
	return f, ok
}

// Ellipsis returns the mark of cut text, for people.
func Ellipsis(unicode bool) string {
	if unicode {
		return "…"
	}
	return "..."
}
