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

// onBoth returns a scenario for each store that is a database. about describes the measurement for
// one store. what is the line for a missing store.
func onBoth(name, what string, about func(kind) string, run func(context.Context, *bench, kind, func(result)) error) []scenario {
	var all []scenario
	for _, k := range []kind{onSQLite, onMongoDB} {
		all = append(all, scenario{
			name:  name + "/" + string(k),
			about: about(k),
			run: func(ctx context.Context, b *bench, add func(result)) error {
				if why := b.missing(k); why != "" {
					add(result{What: what, Skipped: why})
					return nil
				}
				return run(ctx, b, k, add)
			},
		})
	}
	return all
}

// outsideScenarios compare tasks of no plan, whose results are kept, with the items of a plan.
func outsideScenarios() []scenario {
	return onBoth("outside", "no-op tasks of no plan", func(k kind) string {
		return fmt.Sprintf("no-op tasks of no plan, and as many items of one foreach task, %s, %d threads", k, mostThreads)
	}, outside)
}

// dueScenarios measure tasks that are all due at one instant.
func dueScenarios() []scenario {
	return onBoth("due", "tasks due at one instant", func(k kind) string {
		return fmt.Sprintf("no-op tasks that are due at one instant, until the last has ended, %s, %d threads", k, mostThreads)
	}, due)
}

func due(ctx context.Context, b *bench, k kind, add func(result)) error {
	n, ahead := b.size(10_000, 500), b.size(5, 1)
	if k == onMongoDB {
		n, ahead = b.size(4_000, 300), b.size(20, 3)
	}
	var late, once []float64
	for range b.repetitions(3) {
		took, err := dueOnce(ctx, b, k, n, time.Duration(ahead)*time.Second)
		if err != nil {
			return err
		}
		late = append(late, milliseconds(took))
		if took, err = drainOnce(ctx, b, k, n, addTasks); err != nil {
			return err
		}
		once = append(once, milliseconds(took))
	}
	add(result{
		What: "tasks due at one instant, the last ended", Value: median(late), Unit: "ms", Peer: "not delayed", PeerVal: median(once), Floor: ratioAtMost(2),
		Note: fmt.Sprintf("%d tasks of no plan; %s", n, k.durability()),
	})
	return nil
}

// dueOnce returns how long a node that waits for it takes for n tasks from the instant on at which they are due.
func dueOnce(ctx context.Context, b *bench, k kind, n int, ahead time.Duration) (took time.Duration, err error) {
	db, err := b.open(ctx, k)
	if err != nil {
		return 0, err
	}
	defer closing(ctx, db, &err)
	at := time.Now().Add(ahead)
	if err := addDelayed(ctx, db, n, at); err != nil {
		return 0, err
	}
	if time.Now().After(at) {
		return 0, fmt.Errorf("to add %d tasks took longer than %v: they were due before a node waited for them", n, ahead)
	}
	settle()
	return drain(ctx, db.Store, n, at)
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
	return drain(ctx, db.Store, n, time.Time{})
}

// drain runs the n tasks of a store. It returns the time from an instant, or from the first turn,
// until the last task has ended.
func drain(ctx context.Context, s store.Store, n int, from time.Time) (time.Duration, error) {
	kept, ok := s.(store.Results)
	if !ok {
		return 0, errors.New("the store keeps no results")
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	d := &drained{meter: newMeter(s), Results: kept, want: n, stop: stop, first: from}
	p := &counting{}
	node, err := den.New(d, den.Config{Plugins: registry(map[string]plugins.Plugin{"noop": p}), Name: "bench", Threads: mostThreads})
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
