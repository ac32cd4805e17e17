package mongodb

import (
	"context"
	"time"

	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// wake moves the counter that nodes read with their heartbeat, if this round queued more than it took itself, or what it cannot take.
func (r *round) wake(ctx context.Context) error {
	return r.wakeOthers(ctx, r.queued > r.taken || r.forOthers)
}

// wakeOthers moves the counter for a reason of now, or for one that came too soon after the last.
func (s *Store) wakeOthers(ctx context.Context, why bool) error {
	s.mu.Lock()
	s.owed = s.owed || why
	now := s.owed && time.Since(s.woken) >= wakeEvery
	if now {
		s.owed, s.woken = false, time.Now()
	}
	s.mu.Unlock()
	if !now {
		return nil
	}
	return s.Upsert(ctx, s.meta, d("_id", "wake"), d("$inc", d("n", int64(1))))
}

// isOver reports whether the one plan of a node has ended, or is not there any more.
func (s *Store) isOver(ctx context.Context, only plan.PlanID) (bool, error) {
	if only.IsZero() {
		return false, nil
	}
	p, err := wire.FindOne[planDoc](ctx, s.plans, d("_id", oid(only.ID)), wire.Query{Fields: ones("state")})
	return err == nil && (p == nil || p.State.Ended()), err
}

// wakeEvery is how often one process wakes the others at most: they read the counter once a second.
const wakeEvery = 250 * time.Millisecond
