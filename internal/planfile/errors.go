package planfile

import (
	"cmp"
	"fmt"
	"slices"
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

// How many errors Error writes out; a file with more of them has one cause.
const maxShown = 50

// Error returns all errors one after the other.
func (e Errors) Error() string {
	var b strings.Builder
	for i := range e {
		if i > 0 {
			b.WriteByte('\n')
		}
		if i == maxShown {
			fmt.Fprintf(&b, "… and %d more errors in %s", len(e)-maxShown, e[i].File)
			break
		}
		b.WriteString(e[i].Error())
	}
	return b.String()
}

// A fault is an error before its place is written out.
type fault struct {
	at    int // a byte of the source, or nowhere
	text  string
	word  string   // not known
	known []string // what it could have been
	but   string   // but not this one of them
	none  string   // what to say if it is near to none of them
}

// nowhere is the place of a fault that is not in the file.
const nowhere = -1

// faults collects what is wrong with a source.
type faults struct {
	src  *source
	list []fault
	seen map[placed]bool
}

type placed struct {
	at   int
	text string
}

// add notes a fault unless it is known already, as one is that stands in an anchor and is met with each alias.
func (f *faults) add(v fault) {
	key := placed{v.at, v.text}
	if f.seen[key] {
		return
	}
	if f.seen == nil {
		f.seen = map[placed]bool{}
	}
	f.seen[key] = true
	f.list = append(f.list, v)
}

// err returns nil or Errors.
func (f *faults) err() error {
	if len(f.list) == 0 {
		return nil
	}
	slices.SortStableFunc(f.list, func(a, b fault) int { return cmp.Compare(a.at, b.at) })
	errs := make(Errors, len(f.list))
	for i, v := range f.list {
		e := Error{File: f.src.name, Message: v.text}
		if v.at != nowhere {
			e.Line, e.Column = f.src.place(v.at)
		}
		if i < maxShown { // the rest is counted, not shown
			known := slices.DeleteFunc(slices.Clone(v.known), func(k string) bool { return k == v.but })
			if near := Nearest(v.word, known); near != "" {
				e.Message += fmt.Sprintf("; did you mean %q?", near)
			} else {
				e.Message += v.none
			}
			if v.at != nowhere {
				e.Text, e.Caret = f.src.excerpt(v.at)
			}
		}
		e.Message = strings.Map(printable, e.Message) // what it cites of the file may be meant for a terminal
		errs[i] = e
	}
	return errs
}
