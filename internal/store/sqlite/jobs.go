package sqlite

import "errors"

// The kinds of work that a transaction leaves for later ones. Stored: never renumbered.
const (
	jobRelease     = 1  // tell the children of a finished task; past: the last child that was told
	jobRoots       = 2  // release a plan's tasks that wait for nothing, or (0) those of none
	jobItems       = 3  // make the items of a foreach task
	jobOpen        = 4  // queue them; past: the index of the last one, plus 1
	jobClose       = 5  // end what is held or queued of a closed plan; past: the id of the last task that was looked at
	jobDrop        = 7  // end the items of a foreach task that was cancelled; past: as for jobOpen
	jobForget      = 8  // delete the tasks of an abandoned plan
	jobRetry       = 10 // make the retry that a plan notes, see retry.go
	jobForgetRetry = 11 // delete what is written down of a retry that is over; ref: its n
)

var errJoin = errors.New("a task that waits for parents is not there")

type job struct {
	seq, kind, ref int64
	past           int64
	pastID         []byte
}

// lookAhead is how many tasks of a plan are looked at for one that may be changed.
const lookAhead = 4
