package plan

import (
	"errors"
	"fmt"
)

// Errors that a caller can act on. Stores translate their own errors into these.
var (
	// ErrNotFound means that no such plan, task, queue or instance is in the store.
	ErrNotFound = errors.New("not found")
	// ErrExists means that the name is taken already.
	ErrExists = errors.New("already exists")
	// ErrClaimLost means that the claim is not, or no longer, the caller's: drop the result.
	ErrClaimLost = errors.New("claim lost to another node")
	// ErrInstanceGone means that others declared this instance dead and rescued its tasks: it must
	// stop all of them.
	ErrInstanceGone = errors.New("this instance was taken for dead")
	// ErrNameTaken means that an instance which is registered has the name of the node for its own.
	ErrNameTaken = errors.New("another node has the name")
	// ErrPlanEnded means that the plan takes no tasks any more.
	ErrPlanEnded = errors.New("the plan has ended")
	// ErrPlanNotReady means that the plan is still being submitted, or that its submission ended half-way.
	ErrPlanNotReady = errors.New("the plan is not ready")
	// ErrPlanActive means that something of the plan is claimed or running, or that the plan has not ended.
	ErrPlanActive = errors.New("the plan is still active")
	// ErrOverlap means that a plan with overlap: skip cannot start, because another run of its name has not ended.
	ErrOverlap = errors.New("another run has not ended")
	// ErrConflict means that something is not as it would have to be, or not as the caller saw it: read again and decide again. Its own words
	// are for what another one changed at the same time; what is so for any other reason is a Conflictf.
	ErrConflict = errors.New("changed meanwhile")
	// ErrTooMuchInput means that the outputs of a task's parents have more than MaxInputs bytes together.
	ErrTooMuchInput = errors.New("too much input")
	// ErrTooMuchOutput means that the list of the outputs of a foreach task's items has more than MaxInputs bytes.
	ErrTooMuchOutput = errors.New("too much output")
	// ErrTooLarge means that the store keeps no plan or task of that size: nothing was written.
	ErrTooLarge = errors.New("too large for the store")
	// ErrUnavailable means that the store cannot be reached or opened.
	ErrUnavailable = errors.New("store unavailable")
	// ErrStoreGone means that the store that was opened is not there any more: nothing that is asked of it can succeed, now or later. It
	// is an ErrUnavailable.
	ErrStoreGone = fmt.Errorf("%w for good", ErrUnavailable)
	// ErrNoStore means that there is no store yet where an existing one was to be opened.
	ErrNoStore = errors.New("nothing was submitted there yet")
	// ErrNewerSchema means that a newer version of the program wrote the store.
	ErrNewerSchema = errors.New("the store is of a newer version")
	// ErrCursor means that a cursor is no place in the store's feed of changes: read everything
	// again.
	ErrCursor = errors.New("not a place in the feed of changes")
	// ErrSecret means that a value which is never shown is asked about, or would be lost or shown.
	ErrSecret = errors.New("it is a secret")
	// ErrProgress means that how far a task is, is no number.
	ErrProgress = errors.New("the progress of a task begins with a number from 0 to 1")
	// ErrFull means that the store has no room left: nothing of the write was kept.
	ErrFull = errors.New("the store is full")
)
