package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// reportEvery is how often each task says how far it is.
const reportEvery = 100 * time.Millisecond

// reportingScenarios measure the cost of progress reports: the node keeps the last ones, and sends
// them with its next heartbeat.
func reportingScenarios() []scenario {
	return onBoth("progress", "tasks that report how far they are", func(k kind) string {
		return fmt.Sprintf("running tasks of which each says every %v how far it is, %s", reportEvery, k)
	}, reporting)
}

func reporting(ctx context.Context, b *bench, k kind, add func(result)) error {
	n, lasts := b.size(1000, 100), 5*time.Second
	if b.quick {
		lasts = time.Second
	}
	if processorTime() == 0 {
		add(result{What: "processor time", Skipped: "it is not known here"})
		return nil
	}
	var shares, beats []float64
	for range b.repetitions(3) {
		silent, _, err := reportingOnce(ctx, b, k, n, lasts, false)
		if err != nil {
			return err
		}
		loud, beat, err := reportingOnce(ctx, b, k, n, lasts, true)
		if err != nil {
			return err
		}
		shares = append(shares, max(0, (loud-silent).Seconds()/lasts.Seconds()))
		beats = append(beats, milliseconds(beat))
	}
	add(result{
		What: "processors, beside what silent tasks take", Value: median(shares), Floor: atMost(0.05),
		Note: fmt.Sprintf("%d tasks, each every %v for %v; 1 is one processor", n, reportEvery, lasts),
	})
	add(result{What: "heartbeat, median", Value: median(beats), Unit: "ms", Note: "with what the tasks said"})
	return nil
}

// A reporter is a plugin whose tasks tick until their time is over. It begins when all of them run.
type reporter struct {
	all, over chan struct{}
	mu        sync.Mutex
	missing   int
	tells     bool
}

// Run implements plugins.Plugin.
func (r *reporter) Run(ctx context.Context, t *plugins.Task) plan.Result {
	r.mu.Lock()
	if r.missing--; r.missing == 0 {
		close(r.all)
	}
	r.mu.Unlock()
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-r.over:
			return plan.Result{Status: plan.Succeeded}
		case <-ctx.Done():
			return plan.Result{Status: plan.Failed}
		case <-tick.C:
		}
		if r.tells {
			if err := t.Progress(float64(i%1000)/1000, fmt.Sprintf("copied %d of 1000", i%1000)); err != nil {
				return plan.Result{Status: plan.Failed, Detail: err.Error()}
			}
		}
	}
}

// reportingOnce returns what this process used of the processors while n tasks ran for the time, and how long a beat took meanwhile.
func reportingOnce(ctx context.Context, b *bench, k kind, n int, lasts time.Duration, tells bool) (used, beat time.Duration, err error) {
	db, err := b.open(ctx, k)
	if err != nil {
		return 0, 0, err
	}
	defer closing(ctx, db, &err)
	r := &reporter{all: make(chan struct{}), over: make(chan struct{}), missing: n, tells: tells}
	m := newMeter(db)
	ended := make(chan error, 1)
	go func() {
		_, err := runMetered(ctx, db.Store, m, flat(n).spec("progress", "ticks"), registry(map[string]plugins.Plugin{"ticks": r}), n)
		ended <- err
	}()
	select {
	case <-r.all:
	case err := <-ended:
		return 0, 0, fmt.Errorf("the plan ended before all of its tasks ran: %w", err)
	}
	before, first := processorTime(), len(m.beaten())
	time.Sleep(lasts)
	used = processorTime() - before
	if beats := m.beaten()[first:]; len(beats) > 0 {
		beat = median(beats)
	}
	close(r.over)
	if err := <-ended; err != nil {
		return 0, 0, err
	}
	if told := m.reached > 0; told != tells {
		return 0, 0, fmt.Errorf("%d reports came to the store: this was not the work to measure", m.reached)
	}
	return used, beat, nil
}
