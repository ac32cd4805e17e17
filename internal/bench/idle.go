package main

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-1177d267/sluice/backoff"
	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/plugins"
)

func idleScenarios() []scenario {
	return []scenario{{
		name:  "idle/sqlite",
		about: "what the store is asked in a minute with nothing to do",
		run:   idle,
	}}
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

func idle(ctx context.Context, b *bench, add func(result)) (err error) {
	db, err := b.open(ctx, onSQLite)
	if err != nil {
		return err
	}
	defer closing(ctx, db, &err)
	within := time.Minute
	if b.quick {
		within = 3 * time.Second
	}
	m := newMeter(db)
	node, err := den.New(m, den.Config{Plugins: registry(map[string]plugins.Plugin{"noop": plain{}}), Name: "idle", Threads: 8})
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	before := processorTime()
	if err := node.Run(limited); err != nil {
		return err
	}
	used := processorTime() - before
	seconds := int(within / time.Second)
	allowed := pollsAllowed(within)
	note := fmt.Sprintf("in %v: %d turns, %d sweeps; the back-off allows %d polls", within, m.of("turn"), m.of("sweep"), allowed)
	add(result{What: "polls (turns)", Value: float64(m.of("turn")), Floor: atMost(float64(allowed)), Note: note})
	add(result{What: "polls (sweeps)", Value: float64(m.of("sweep")), Floor: atMost(float64(allowed))})
	add(result{What: "heartbeats", Value: float64(m.of("beat")), Floor: atMost(float64(seconds + 1)), Note: fmt.Sprintf("and with each a look at the other nodes: %d", m.of("instances"))})
	if used > 0 {
		add(result{What: "processor time", Value: milliseconds(used), Unit: "ms", Note: fmt.Sprintf("of this process, in %v", within)})
	}
	return ctx.Err()
}
