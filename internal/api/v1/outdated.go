package v1

import (
	"context"
	"sync"
	"time"

	"github.com/seed-1177d267/sluice/internal/explain"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// mostOutdated is the number of plans in the cache. A full cache is emptied.
const mostOutdated = 200

// outdated caches the outdated results of ended plans. Pages ask for their plan again and again,
// and each answer would read all of its tasks. An entry holds until the plan is retried or its
// tasks end once more.
type outdated struct {
	mu    sync.Mutex
	known map[plan.PlanID]outdatedPlan
}

type outdatedPlan struct {
	edits    int
	modified time.Time
	names    []string
}

func (o *outdated) of(ctx context.Context, st store.Store, p *plan.Plan) ([]string, error) {
	if p.Edits == 0 {
		return nil, nil
	}
	o.mu.Lock()
	k, ok := o.known[p.ID]
	o.mu.Unlock()
	if ok && k.edits == p.Edits && k.modified.Equal(p.Modified) {
		return k.names, nil
	}
	names, err := explain.Outdated(ctx, st, p)
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.known == nil || len(o.known) >= mostOutdated {
		o.known = map[plan.PlanID]outdatedPlan{}
	}
	o.known[p.ID] = outdatedPlan{edits: p.Edits, modified: p.Modified, names: names}
	return names, nil
}
