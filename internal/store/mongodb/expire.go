package mongodb

import (
	"context"
	"errors"

	"github.com/seed-1177d267/sluice/plan"
)

// Expire implements store.Node: many may share the database, and plans that do not say how long are kept for ever.
func (s *Store) Expire(ctx context.Context, budget int) (plans int, more bool, err error) {
	plans, more, err = s.Prune(ctx, 0, budget)
	if errors.Is(err, plan.ErrConflict) { // somebody else deletes the plan, or retries it
		return plans, true, nil
	}
	return plans, more, err
}
