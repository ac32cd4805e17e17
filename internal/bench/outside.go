package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/submit"
	"github.com/seed-1177d267/sluice/plan"
)

// outsideScenarios compare tasks of no plan, whose results are kept, with two others: the items of
// a plan, and tasks that are all due at one instant.
func outsideScenarios() []scenario {
	with := fmt.Sprintf(", %d threads", mostThreads)
	return append(onBoth("outside", "no-op tasks of no plan, and as many items of one foreach task"+with, outside),
		onBoth("due", "no-op tasks that are due at one instant, until the last has ended"+with, due)...)
}

func due(ctx context.Context, t *trial) {
	n, ahead := t.size(10_000, 500), t.lasts(5*time.Second, time.Second)
	if t.kind == onMongoDB {
		n, ahead = t.size(4_000, 300), t.lasts(20*time.Second, 3*time.Second)
	}
	t.again(3, func() {
		t.sample("late", milliseconds(dueOnce(ctx, t, n, ahead)))
		t.sample("once", milliseconds(drainOnce(ctx, t, n, new(counting).alone())))
	})
	t.line("late", "once", result{
		What: "tasks due at one instant, the last ended", Unit: "ms", Peer: "not delayed", Note: fmt.Sprintf("%d tasks of no plan; %s", n, t.kind.durability()),
	})
}

// dueOnce returns how long a node that waits for it takes for n tasks from the instant on at which they are due.
func dueOnce(ctx context.Context, t *trial, n int, ahead time.Duration) time.Duration {
	db := t.open(ctx)
	defer db.close(ctx)
	at := time.Now().Add(ahead)
	w := new(counting).alone()
	w.fill(ctx, db, n, at)
	if time.Now().After(at) {
		failf("to add %d tasks took longer than %v: they were due before a node waited for them", n, ahead)
	}
	settle()
	return drain(ctx, db.Store, n, w, at)
}

func outside(ctx context.Context, t *trial) {
	n := t.size(40_000, 2_000)
	if t.kind == onMongoDB {
		n = t.size(4_000, 600)
	}
	t.again(3, func() {
		t.sample("tasks", perSecond(n, drainOnce(ctx, t, n, new(counting).alone())))
		items := new(counting).alone()
		items.fill = addItems
		t.sample("items", perSecond(n, drainOnce(ctx, t, n, items)))
	})
	t.line("tasks", "items", result{
		What: "no-op tasks of no plan", Unit: "tasks/s", Peer: "items of a plan", Note: fmt.Sprintf("%d tasks of each, with results; %s", n, t.kind.durability()),
	})
}

// work is what the tasks of a store do, and how they come there.
type work struct {
	plugins named
	fill    func(ctx context.Context, s store.Store, n int, until time.Time) // n tasks that are held until then
	ran     func() int64                                                     // how many tasks did their work
}

// alone is the work of no-op tasks of no plan.
func (c *counting) alone() work {
	return work{named{"noop": c}, ofNoPlan("noop", nil), c.ran.Load}
}

// drainOnce fills a new store with n tasks, and returns how long a node takes to run them.
func drainOnce(ctx context.Context, t *trial, n int, w work) time.Duration {
	db := t.open(ctx)
	defer db.close(ctx)
	w.fill(ctx, db, n, time.Time{})
	settle()
	return drain(ctx, db.Store, n, w, time.Time{})
}

// drain runs the n tasks of a store. It returns the time from an instant, or from the first turn,
// until the last task has ended.
func drain(ctx context.Context, s store.Store, n int, w work, from time.Time) time.Duration {
	kept, ok := s.(store.Results)
	if !ok {
		failf("the store keeps no results")
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	d := &drained{meter: &meter{Node: s}, Results: kept, want: n, stop: stop, first: from}
	check(must(den.New(d, den.Config{Plugins: w.plugins.registry(), Name: "bench", Threads: mostThreads})).Run(ctx))
	if d.ended != n || w.ran() != int64(n) {
		failf("%d of %d tasks ended, and %d ran: this was not the work to measure", d.ended, n, w.ran())
	}
	return d.last.Sub(d.first)
}

// A drained store stops its node when all has ended.
type drained struct {
	*meter
	store.Results
	want        int
	stop        context.CancelFunc
	first, last time.Time
}

// Turn implements store.Node. A node makes one turn at a time.
func (d *drained) Turn(ctx context.Context, t protocol.Turn) (protocol.Turned, error) {
	if d.first.IsZero() {
		d.first = time.Now()
	}
	turned, err := d.meter.Turn(ctx, t)
	if err == nil && d.ended == d.want && d.last.IsZero() {
		d.last = time.Now()
		d.stop()
	}
	return turned, err
}

// ofNoPlan fills a store with tasks of no plan.
func ofNoPlan(plugin string, params json.RawMessage) func(context.Context, store.Store, int, time.Time) {
	return func(ctx context.Context, s store.Store, n int, until time.Time) {
		q := must(s.EnsureQueue(ctx, plan.Queue{ID: plan.QueueID{ID: plan.NewID(time.Now())}, Name: plugin, Plugin: plugin, Unlimited: true}))
		tasks := make([]plan.Task, n)
		for i := range tasks {
			tasks[i] = plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Name: taskName(i), Queue: q.ID, Params: params, NotBefore: until}
		}
		check(s.AddTasks(ctx, plan.PlanID{}, tasks))
	}
}

// addItems submits a plan of one foreach task with n items, and has them made.
func addItems(ctx context.Context, s store.Store, n int, _ time.Time) {
	spec := plan.New("items")
	spec.Add(plan.TaskSpec{Name: "all", Plugin: "noop", Foreach: &plan.Foreach{List: must(json.Marshal(make([]int, n)))}})
	p := must(submit.Submit(ctx, s, spec, false))
	i := plan.InstanceID{ID: plan.NewID(time.Now())}
	check(s.Register(ctx, plan.Instance{ID: i, Node: "maker"}))
	for queued := 0; queued < n; {
		did := must(s.Turn(ctx, protocol.Turn{Instance: i}))
		if queued += did.Queued; queued < n && !did.More {
			if seen := must(s.Plan(ctx, p.ID)); seen.Counts.Queued < n {
				failf("%d of %d items are queued, and no turn queues more", seen.Counts.Queued, n)
			}
			break
		}
	}
	check(s.Leave(ctx, i))
}
