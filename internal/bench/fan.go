package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

func fanScenarios() []scenario {
	var all []scenario
	for _, k := range []kind{onSQLite, onMongoDB} {
		all = append(all, scenario{
			name:  fmt.Sprintf("fan/%s", k),
			about: fmt.Sprintf("1 → 20,000 → 1 with outputs of 1 KiB against as many tasks that need nothing: %s", k),
			run: func(ctx context.Context, b *bench, add func(result)) error {
				return fan(ctx, b, k, add)
			},
		})
	}
	return all
}

func fan(ctx context.Context, b *bench, k kind, add func(result)) error {
	if why := b.missing(k); why != "" {
		add(result{What: "cost of a task", Skipped: why})
		return nil
	}
	width := b.size(20_000, 500)
	var with, without, plainly []float64
	var last drive
	for range b.repetitions(3) {
		joined, err := fanOnce(ctx, b, k, fanOutIn(width), kibibyte)
		if err != nil {
			return err
		}
		loose, err := fanOnce(ctx, b, k, flat(width+2), kibibyte)
		if err != nil {
			return err
		}
		cost := func(d drive) float64 { return microseconds(d.took) / float64(d.tasks) }
		with, without = append(with, cost(joined)), append(without, cost(loose))
		last = joined
		if k != onSQLite {
			continue // it would take minutes more
		}
		empty, err := fanOnce(ctx, b, k, flat(width+2), nil)
		if err != nil {
			return err
		}
		plainly = append(plainly, cost(empty))
	}
	add(result{
		What: fmt.Sprintf("1 → %d → 1", width), Value: median(with), Unit: "µs/task", Peer: "flat, 1 KiB outputs", PeerVal: median(without),
		Floor: ratioAtMost(1.5), Note: fmt.Sprintf("the join read all %d outputs; %d threads, %.0f endings a turn, longest turn %.1f ms; %s",
			width, mostThreads, last.turn, milliseconds(last.longest), k.durability()),
	})
	if len(plainly) == 0 {
		return nil
	}
	add(result{What: "the same", Value: median(with), Unit: "µs/task", Peer: "flat, no outputs", PeerVal: median(plainly)})
	return nil
}

// kibibyte is a JSON value of 1 KiB.
var kibibyte = json.RawMessage(`"` + strings.Repeat("x", 1022) + `"`)

func fanOnce(ctx context.Context, b *bench, k kind, g *graph, output json.RawMessage) (d drive, err error) {
	db, err := b.open(ctx, k)
	if err != nil {
		return drive{}, err
	}
	defer closing(ctx, db, &err)
	join := g.tasks() - 1
	p := &joining{output: output}
	if len(g.needs[join]) > 1 {
		p.join = taskName(join)
	}
	d, err = runPlan(ctx, db, g.spec("fan", "fan"), registry(map[string]plugins.Plugin{"fan": p}), mostThreads)
	if err == nil && p.join != "" && p.read.Load() != int64(len(g.needs[join])) {
		err = fmt.Errorf("the join read %d outputs of %d", p.read.Load(), len(g.needs[join]))
	}
	return d, err
}

// joining is a plain plugin one of whose tasks reads what all its parents returned.
type joining struct {
	output json.RawMessage
	join   string
	read   atomic.Int64
}

// Run implements plugins.Plugin.
func (j *joining) Run(_ context.Context, t *plugins.Task) plan.Result {
	if t.Name == j.join {
		args, err := t.Args()
		if err != nil {
			return plan.Result{Status: plan.Failed, Detail: err.Error()}
		}
		for _, arg := range args {
			if bytes.Equal(arg, j.output) {
				j.read.Add(1)
			}
		}
	}
	return plan.Result{Status: plan.Succeeded, Output: j.output}
}
