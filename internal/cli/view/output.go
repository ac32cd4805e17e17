package view

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"sync"
)

// An Output is standard output that remembers a failed write. So no command has to check each line,
// and none ends well whose output is lost.
type Output struct {
	W   io.Writer
	mu  sync.Mutex
	err error // the first one
}

// Write implements io.Writer. Its errors are what Lost reports.
func (o *Output) Write(p []byte) (int, error) {
	n, err := o.W.Write(p)
	if err == nil {
		return n, nil
	}
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err // its name is not the user's
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	err = &lostError{err}
	o.err = cmp.Or(o.err, err)
	return n, err
}

// Failed returns the first error of a write, nil if there was none.
func (o *Output) Failed() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// A lostError says that standard output cannot be written: whatever else was asked may have been done.
type lostError struct{ err error }

func (e *lostError) Error() string { return "standard output cannot be written: " + e.err.Error() }
func (e *lostError) Unwrap() error { return e.err }

// Lost reports whether an error is one of writing the output.
func Lost(err error) bool {
	_, lost := errors.AsType[*lostError](err)
	return lost
}

// JSON writes a value for programs, indented for people. A nil slice must not get here: lists are never null.
func JSON(w io.Writer, v any) error {
	enc := lines(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// lines returns what writes a value a line.
func lines(w io.Writer) *json.Encoder {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc
}
