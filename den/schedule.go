package den

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/seed-1177d267/sluice/plan"
)

// A Scheduler starts what the schedules of a store say.
type Scheduler interface {
	// Fire starts what is due, if the instance is the one of all that does so, and reports whether
	// it is. next is how long it is until the next schedule is due; nil: none will be. One goroutine
	// at a time calls it.
	Fire(ctx context.Context, i plan.InstanceID) (held bool, next *time.Duration, err error)
}

// firesWithin is how long one call of Fire may take. The store may hang, and the instance keeps the
// role while it beats.
const firesWithin = time.Minute

// A firing has the Scheduler fire when a schedule is due, as long as its instance lives. It continues
// while the node drains, because it works for all nodes.
type firing struct {
	s    Scheduler
	beat time.Duration
	log  *slog.Logger
	me   plan.InstanceID

	queued chan<- struct{}     // the loop may find something to claim
	due    chan *time.Duration // the newest news of the heart: when the first schedule is due

	held, tried bool
}

// tell leaves the newest news for run, in place of news that it has not read.
func (f *firing) tell(due *time.Duration) {
	if f == nil {
		return
	}
	select {
	case <-f.due:
	default:
	}
	f.due <- due // there is room: run only takes, and nobody else puts
}

func (f *firing) run(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case due := <-f.due:
			f.wait(timer, due)
		case <-timer.C:
			f.wait(timer, f.fire(ctx))
		}
	}
}

// wait sets the timer to when the first schedule is due. An instance that others were faster than
// leaves the schedule to them for a beat.
func (f *firing) wait(timer *time.Timer, due *time.Duration) {
	if due == nil {
		timer.Stop()
		return
	}
	in := *due
	if f.tried && !f.held {
		in += f.beat
	}
	timer.Reset(max(in, 0))
}

// fire returns when the next schedule is due, as far as it knows.
func (f *firing) fire(ctx context.Context) *time.Duration {
	inTime, cancel := context.WithTimeout(ctx, firesWithin)
	held, next, err := f.s.Fire(inTime, f.me)
	cancel()
	if held && !f.held {
		f.log.Info("this node starts what schedules say")
	}
	f.held, f.tried = held, true
	if err != nil && ctx.Err() == nil {
		if !errors.Is(err, plan.ErrStoreGone) && !errors.Is(err, plan.ErrInstanceGone) {
			f.log.Warn("start what schedules say", "error", err)
		}
		return &f.beat
	}
	if !held {
		return nil // the next beat tells
	}
	select {
	case f.queued <- struct{}{}:
	default:
	}
	return next
}
