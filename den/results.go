package den

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/seed-1177d267/sluice/backoff"
	"github.com/seed-1177d267/sluice/plan"
)

// results is what a store may offer beside Store: a place for the whole of what tasks printed. Programs that submit tasks of no plan, as
// Disbatch's, read it there.
type results interface {
	PutResults(ctx context.Context, c plan.Claim, stdout, stderr *io.SectionReader, mode plan.GFS) error
}

// keepWithin is how long it is tried to keep results while the store takes beats and not these; keepStopped, once the attempt was to stop.
const (
	keepWithin  = 2 * time.Minute
	keepStopped = 5 * time.Second
)

// keepResults puts what the task printed into the store, before its ending is there to be seen. A task whose results cannot be kept ends as
// it would, and its log says so.
func (a *attempt) keepResults(alive, ctx context.Context, e *plan.Ending) {
	stdout, stderr := a.whole.Streams()
	mode := a.gfs.Beside(int64(len(e.Output)), stdout.Size(), stderr.Size())
	var wait backoff.Poll
	last, over := false, time.After(keepWithin)
	stopped := ctx.Done()
	for {
		err := a.results.PutResults(alive, a.task.Claim, stdout, stderr, mode)
		switch {
		case err == nil, errors.Is(err, plan.ErrClaimLost): // then the ending is refused as well
			return
		case alive.Err() != nil:
			return
		}
		about(a.log, &a.task).Warn("keep what the task printed", "task", a.task.Task, "error", err)
		select {
		case <-a.hurry: // who waits for this attempt waits no longer than one call takes
			last = true
		default:
		}
		if last || !errors.Is(err, plan.ErrUnavailable) {
			text := fmt.Sprintf("[its standard output and standard error were not kept beside this log: %v]\n", err)
			e.Log = append(e.Log, plan.LogEntry{At: time.Now(), Attempt: a.task.Attempt, Stream: plan.System, Text: text})
			return
		}
		again := time.After(wait.Next())
		for waiting := true; waiting; {
			waiting = false
			select {
			case <-alive.Done():
				return
			case <-stopped:
				stopped, over, waiting = nil, time.After(keepStopped), true
			case <-over:
				last = true
			case <-a.hurry:
			case <-again:
			}
		}
	}
}
