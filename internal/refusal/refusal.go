// Package refusal makes errors that say all in words of their own, and are of the kind of a sentinel.
package refusal

import (
	"errors"
	"fmt"
)

// A refusal has a complete text of its own. It wraps a sentinel error whose words would not fit
// after that text.
type refusal struct {
	text string
	kind error
}

func (r *refusal) Error() string { return r.text }
func (r *refusal) Unwrap() error { return r.kind }

// New returns an error of its own words, which errors.Is takes for the sentinel.
func New(kind error, format string, args ...any) error {
	return &refusal{fmt.Sprintf(format, args...), kind}
}

// Is reports whether an error is one that New made, or wraps one.
func Is(err error) bool {
	_, is := errors.AsType[*refusal](err)
	return is
}
