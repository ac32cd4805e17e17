package textfile

import (
	"fmt"
	"strings"
)

// An Error is one thing that is wrong with a file.
type Error struct {
	File    string // as the caller named it
	Line    int    // from 1; 0 for what is wrong with what the file is given, and no place in it
	Column  int    // from 1, in characters
	Message string // what is wrong, what to do, and the nearest word that would be known
	Text    string // the line, or the part of it that matters if it is long
	Caret   int    // how many columns of Text are before the place
}

// Error returns the place, the message, the line and a caret below it.
func (e Error) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Message
	}
	s := fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Message)
	if strings.TrimSpace(e.Text) == "" {
		return s
	}
	return s + "\n    " + e.Text + "\n    " + strings.Repeat(" ", e.Caret) + "^"
}

// Errors is everything that is wrong with a file, each thing once, in the order of the file.
type Errors []Error

// MaxShown is how many errors Error writes out; a file with more of them has one cause.
const MaxShown = 50

// Error returns all errors one after the other.
func (e Errors) Error() string {
	var b strings.Builder
	for i := range e {
		if i > 0 {
			b.WriteByte('\n')
		}
		if i == MaxShown {
			fmt.Fprintf(&b, "… and %d more errors in %s", len(e)-MaxShown, e[i].File)
			break
		}
		b.WriteString(e[i].Error())
	}
	return b.String()
}

// Error returns the mistake at a byte, with its place and its line. Quoted text of the file may
// hold control sequences for a terminal; Error removes them.
func (s *Source) Error(at int, message string) Error {
	e := Error{File: s.Name, Message: Brief(strings.Map(Printable, message))}
	e.Line, e.Column = s.Place(at)
	e.Text, e.Caret = s.Excerpt(at)
	return e
}
