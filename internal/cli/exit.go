package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/plan"
)

// Exit codes. They are part of what scripts rely on, and are never renumbered.
const (
	exitOK          = 0
	exitFailed      = 1   // the plan or task failed, or what was asked could not be done
	exitUsage       = 2   // a wrong flag, word or name, or a file that is not valid
	exitNotFinished = 3   // in the time that was given
	exitUnavailable = 4   // the store is not there, or cannot be reached, opened or written
	exitCancelled   = 5   // a person cancelled the plan
	exitOverlap     = 6   // the plan was not started, because another run of its name has not ended
	exitInterrupted = 130 // by Ctrl-C, as shells have it: 128 and the signal's number
	exitQuit        = 131 // by SIGQUIT, where nothing ran that was to be stopped
)

// How a plan stands, for commands whose exit code tells it.
var (
	errPlanFailed    = errors.New("the plan failed")
	errPlanCancelled = errors.New("the plan was cancelled")
	errNotFinished   = errors.New("not finished")
	errInterrupted   = errors.New("interrupted")
)

// exitCode is where every error becomes the code that the process ends with.
func exitCode(err error) int {
	var usage *usageError
	var problems plan.Problems
	var answer *api.Problem
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errInterrupted), errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.Is(err, errPlanCancelled):
		return exitCancelled
	case errors.Is(err, plan.ErrOverlap):
		return exitOverlap
	case errors.Is(err, plan.ErrUnavailable), errors.Is(err, plan.ErrNoStore), errors.Is(err, plan.ErrNewerSchema), errors.Is(err, plan.ErrFull):
		return exitUnavailable // also when the driver's own deadline is inside
	case errors.Is(err, errNotFinished), errors.Is(err, context.DeadlineExceeded):
		return exitNotFinished
	case errors.As(err, &answer) && (answer.Code == api.CodeInvalid || answer.Code == api.CodeUnauthorized || answer.Code == api.CodeForbidden):
		return exitUsage // what was typed, or who typed it, does not please the server
	case errors.As(err, &usage), errors.As(err, &problems), errors.Is(err, plan.ErrNotFound), errors.Is(err, plan.ErrExists), errors.Is(err, plan.ErrNameTaken):
		return exitUsage
	}
	return exitFailed
}

// A usageError is what the person who typed the command can put right by typing another, or by mending the file it names.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// asUsage marks an error as the fault of what was typed.
func asUsage(err error) error {
	if err == nil {
		return nil
	}
	return &usageError{err}
}

// A saidError has been told to the person already: it only carries the exit code.
type saidError struct{ err error }

func (e *saidError) Error() string { return e.err.Error() }
func (e *saidError) Unwrap() error { return e.err }

// verdict turns the state of a plan, which was printed, into the error that carries its exit code.
func verdict(l plan.Lifecycle) error {
	switch l {
	case plan.PlanSucceeded:
		return nil
	case plan.PlanCancelled:
		return &saidError{errPlanCancelled}
	case plan.PlanFailed, plan.PlanAbandoned:
		return &saidError{errPlanFailed}
	}
	return &saidError{errNotFinished}
}
