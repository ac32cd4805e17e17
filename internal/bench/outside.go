package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/submit"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// outsideScenarios compare tasks of no plan, whose results are kept, with the items of a plan.
func outsideScenarios() []scenario {
	var all []scenario
	for _, k := range []kind{onSQLite, onMongoDB} {
		all = append(all, scenario{
			name:  "outside/" + string(k),
			about: fmt.Sprintf("no-op tasks of no plan, and as many items of one foreach task, %s, %d threads", k, mostThreads),
			run: func(ctx context.Context, b *bench, add func(result)) error {
				if why := b.missing(k); why != "" {
					add(result{What: "no-op tasks of no plan", Skipped: why})
					return nil
				}
				return outside(ctx, b, k, add)
			},
		})
	}
	return all
}

func outside(ctx context.Context, b *bench, k kind, add func(result)) error {
	n := b.size(40_000, 2_000)
	if k == onMongoDB {
		n = b.size(4_000, 600)
	}
	var rates, items []float64
	for range b.repetitions(3) {
		for _, m := range []struct {
			fill  func(context.Context, store.Store, int) error
			rates *[]float64
		}{{addTasks, &rates}, {addItems, &items}} {
			took, err := drainOnce(ctx, b, k, n, m.fill)
			if err != nil {
				return err
			}
			*m.rates = append(*m.rates, perSecond(n, took))
		}
	}
	add(result{
		What: "no-op tasks of no plan", Value: median(rates), Unit: "tasks/s", Peer: "items of a plan", PeerVal: median(items), Floor: ratioAtLeast(0.5),
		Note: fmt.Sprintf("%d tasks of each, with results; %s", n, k.durability()),
	})
	return nil
}

// drainOnce fills a new store with n tasks, and returns how long a node takes to run them.
func drainOnce(ctx context.Context, b *bench, k kind, n int, fill func(context.Context, store.Store, int) error) (took time.Duration, err error) {
	db, err := b.open(ctx, k)
	if err != nil {
		return 0, err
	}
	defer closing(ctx, db, &err)
	if err := fill(ctx, db, n); err != nil {
		return 0, err
	}
	settle()
	return drain(ctx, db.Store, n)
}

// drain runs the n tasks of a store and returns how long that takes from the first turn on until the last has ended.
func drain(ctx context.Context, s store.Store, n int) (time.Duration, error) {
	kept, ok := s.(store.Results)
	if !ok {
		return 0, errors.New("the store keeps no results")
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	d := &drained{meter: newMeter(s), Results: kept, want: n, stop: stop}
	p := &counting{}
	node, err := den.New(den.Config{Store: d, Plugins: registry(map[string]plugins.Plugin{"noop": p}), Name: "bench", Threads: mostThreads})
	if err != nil {
		return 0, err
	}
	if err := node.Run(ctx); err != nil {
		return 0, err
	}
	if d.ended != n || p.ran.Load() != int64(n) {
		return 0, fmt.Errorf("%d of %d tasks ended, and %d ran: this was not the work to measure", d.ended, n, p.ran.Load())
	}
	return d.last.Sub(d.first), nil
}

// A drained store stops its node when all has ended.
type drained struct {
	*meter
	store.Results
	want        int
	stop        context.CancelFunc
	first, last time.Time
}

// Turn implements den.Store. A node makes one turn at a time.
func (d *drained) Turn(ctx context.Context, t plan.Turn) (plan.Turned, error) {
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

// addTasks adds n tasks of no plan.
func addTasks(ctx context.Context, s store.Store, n int) error {
	return addDelayed(ctx, s, n, time.Time{})
}

// addDelayed adds n tasks of no plan that are held until then.
func addDelayed(ctx context.Context, s store.Store, n int, until time.Time) error {
	q, err := s.EnsureQueue(ctx, plan.Queue{ID: plan.QueueID{ID: plan.NewID(time.Now())}, Name: "noop", Plugin: "noop", Unlimited: true})
	if err != nil {
		return err
	}
	tasks := make([]plan.Task, n)
	for i := range tasks {
		tasks[i] = plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Name: taskName(i), Queue: q.ID, NotBefore: until}
	}
	return s.AddTasks(ctx, plan.PlanID{}, tasks)
}

// addItems submits a plan of one foreach task with n items, and has them made.
func addItems(ctx context.Context, s store.Store, n int) error {
	list, err := json.Marshal(make([]int, n))
	if err != nil {
		return err
	}
	spec := plan.New("items")
	spec.Add(plan.TaskSpec{Name: "all", Plugin: "noop", Foreach: &plan.Foreach{List: list}})
	p, err := submit.Submit(ctx, s, spec, false)
	if err != nil {
		return err
	}
	i := plan.InstanceID{ID: plan.NewID(time.Now())}
	if err := s.Register(ctx, plan.Instance{ID: i, Node: "maker"}); err != nil {
		return err
	}
	for queued := 0; queued < n; {
		did, err := s.Turn(ctx, plan.Turn{Instance: i})
		if err != nil {
			return err
		}
		if queued += did.Queued; queued < n && !did.More {
			seen, err := s.Plan(ctx, p.ID)
			if err != nil {
				return err
			}
			if seen.Counts.Queued < n {
				return fmt.Errorf("%d of %d items are queued, and no turn queues more", seen.Counts.Queued, n)
			}
			break
		}
	}
	return s.Leave(ctx, i)
}
