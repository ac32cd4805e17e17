package plugins

import (
	"errors"
	"slices"
	"syscall"

	"github.com/seed-1177d267/sluice/plan"
)

// NotBegun marks an error as the reason why an attempt could not begin on this node: a folder, a
// program, a variable or a permission is missing, or files or processes have run out. A Func that
// returns such an error gives the task to other nodes, if there are any. The attempt must have had
// no effect. NotBegun(nil) is nil.
func NotBegun(err error) error {
	if err == nil {
		return nil
	}
	return &notBegun{err}
}

type notBegun struct{ error }

func (e *notBegun) Unwrap() error { return e.error }

// LacksOf returns what a node lacks by an error of NotBegun, and plan.LacksNothing for any other.
func LacksOf(err error) plan.Lack {
	var e *notBegun
	switch {
	case !errors.As(err, &e):
		return plan.LacksNothing
	case slices.ContainsFunc(ofRoom, func(errno error) bool { return errors.Is(e, errno) }):
		return plan.LacksRoom
	}
	return plan.LacksMeans
}

// ofRoom are the system's errors for a lack of files, processes or memory.
var ofRoom = []error{syscall.EMFILE, syscall.ENFILE, syscall.EAGAIN, syscall.ENOMEM}
