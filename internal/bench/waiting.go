package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"
)

// waitingScenarios measure what it costs to wait for a plan's end.
func waitingScenarios() []scenario {
	return onBoth("waiting", "sluice plan wait", func(k kind) string {
		return fmt.Sprintf("processor time of sluice plan wait, and of the node that runs the plan's no-op tasks meanwhile, %s", k)
	}, waiting)
}

func waiting(ctx context.Context, b *bench, k kind, add func(result)) error {
	n := b.size(60_000, 500)
	if k == onMongoDB {
		n = b.size(20_000, 300)
	}
	var waited, ran []float64
	for range b.repetitions(3) {
		w, r, err := waitOnce(ctx, b, k, n)
		if err != nil {
			return err
		}
		waited, ran = append(waited, milliseconds(w)), append(ran, milliseconds(r))
	}
	add(result{
		What: "sluice plan wait, processor time", Value: median(waited), Unit: "ms", Peer: "sluice worker", PeerVal: median(ran), Floor: ratioAtMost(0.05),
		Note: fmt.Sprintf("%d no-op tasks, %d threads; both are whole processes", n, mostThreads),
	})
	return nil
}

// waitOnce returns the processor time of a process that waits for a plan of n no-op tasks, and of the one that runs them.
func waitOnce(ctx context.Context, b *bench, k kind, n int) (waited, ran time.Duration, err error) {
	sluice, err := b.binary()
	if err != nil {
		return 0, 0, err
	}
	db, err := b.open(ctx, k)
	if err != nil {
		return 0, 0, err
	}
	defer closing(ctx, db, &err)
	if _, _, err := submitted(ctx, db, flat(n).spec("waiting", "demo")); err != nil {
		return 0, 0, err
	}
	var said [2]bytes.Buffer
	start := func(i int, args ...string) (*exec.Cmd, error) {
		cmd := exec.CommandContext(ctx, sluice, append(args, "--store", db.uri)...)
		cmd.Stdout, cmd.Stderr = &said[i], &said[i]
		return cmd, cmd.Start()
	}
	settle()
	wait, err := start(0, "plan", "wait", "waiting")
	if err != nil {
		return 0, 0, err
	}
	node, err := start(1, "worker", "--allow", "demo", "--threads", strconv.Itoa(mostThreads))
	if err != nil {
		return 0, 0, errors.Join(err, wait.Process.Kill(), wait.Wait())
	}
	err = wait.Wait()
	if err = errors.Join(err, node.Process.Signal(os.Interrupt), node.Wait()); err != nil {
		return 0, 0, fmt.Errorf("sluice plan wait and worker: %w: %s; %s", err, lastLines(said[0].String(), 5), lastLines(said[1].String(), 5))
	}
	used := func(cmd *exec.Cmd) time.Duration { return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime() }
	return used(wait), used(node), nil
}
