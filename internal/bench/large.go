package main

import (
	"context"
	"fmt"
	"os"
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
		{"large/sqlite/submit", "a plan of 100,000 tasks and 300,000 needs is submitted", onSQLite, largeSubmit},
		{"large/sqlite/flat", "cost of a task in plans of 1,000, 10,000 and 100,000 tasks that need nothing", onSQLite,
			func(ctx context.Context, t *trial) { largeCost(ctx, t, flat) }},
		{"large/sqlite/layered", "the same with 3 parents each, in layers of 100", onSQLite,
			func(ctx context.Context, t *trial) {
				largeCost(ctx, t, func(n int) *graph { return layered(n, 100) })
			}},
		{"large/sqlite/memory", "memory of sluice den while it runs a plan of 100,000 tasks", onSQLite, largeMemory},
	}
}

// largeSubmit submits the plan from a plan in memory, and from its file by sluice plan submit as a whole process.
func largeSubmit(ctx context.Context, t *trial) {
	g := layers(t.size(largeTasks, 3000))
	t.again(3, func() {
		db := t.open(ctx)
		_, took := submitted(ctx, db, g.spec("large", "noop"))
		db.close(ctx)
		t.sample("inside", took.Seconds())
		dir := t.newFile("plan.yaml", planFile(g, "run: ':'"))
		defer os.RemoveAll(dir)
		whole := timed(ctx, dir, must(t.binary()), "plan", "submit", filepath.Join(dir, "plan.yaml"), "--store", "sqlite:"+filepath.Join(dir, "sluice.db"))
		t.sample("outside", whole.took.Seconds())
	})
	t.line("inside", "", result{What: "from a plan in memory", Unit: "s", Note: fmt.Sprintf("%d tasks, %d needs; %s", g.tasks(), g.edges(), onSQLite.durability())})
	t.line("outside", "", result{What: "sluice plan submit", Unit: "s", Note: "the whole process, with reading and validating the file"})
}

// largeCost compares what a task costs in plans of one shape and several sizes.
func largeCost(ctx context.Context, t *trial, shape func(n int) *graph) {
	for i, s := range []struct{ tasks, quick, reps int }{{1000, 200, 9}, {10_000, 500, 5}, {largeTasks, 2000, 3}} {
		g, series := shape(t.size(s.tasks, s.quick)), fmt.Sprint(i)
		var last drive
		t.again(s.reps, func() {
			last = load{kind: onSQLite, threads: mostThreads}.once(ctx, t, g)
			t.sample(series, microseconds(last.took)/float64(last.tasks))
		})
		peer, name := "", ""
		if i > 0 {
			peer, name = "0", "the smallest"
		}
		t.line(series, peer, result{
			What: fmt.Sprintf("%d tasks", g.tasks()), Unit: "µs/task", Peer: name,
			Note: fmt.Sprintf("%d threads, %.0f endings a turn, longest turn %.1f ms", mostThreads, last.turn, milliseconds(last.longest)),
		})
	}
}

// largeMemory runs the plan by the sluice binary's own node, and reads from the system what memory that took at most.
func largeMemory(ctx context.Context, t *trial) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.add(result{What: "most memory of den", Skipped: "this system has no /proc to read it from"})
		return
	}
	db := t.open(ctx)
	defer db.close(ctx)
	g := layers(t.size(largeTasks, 3000))
	spec := g.spec("large", "demo")
	for i := range spec.Tasks {
		spec.Tasks[i].Params = map[string]any{"return": smallOutput}
	}
	p, _ := submitted(ctx, db, spec)
	began := time.Now()
	node := t.start(ctx, db, "den", "--threads", strconv.Itoa(mostThreads))
	defer node.stop()
	for {
		now := must(db.Plan(ctx, p.ID))
		if now.State == plan.PlanSucceeded {
			break
		}
		if now.State.Ended() || time.Since(began) > 5*time.Minute {
			failf("the plan is %s after %v: %+v", now.State, time.Since(began), now.Counts)
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.add(result{
		What: "most memory of den", Value: must(mostMemory(node.Process.Pid)), Unit: "MiB",
		Note: fmt.Sprintf("VmHWM of sluice den --threads %d; %d tasks, %d needs in %.1f s", mostThreads, g.tasks(), g.edges(), time.Since(began).Seconds()),
	})
}

// mostMemory returns how much memory, in MiB, a process had at most, where the system has a /proc to read it from.
func mostMemory(pid int) (float64, error) {
	kib, err := strconv.Atoi(strings.TrimSuffix(after(fmt.Sprintf("/proc/%d/status", pid), "VmHWM"), " kB"))
	return float64(kib) / 1024, err
}
