package planfile

import (
	"cmp"
	"slices"
	"strings"

	"github.com/seed-1177d267/sluice/internal/hint"
	"github.com/seed-1177d267/sluice/internal/textfile"
)

// Error and Errors are what is wrong with a plan file.
type (
	Error  = textfile.Error
	Errors = textfile.Errors
)

// A source is the text of a plan file.
type source struct{ textfile.Source }

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

// add notes a fault unless it is known already. A fault inside an anchor comes up once for each
// alias.
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
		e := Error{File: f.src.Name, Message: v.text}
		if v.at != nowhere {
			e.Line, e.Column = f.src.Place(v.at)
		}
		if i < textfile.MaxShown { // the rest is counted, not shown
			known := slices.DeleteFunc(slices.Clone(v.known), func(k string) bool { return k == v.but })
			e.Message += cmp.Or(hint.Meant(v.word, known), v.none)
			if v.at != nowhere {
				e.Text, e.Caret = f.src.Excerpt(v.at)
			}
		}
		e.Message = textfile.Brief(strings.Map(textfile.Printable, e.Message)) // what it cites of the file may be meant for a terminal
		errs[i] = e
	}
	return errs
}
