package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/seed-1177d267/sluice/internal/planfile"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
	"github.com/seed-1177d267/sluice/plugins/demo"
)

// makespanThreads is how many tasks run at once, here and in the ideal schedule.
const makespanThreads = 10

func makespanScenarios() []scenario {
	all := []scenario{{
		name:  "makespan/zk-plan",
		about: "zk-plan's stress test (N=10, M=100, K=10, 100 ms) against the greedy list schedule without overhead",
		run: func(ctx context.Context, b *bench, add func(result)) error {
			g := stress(b.size(100, 20), 10)
			p := &stressPlugin{graph: g, working: make([]atomic.Int32, g.tasks())}
			return makespan(ctx, b, g.spec("stress", "stress"), g, registry(map[string]plugins.Plugin{"stress": p}), "", add)
		},
	}}
	for _, file := range []struct{ name, path string }{
		{"fork-join", "helloworld-forkjoin-10-chameleon.json.gz"},
		{"montage", "montage-chameleon-2mass-01d-001.json.gz"},
		{"epigenomics", "epigenomics-chameleon-hep-2seq-100k-001.json.gz"},
	} {
		all = append(all, scenario{
			name:  "makespan/" + file.name,
			about: "a recorded workflow, scaled, against the greedy list schedule without overhead",
			run: func(ctx context.Context, b *bench, add func(result)) error {
				spec, g, scale, err := b.workflow(ctx, file.path)
				if err != nil {
					return err
				}
				return makespan(ctx, b, spec, g, registry(map[string]plugins.Plugin{demo.Name: demo.Plugin}), fmt.Sprintf(", recorded times × %.3g", scale), add)
			},
		})
	}
	return all
}

// makespan runs a plan of sleeping tasks and compares how long that takes with the ideal schedule of its graph.
func makespan(ctx context.Context, b *bench, spec *plan.Spec, g *graph, with *plugins.Registry, note string, add func(result)) error {
	var took []float64
	for range b.repetitions(3) {
		d, err := makespanOnce(ctx, b, spec, with)
		if err != nil {
			return err
		}
		took = append(took, milliseconds(d.took))
	}
	add(result{
		What: "makespan", Value: median(took), Unit: "ms", Peer: "greedy list schedule", PeerVal: milliseconds(g.listSchedule(makespanThreads)),
		Floor: ratioAtMost(1.05), Note: fmt.Sprintf("%d tasks, %d needs, %d threads, SQLite%s", g.tasks(), g.edges(), makespanThreads, note),
	})
	return nil
}

func makespanOnce(ctx context.Context, b *bench, spec *plan.Spec, with *plugins.Registry) (d drive, err error) {
	db, err := b.open(ctx, onSQLite)
	if err != nil {
		return drive{}, err
	}
	defer closing(ctx, db, &err)
	return runPlan(ctx, db, spec, with, makespanThreads)
}

// workflow imports a recorded workflow, scaled so that its ideal schedule takes two seconds.
func (b *bench) workflow(ctx context.Context, name string) (*plan.Spec, *graph, float64, error) {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/seed-1177d267/sluice").Output()
	if err != nil {
		return nil, nil, 0, fmt.Errorf("find the folder of the source: %w; run the benchmark inside it", err)
	}
	recorded, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), "internal", "planfile", "testdata", "workloads", name))
	if err != nil {
		return nil, nil, 0, err
	}
	_, g, err := imported(recorded, 1)
	if err != nil {
		return nil, nil, 0, err
	}
	ideal := 2 * time.Second
	if b.quick {
		ideal = 200 * time.Millisecond
	}
	scale := ideal.Seconds() / g.listSchedule(makespanThreads).Seconds()
	spec, g, err := imported(recorded, scale)
	return spec, g, scale, err
}

// imported reads a recorded workflow as sluice plan import does, and its graph.
func imported(recorded []byte, scale float64) (*plan.Spec, *graph, error) {
	file, err := planfile.ImportWfFormat(bytes.NewReader(recorded), scale)
	if err != nil {
		return nil, nil, err
	}
	spec, err := planfile.Parse("imported.yaml", file, planfile.Options{})
	if err != nil {
		return nil, nil, err
	}
	g, err := graphOf(spec)
	return spec, g, err
}

// stressPlugin is zk-plan's stress-task-func. It checks that nobody else works on the same task,
// and that the arguments are the numbers of the parents, in order. It returns the task's own
// number.
type stressPlugin struct {
	graph   *graph
	working []atomic.Int32
}

// Run implements plugins.Plugin.
func (s *stressPlugin) Run(ctx context.Context, t *plugins.Task) plan.Result {
	i, err := s.check(t)
	if err != nil {
		return plan.Result{Status: plan.Failed, Detail: err.Error()}
	}
	defer s.working[i].Add(-1)
	if n := s.working[i].Add(1); n != 1 {
		return plan.Result{Status: plan.Failed, Detail: fmt.Sprintf("%d work on task %d at once", n, i)}
	}
	if !sleep(ctx, s.graph.lasts[i]) {
		return plan.Result{Status: plan.Terminated}
	}
	return plan.Result{Status: plan.Succeeded, Output: fmt.Appendf(nil, "%d", i)}
}

func (s *stressPlugin) check(t *plugins.Task) (int, error) {
	i, err := taskNumber(t.Name)
	if err != nil {
		return 0, err
	}
	var params struct{ Args []int }
	if err := json.Unmarshal(t.Params, &params); err != nil {
		return 0, err
	}
	if len(params.Args) != len(s.graph.needs[i]) {
		return 0, errors.New("bad arguments")
	}
	for k, want := range s.graph.needs[i] {
		if params.Args[k] != want {
			return 0, fmt.Errorf("bad arguments: expected %v, actual %v", s.graph.needs[i], params.Args)
		}
	}
	return i, nil
}

// sleep waits, and reports whether it did so to the end.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
