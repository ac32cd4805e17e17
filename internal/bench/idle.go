package main

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-1177d267/sluice/backoff"
	"github.com/seed-1177d267/sluice/den"
)

func idleScenarios() []scenario {
	return []scenario{{"idle/sqlite", "what the store is asked in a minute with nothing to do", onSQLite, idle}}
}

// pollsAllowed returns how many polls zk-plan's back-off allows in a time: one at its start and one after each wait.
func pollsAllowed(within time.Duration) int {
	var poll backoff.Poll
	polls := 1
	for at := poll.Next(); at <= within; at += poll.Next() {
		polls++
	}
	return polls
}

func idle(ctx context.Context, t *trial) {
	db := t.open(ctx)
	defer db.close(ctx)
	within := t.lasts(time.Minute, 3*time.Second)
	m := &meter{Node: db}
	node := must(den.New(m, den.Config{Plugins: named{"noop": &counting{}}.registry(), Name: "idle", Threads: 8}))
	limited, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	before := processorTime()
	check(node.Run(limited))
	used := processorTime() - before
	note := fmt.Sprintf("in %v: %d turns, %d sweeps; the back-off allows %d polls", within, m.turns, m.sweeps, pollsAllowed(within))
	t.add(result{What: "polls (turns)", Value: float64(m.turns), Note: note})
	t.add(result{What: "polls (sweeps)", Value: float64(m.sweeps)})
	t.add(result{What: "heartbeats", Value: float64(len(m.beats)), Note: fmt.Sprintf("and with each a look at the other nodes: %d", m.instances)})
	if used > 0 {
		t.add(result{What: "processor time", Value: milliseconds(used), Unit: "ms", Note: fmt.Sprintf("of this process, in %v", within)})
	}
	check(ctx.Err())
}
