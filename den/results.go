package den

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/seed-1177d267/sluice/backoff"
	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/plan"
)

// keepWithin is how long it is tried to keep results while the store takes beats and not these; keepStopped, once the attempt was to stop.
const (
	keepWithin  = 2 * time.Minute
	keepStopped = 5 * time.Second
)

// keepResults adds what the task printed to its ending. Large output goes into the store before the
// ending can be seen. An empty stream is null, as with Disbatch, unless it is to be a file. A task
// whose results cannot be kept ends as it would, and its log says so.
func (a *attempt) keepResults(alive, ctx context.Context, e *protocol.Ending) {
	stdout, stderr := a.whole.Streams()
	if a.gfs.Along(int64(len(a.task.Params)+len(e.Output)), stdout.Size(), stderr.Size()) {
		if all, err := printed(stdout, stderr); err == nil { // else the put fails as well, and is what says so
			e.Printed = all
			return
		}
	}
	if a.gfs != protocol.GFSAlways {
		stdout, stderr = orNull(stdout), orNull(stderr)
	}
	mode := a.gfs.Beside(int64(len(e.Output)), size(stdout), size(stderr))
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

// printed reads two streams whole.
func printed(stdout, stderr *io.SectionReader) (all *protocol.Printed, err error) {
	all = new(protocol.Printed)
	if all.Stdout, err = whole(stdout); err == nil {
		all.Stderr, err = whole(stderr)
	}
	return all, err
}

// whole reads a stream, which is nil if it is empty.
func whole(r *io.SectionReader) ([]byte, error) {
	if r.Size() == 0 {
		return nil, nil
	}
	return io.ReadAll(r)
}

// orNull returns no stream in the place of an empty one.
func orNull(r *io.SectionReader) *io.SectionReader {
	if r.Size() == 0 {
		return nil
	}
	return r
}

func size(r *io.SectionReader) int64 {
	if r == nil {
		return 0
	}
	return r.Size()
}
