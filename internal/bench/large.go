package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/plan"
)

// largeTasks is the size of the plan that has to be as cheap a task as a small one.
const largeTasks = 100_000

func largeScenarios() []scenario {
	return []scenario{
		{"large/sqlite/submit", "a plan of 100,000 tasks and 300,000 needs is submitted", largeSubmit},
		{"large/sqlite/flat", "cost of a task in plans of 1,000, 10,000 and 100,000 tasks that need nothing",
			func(ctx context.Context, b *bench, add func(result)) error { return largeCost(ctx, b, flat, add) }},
		{"large/sqlite/layered", "the same with 3 parents each, in layers of 100",
			func(ctx context.Context, b *bench, add func(result)) error {
				return largeCost(ctx, b, func(n int) *graph { return layered(n, 100) }, add)
			}},
		{"large/sqlite/memory", "memory of sluice den while it runs a plan of 100,000 tasks", largeMemory},
	}
}

// largeSubmit submits the plan from a plan in memory, and from its file by sluice plan submit as a whole process.
func largeSubmit(ctx context.Context, b *bench, add func(result)) error {
	g := layers(b.size(largeTasks, 3000))
	sluice, err := b.binary()
	if err != nil {
		return err
	}
	var inside, outside []float64
	for range b.repetitions(3) {
		took, err := submitInside(ctx, b, g)
		if err != nil {
			return err
		}
		inside = append(inside, took.Seconds())
		whole, err := submitOutside(ctx, b, sluice, g)
		if err != nil {
			return err
		}
		outside = append(outside, whole.took.Seconds())
	}
	note := fmt.Sprintf("%d tasks, %d needs; %s", g.tasks(), g.edges(), onSQLite.durability())
	add(result{What: "from a plan in memory", Value: median(inside), Unit: "s", Floor: atMost(5), Note: note})
	add(result{What: "sluice plan submit", Value: median(outside), Unit: "s", Floor: atMost(5), Note: "the whole process, with reading and validating the file"})
	return nil
}

func submitInside(ctx context.Context, b *bench, g *graph) (took time.Duration, err error) {
	db, err := b.open(ctx, onSQLite)
	if err != nil {
		return 0, err
	}
	defer closing(ctx, db, &err)
	_, took, err = submitted(ctx, db, g.spec("large", "noop"))
	return took, err
}

func submitOutside(ctx context.Context, b *bench, sluice string, g *graph) (drive, error) {
	dir, err := b.newDir()
	if err != nil {
		return drive{}, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "plan.yaml")
	if err := os.WriteFile(file, planFile(g, "run: ':'"), 0o600); err != nil {
		return drive{}, err
	}
	return timed(ctx, dir, sluice, "plan", "submit", file, "--store", "sqlite:"+filepath.Join(dir, "sluice.db"))
}

// largeCost compares what a task costs in plans of one shape and several sizes.
func largeCost(ctx context.Context, b *bench, shape func(n int) *graph, add func(result)) error {
	var small float64
	for _, s := range []struct{ tasks, quick, reps int }{{1000, 200, 9}, {10_000, 500, 5}, {largeTasks, 2000, 3}} {
		g := shape(b.size(s.tasks, s.quick))
		l := load{kind: onSQLite, threads: mostThreads}
		var costs []float64
		var last drive
		for range b.repetitions(s.reps) {
			d, err := l.once(ctx, b, g)
			if err != nil {
				return err
			}
			last = d
			costs = append(costs, microseconds(d.took)/float64(d.tasks))
		}
		r := result{
			What: fmt.Sprintf("%d tasks", g.tasks()), Value: median(costs), Unit: "µs/task",
			Note: fmt.Sprintf("%d threads, %.0f endings a turn, longest turn %.1f ms", mostThreads, last.turn, milliseconds(last.longest)),
		}
		if small == 0 {
			small = r.Value
		} else {
			r.Peer, r.PeerVal, r.Floor = "the smallest", small, ratioAtMost(1.3)
		}
		add(r)
	}
	return nil
}

// largeMemory runs the plan by the sluice binary's own node, and reads from the system what memory that took at most.
func largeMemory(ctx context.Context, b *bench, add func(result)) (err error) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		add(result{What: "most memory of den", Skipped: "this system has no /proc to read it from"})
		return nil
	}
	sluice, err := b.binary()
	if err != nil {
		return err
	}
	db, err := b.open(ctx, onSQLite)
	if err != nil {
		return err
	}
	defer closing(ctx, db, &err)
	g := layers(b.size(largeTasks, 3000))
	spec := g.spec("large", "demo")
	for i := range spec.Tasks {
		spec.Tasks[i].Params = map[string]any{"return": smallOutput}
	}
	p, _, err := submitted(ctx, db, spec)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, sluice, "den", "--store", db.uri, "--threads", strconv.Itoa(mostThreads))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() {
		stop := cmd.Process.Signal(os.Interrupt)
		if e := cmd.Wait(); err == nil && (stop != nil || e != nil) {
			err = fmt.Errorf("sluice den: %w: %s", errors.Join(stop, e), lastLines(out.String(), 5))
		}
	}()
	for {
		now, err := db.Plan(ctx, p.ID)
		if err != nil {
			return err
		}
		if now.State == plan.PlanSucceeded {
			break
		}
		if now.State.Ended() {
			return fmt.Errorf("the plan is %s", now.State)
		}
		if time.Since(start) > 5*time.Minute {
			return fmt.Errorf("the plan has not ended in 5 minutes: %+v", now.Counts)
		}
		time.Sleep(50 * time.Millisecond)
	}
	took := time.Since(start)
	memory, err := mostMemory(cmd.Process.Pid)
	if err != nil {
		return fmt.Errorf("memory of sluice den: %w", err)
	}
	add(result{
		What: "most memory of den", Value: memory, Unit: "MiB", Floor: atMost(150),
		Note: fmt.Sprintf("VmHWM of sluice den --threads %d; %d tasks, %d needs in %.1f s", mostThreads, g.tasks(), g.edges(), took.Seconds()),
	})
	return nil
}

// mostMemory returns how much memory, in MiB, a process had at most, where the system has a /proc to read it from.
func mostMemory(pid int) (float64, error) {
	kib, err := strconv.Atoi(strings.TrimSuffix(after(fmt.Sprintf("/proc/%d/status", pid), "VmHWM"), " kB"))
	return float64(kib) / 1024, err
}
