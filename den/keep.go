package den

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/seed-1177d267/sluice/plan"
)

// A keeper deletes expired plans, and expired tasks of no plan, a little at a time and concurrently
// with the loop. Otherwise a store would be full one day, unless a person remembers to prune it.
// The keeper begins with its session, because a node of one plan may be gone in a second and be the
// only node ever. It ends with the claims, even in the middle of a large plan: the next node
// continues.
type keeper struct {
	store Expirer
	log   *slog.Logger
}

const (
	expireEach   = time.Minute           // with nothing to delete, a look costs the store next to nothing
	expireBudget = 200                   // rows or documents a call: some ms, in which others may have to wait
	expirePause  = 50 * time.Millisecond // at least, between two calls while there is more
	expireShare  = 10                    // of the store's time, one part in so many
)

func (k *keeper) run(ctx context.Context) {
	for ctx.Err() == nil {
		began := time.Now()
		gone, err := k.store.Expire(ctx, expireBudget)
		wait := expireEach
		if gone.Plans > 0 || gone.Tasks > 0 { // also if ctx has ended since
			k.log.Info("deleted what is kept no longer", "plans", gone.Plans, "tasks", gone.Tasks)
		}
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !errors.Is(err, plan.ErrStoreGone):
			k.log.Warn("delete what is kept no longer", "error", err)
		case gone.More:
			wait = max(expirePause, expireShare*time.Since(began))
		}
		sleep(ctx, wait)
	}
}
