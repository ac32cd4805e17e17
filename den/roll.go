package den

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/seed-1177d267/sluice/plan"
)

// A Roller hands over finished tasks before they are deleted.
type Roller interface {
	// Roll hands over what is kept no longer, if the instance is the one of all that does so, and
	// reports whether it is. next is when to call again. One goroutine at a time calls it.
	Roll(ctx context.Context, i plan.InstanceID) (held bool, next time.Duration, err error)
}

// A rolling has the Roller hand over tasks, as long as its instance claims. It ends with the claims, even
// in the middle of a batch: the next node continues.
type rolling struct {
	r   Roller
	log *slog.Logger
	me  plan.InstanceID
}

func (r *rolling) run(ctx context.Context) {
	for was := false; ctx.Err() == nil; {
		held, next, err := r.r.Roll(ctx, r.me)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !errors.Is(err, plan.ErrStoreGone) && !errors.Is(err, plan.ErrInstanceGone):
			r.log.Warn("hand over finished tasks", "error", err)
		case held && !was:
			r.log.Info("this node hands over finished tasks")
		}
		was = held
		sleep(ctx, next)
	}
}
