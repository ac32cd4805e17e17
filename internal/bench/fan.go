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
	return onBoth("fan", "1 → 20,000 → 1 with outputs of 1 KiB against as many tasks that need nothing", fan)
}

func fan(ctx context.Context, t *trial) {
	width := t.size(20_000, 500)
	var last drive
	t.again(3, func() {
		sample := func(series string, g *graph, output json.RawMessage) drive {
			d := fanOnce(ctx, t, g, output)
			t.sample(series, microseconds(d.took)/float64(d.tasks))
			return d
		}
		last = sample("joined", fanOutIn(width), kibibyte)
		sample("loose", flat(width+2), kibibyte)
		if t.kind == onSQLite { // elsewhere it would take minutes more
			sample("empty", flat(width+2), nil)
		}
	})
	t.line("joined", "loose", result{
		What: fmt.Sprintf("1 → %d → 1", width), Unit: "µs/task", Peer: "flat, 1 KiB outputs",
		Note: fmt.Sprintf("the join read all %d outputs; %d threads, %.0f endings a turn, longest turn %.1f ms; %s",
			width, mostThreads, last.turn, milliseconds(last.longest), t.kind.durability()),
	})
	if t.kind == onSQLite {
		t.line("joined", "empty", result{What: "the same", Unit: "µs/task", Peer: "flat, no outputs"})
	}
}

// kibibyte is a JSON value of 1 KiB.
var kibibyte = json.RawMessage(`"` + strings.Repeat("x", 1022) + `"`)

func fanOnce(ctx context.Context, t *trial, g *graph, output json.RawMessage) drive {
	join := g.tasks() - 1
	p := &joining{output: output}
	if len(g.needs[join]) > 1 {
		p.join = taskName(join)
	}
	d := t.runNew(ctx, g.spec("fan", "fan"), mostThreads, named{"fan": p})
	if p.join != "" && p.read.Load() != int64(len(g.needs[join])) {
		failf("the join read %d outputs of %d", p.read.Load(), len(g.needs[join]))
	}
	return d
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
