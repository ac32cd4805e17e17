package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"time"
)

// waitingScenarios measure the cost of watching a plan.
func waitingScenarios() []scenario {
	return append(onBoth("waiting", "sluice plan wait", func(k kind) string {
		return fmt.Sprintf("processor time of sluice plan wait, and of the node that runs the plan's no-op tasks meanwhile, %s", k)
	}, waiting),
		scenario{"watching/run", "processor time of sluice plan run, whose log has no line for a success, against sluice plan run --quiet: SQLite", watchingRun},
		scenario{"watching/events", "processor time of a server whose listener is told of counts, and of the node that runs the plan's no-op tasks meanwhile: SQLite", watchingEvents},
	)
}

// watchingRun compares runs of the same plan, which differ in what they show of it. The one that is quiet reads the plan's counts alone.
func watchingRun(ctx context.Context, b *bench, add func(result)) error {
	n := b.size(60_000, 500)
	var shown, quiet []float64
	for range b.repetitions(5) {
		for _, way := range []struct {
			args []string
			took *[]float64
		}{{[]string{"--quiet"}, &quiet}, {nil, &shown}} {
			d, err := runOnce(ctx, b, n, way.args...)
			if err != nil {
				return err
			}
			*way.took = append(*way.took, milliseconds(d.processor))
		}
	}
	add(result{
		What: "sluice plan run, redirected, processor time", Value: median(shown), Unit: "ms", Peer: "--quiet", PeerVal: median(quiet), Floor: ratioAtMost(1.1),
		Note: fmt.Sprintf("%d no-op tasks, %d threads; the node is in the process", n, mostThreads),
	})
	return nil
}

// runOnce runs a plan of n no-op tasks that was submitted before.
func runOnce(ctx context.Context, b *bench, n int, args ...string) (d drive, err error) {
	sluice, err := b.binary()
	if err != nil {
		return d, err
	}
	db, err := b.open(ctx, onSQLite)
	if err != nil {
		return d, err
	}
	defer closing(ctx, db, &err)
	if _, _, err := submitted(ctx, db, flat(n).spec("watching", "demo")); err != nil {
		return d, err
	}
	return timed(ctx, "", sluice, append([]string{"plan", "run", "--resume", "watching", "--threads", strconv.Itoa(mostThreads), "--store", db.uri}, args...)...)
}

func watchingEvents(ctx context.Context, b *bench, add func(result)) error {
	n := b.size(60_000, 500)
	var told, ran []float64
	for range b.repetitions(3) {
		t, r, err := listenOnce(ctx, b, n)
		if err != nil {
			return err
		}
		told, ran = append(told, milliseconds(t)), append(ran, milliseconds(r))
	}
	add(result{
		What: "events with counts of a plan, the server's processor time", Value: median(told), Unit: "ms", Peer: "sluice worker", PeerVal: median(ran), Floor: ratioAtMost(0.1),
		Note: fmt.Sprintf("%d no-op tasks, %d threads, one listener; both are whole processes, of which the server's start counts", n, mostThreads),
	})
	return nil
}

// listenOnce returns the processor time of a server with a listener to a plan's counts, and of the node that runs the plan.
func listenOnce(ctx context.Context, b *bench, n int) (told, ran time.Duration, err error) {
	sluice, err := b.binary()
	if err != nil {
		return 0, 0, err
	}
	db, err := b.open(ctx, onSQLite)
	if err != nil {
		return 0, 0, err
	}
	defer closing(ctx, db, &err)
	if _, _, err := submitted(ctx, db, flat(n).spec("watching", "demo")); err != nil {
		return 0, 0, err
	}
	s, err := b.serve(ctx, db)
	if err != nil {
		return 0, 0, err
	}
	var said bytes.Buffer
	node := exec.CommandContext(ctx, sluice, "worker", "--allow", "demo", "--threads", strconv.Itoa(mostThreads), "--store", db.uri)
	node.Stdout, node.Stderr = &said, &said
	if err := node.Start(); err != nil {
		return 0, 0, errors.Join(err, s.stop())
	}
	err = get(ctx, http.DefaultClient, s.url+"/plans/watching/events?counts=true") // it ends with the plan
	if err = errors.Join(err, node.Process.Signal(os.Interrupt), node.Wait(), s.stop()); err != nil {
		return 0, 0, fmt.Errorf("sluice worker and dci: %w: %s", err, lastLines(said.String(), 5))
	}
	return used(s.cmd), used(node), nil
}

// used is the processor time of a process that has ended.
func used(cmd *exec.Cmd) time.Duration {
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
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
	return used(wait), used(node), nil
}
