package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// hops is a plugin for the tasks of one chain: it notes the time from the end of each to the start of the next.
type hops struct {
	mu   sync.Mutex
	last time.Time
	all  []time.Duration
}

// Run implements plugins.Plugin.
func (h *hops) Run(context.Context, *plugins.Task) plan.Result {
	now := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.last.IsZero() {
		h.all = append(h.all, now.Sub(h.last))
	}
	h.last = time.Now()
	return plan.Result{Status: plan.Succeeded}
}

func hopScenarios() []scenario {
	var all []scenario
	for _, l := range []struct {
		kind         kind
		tasks, quick int
		p50, p99     *floor
	}{
		{onSQLite, 2000, 200, atMost(1), atMost(5)},
		{onMongoDB, 400, 50, nil, nil},
	} {
		all = append(all, scenario{
			name:  fmt.Sprintf("hop/%s", l.kind),
			about: fmt.Sprintf("a chain's hop, parent finished to child running, in one process: %s", l.kind),
			run: func(ctx context.Context, b *bench, add func(result)) error {
				if why := b.missing(l.kind); why != "" {
					add(result{What: "a chain's hop", Skipped: why})
					return nil
				}
				g := chain(b.size(l.tasks, l.quick))
				var all []time.Duration
				for range b.repetitions(3) {
					one, err := chainHops(ctx, b, l.kind, g)
					if err != nil {
						return err
					}
					all = append(all, one...)
				}
				addHops(add, all, l.p50, l.p99, l.kind.durability())
				return nil
			},
		})
	}
	return all
}

func chainHops(ctx context.Context, b *bench, k kind, g *graph) (all []time.Duration, err error) {
	db, err := b.open(ctx, k)
	if err != nil {
		return nil, err
	}
	defer closing(ctx, db, &err)
	h := &hops{}
	if _, err := runPlan(ctx, db, g.spec("chain", "hop"), registry(map[string]plugins.Plugin{"hop": h}), execJobs); err != nil {
		return nil, err
	}
	return h.all, nil
}

// addHops adds the lines of a chain's hops.
func addHops(add func(result), all []time.Duration, p50, p99 *floor, note string) {
	note = fmt.Sprintf("%d hops, longest %.2f ms; %s", len(all), milliseconds(quantile(all, 1)), note)
	add(result{What: "hop p50", Value: milliseconds(median(all)), Unit: "ms", Floor: p50, Note: note})
	add(result{What: "hop p99", Value: milliseconds(quantile(all, 0.99)), Unit: "ms", Floor: p99})
}
