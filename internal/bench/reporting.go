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
	return onBoth("progress", fmt.Sprintf("running tasks of which each says every %v how far it is", reportEvery), reporting)
}

func reporting(ctx context.Context, t *trial) {
	n, lasts := t.size(1000, 100), t.lasts(5*time.Second, time.Second)
	if processorTime() == 0 {
		t.add(result{What: "processor time", Skipped: "it is not known here"})
		return
	}
	t.again(3, func() {
		silent, _ := reportingOnce(ctx, t, n, lasts, false)
		loud, beat := reportingOnce(ctx, t, n, lasts, true)
		t.sample("share", max(0, (loud-silent).Seconds()/lasts.Seconds()))
		t.sample("beat", milliseconds(beat))
	})
	t.line("share", "", result{
		What: "processors, beside what silent tasks take", Note: fmt.Sprintf("%d tasks, each every %v for %v; 1 is one processor", n, reportEvery, lasts),
	})
	t.line("beat", "", result{What: "heartbeat, median", Unit: "ms", Note: "with what the tasks said"})
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
func reportingOnce(ctx context.Context, t *trial, n int, lasts time.Duration, tells bool) (used, beat time.Duration) {
	db := t.open(ctx)
	defer db.close(ctx)
	r := &reporter{all: make(chan struct{}), over: make(chan struct{}), missing: n, tells: tells}
	m := &meter{Node: db}
	ended := make(chan error, 1)
	go func() {
		ended <- try(func() { runPlan(ctx, db.Store, m, flat(n).spec("progress", "ticks"), n, named{"ticks": r}) })
	}()
	select {
	case <-r.all:
	case err := <-ended:
		failf("the plan ended before all of its tasks ran: %w", err)
	}
	before, first := processorTime(), len(m.beaten())
	time.Sleep(lasts)
	used = processorTime() - before
	if beats := m.beaten()[first:]; len(beats) > 0 {
		beat = median(beats)
	}
	close(r.over)
	check(<-ended)
	if told := m.reached > 0; told != tells {
		failf("%d reports came to the store: this was not the work to measure", m.reached)
	}
	return used, beat
}
