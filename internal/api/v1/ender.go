package v1

import (
	"context"
	"log/slog"
	"sync"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// endsAtOnce is how many cancelled plans an ender ends at a time. Each plan may have to wait for
// the lease of a silent node.
const endsAtOnce = 8

// An ender ends cancelled plans that no live node serves. The request that cancels a plan does not
// wait for it.
type ender struct {
	st   store.Reader
	end  func(context.Context, plan.Plan) error // nil: nobody ends them
	log  *slog.Logger
	wake chan struct{} // holds one where plans wait

	mu      sync.Mutex
	waiting map[plan.PlanID]bool
}

func newEnder(st store.Reader, end func(context.Context, plan.Plan) error, log *slog.Logger) *ender {
	return &ender{st: st, end: end, log: log, wake: make(chan struct{}, 1), waiting: map[plan.PlanID]bool{}}
}

// add has a plan ended that was cancelled. It returns at once.
func (e *ender) add(p plan.PlanID) {
	if e.end == nil {
		return
	}
	e.mu.Lock()
	e.waiting[p] = true
	e.mu.Unlock()
	select {
	case e.wake <- struct{}{}:
	default: // the ender knows already
	}
}

// run ends what is added, until the context ends; it returns when what was being ended is given up.
func (e *ender) run(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	slots := make(chan struct{}, endsAtOnce)
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.wake:
		}
		e.mu.Lock()
		plans := e.waiting
		e.waiting = map[plan.PlanID]bool{}
		e.mu.Unlock()
		for p := range plans {
			select {
			case <-ctx.Done():
				return
			case slots <- struct{}{}:
			}
			wg.Go(func() {
				defer func() { <-slots }()
				e.one(ctx, p)
			})
		}
	}
}

func (e *ender) one(ctx context.Context, id plan.PlanID) {
	p, err := e.st.Plan(ctx, id)
	if err == nil && !p.State.Ended() {
		err = e.end(ctx, p)
	}
	if err != nil && ctx.Err() == nil {
		e.log.Warn("a cancelled plan that no node runs is not ended", "plan", id, "error", err)
	}
}
