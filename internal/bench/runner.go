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

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/dtr"
	"github.com/seed-1177d267/sluice/internal/submit"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins/exec"
)

func runnerScenarios() []scenario {
	return onBoth("runner", "claimed to started by `sluice runner`, a process for each task", func(ctx context.Context, t *trial) {
		starts := runnerStarts(ctx, t, t.size(100, 3))
		t.add(result{
			What: "claimed to started, p50", Value: milliseconds(median(starts)), Unit: "ms",
			Note: fmt.Sprintf("%d tasks, one after the other; from the claim to the first command of the task's shell; longest %.1f ms; %s",
				len(starts), milliseconds(quantile(starts, 1)), t.kind.durability()),
		})
		t.add(result{What: "claimed to started, p99", Value: milliseconds(quantile(starts, 0.99)), Unit: "ms"})
	})
}

// runnerStarts claims tasks as a node does and has a runner run each. It returns the time from each
// claim until the command ran.
func runnerStarts(ctx context.Context, t *trial, tasks int) (starts []time.Duration) {
	binary := must(t.binary())
	db := t.open(ctx)
	defer db.close(ctx)
	s := plan.New("runner")
	for i := range tasks {
		s.Add(plan.TaskSpec{Name: taskName(i), Plugin: exec.Name, Params: json.RawMessage(`{"run": "date +%s%N > $SLUICE_OUTPUT"}`)})
	}
	p, host := must(submit.Submit(ctx, db, s, false)), must(os.Hostname())
	me := plan.Instance{
		ID: plan.InstanceID{ID: plan.NewID(time.Now())}, Node: plan.NodeName(host), Host: host, Process: plan.Process{PID: os.Getpid()}, Lease: time.Hour,
		Plugins: []string{exec.Name},
	}
	check(db.Register(ctx, me))
	runners := &dtr.Runners{
		Executable: binary, Node: me.Node, Default: dtr.Sluice, Args: []string{"--allow", exec.Name}, Env: []string{"SLUICE_STORE=" + db.uri},
	}
	for range tasks {
		turned, err := db.Turn(ctx, protocol.Turn{Instance: me.ID, Slots: 1, Plugins: me.Plugins, Plan: p.ID})
		if err != nil || len(turned.Claimed) != 1 {
			check(errors.Join(err, fmt.Errorf("%d tasks were claimed", len(turned.Claimed))))
		}
		c, claimed := &turned.Claimed[0], time.Now()
		check(runners.Run(ctx, c, plan.InstanceID{ID: plan.NewID(claimed)}, nil))
		began := must(strconv.ParseInt(strings.TrimSpace(string(must(db.Task(ctx, c.Task)).Output)), 10, 64)) // as the task printed it
		starts = append(starts, time.Unix(0, began).Sub(claimed))
	}
	return starts
}
