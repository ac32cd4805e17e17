package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/internal/dtr"
	"github.com/seed-1177d267/sluice/internal/submit"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins/exec"
)

func runnerScenarios() []scenario {
	var all []scenario
	for _, k := range []kind{onSQLite, onMongoDB} {
		all = append(all, scenario{
			name:  fmt.Sprintf("runner/%s", k),
			about: fmt.Sprintf("claimed to started by `sluice runner`, a process for each task: %s", k),
			run: func(ctx context.Context, b *bench, add func(result)) error {
				if why := b.missing(k); why != "" {
					add(result{What: "claimed to started", Skipped: why})
					return nil
				}
				starts, err := runnerStarts(ctx, b, k, b.size(100, 3))
				if err != nil {
					return err
				}
				note := fmt.Sprintf("%d tasks, one after the other; from the claim to the first command of the task's shell; longest %.1f ms; %s",
					len(starts), milliseconds(quantile(starts, 1)), k.durability())
				add(result{What: "claimed to started, p50", Value: milliseconds(median(starts)), Unit: "ms", Floor: atMost(30), Note: note})
				add(result{What: "claimed to started, p99", Value: milliseconds(quantile(starts, 0.99)), Unit: "ms"})
				return nil
			},
		})
	}
	return all
}

// runnerStarts claims tasks as a node does, has each run by a runner, and returns how long it took from the claim until its command ran.
func runnerStarts(ctx context.Context, b *bench, k kind, tasks int) (starts []time.Duration, err error) {
	binary, err := b.binary()
	if err != nil {
		return nil, err
	}
	db, err := b.open(ctx, k)
	if err != nil {
		return nil, err
	}
	defer closing(ctx, db, &err)
	s := plan.New("runner")
	for i := range tasks {
		s.Add(plan.TaskSpec{Name: fmt.Sprint("t", i), Plugin: exec.Name, Params: json.RawMessage(`{"run": "date +%s%N > $SLUICE_OUTPUT"}`)})
	}
	p, err := submit.Submit(ctx, db, s, false)
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	me := plan.Instance{
		ID: plan.InstanceID{ID: plan.NewID(time.Now())}, Node: plan.NodeName(host), Host: host, Process: plan.Process{PID: os.Getpid()}, Lease: time.Hour,
		Plugins: []string{exec.Name},
	}
	if err := db.Register(ctx, me); err != nil {
		return nil, err
	}
	runners := &dtr.Runners{
		Executable: binary, Node: me.Node, Default: dtr.Sluice, Args: []string{"--allow", exec.Name}, Env: []string{"SLUICE_STORE=" + db.uri},
	}
	for range tasks {
		turned, err := db.Turn(ctx, plan.Turn{Instance: me.ID, Slots: 1, Plugins: me.Plugins, Plan: p.ID})
		if err != nil || len(turned.Claimed) != 1 {
			return nil, errors.Join(err, fmt.Errorf("%d tasks were claimed", len(turned.Claimed)))
		}
		c, claimed := &turned.Claimed[0], time.Now()
		if err := runners.Run(ctx, c, plan.InstanceID{ID: plan.NewID(claimed)}, nil); err != nil {
			return nil, err
		}
		t, err := db.Task(ctx, c.Task)
		if err != nil {
			return nil, err
		}
		began, err := strconv.ParseInt(strings.TrimSpace(string(t.Output)), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("task %s printed no time: %w", t.Name, err)
		}
		starts = append(starts, time.Unix(0, began).Sub(claimed))
	}
	return starts, nil
}
