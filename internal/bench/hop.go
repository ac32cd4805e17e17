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
	return onBoth("hop", "a chain's hop, parent finished to child running, in one process", func(ctx context.Context, t *trial) {
		g := chain(t.size(2000, 200))
		if t.kind == onMongoDB {
			g = chain(t.size(400, 50))
		}
		var all []time.Duration
		t.again(3, func() {
			h := &hops{}
			t.runNew(ctx, g.spec("chain", "hop"), execJobs, named{"hop": h})
			all = append(all, h.all...)
		})
		t.add(result{
			What: "hop p50", Value: milliseconds(median(all)), Unit: "ms",
			Note: fmt.Sprintf("%d hops, longest %.2f ms; %s", len(all), milliseconds(quantile(all, 1)), t.kind.durability()),
		})
		t.add(result{What: "hop p99", Value: milliseconds(quantile(all, 0.99)), Unit: "ms"})
	})
}
