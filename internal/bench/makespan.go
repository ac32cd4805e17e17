package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
		"makespan/zk-plan", "zk-plan's stress test (N=10, M=100, K=10, 100 ms) against the greedy list schedule without overhead", onSQLite,
		func(ctx context.Context, t *trial) {
			g := stress(t.size(100, 20), 10)
			makespan(ctx, t, g.spec("stress", "stress"), g, "", named{"stress": &stressPlugin{graph: g, working: make([]atomic.Int32, g.tasks())}})
		},
	}}
	for _, file := range []struct{ name, path string }{
		{"fork-join", "helloworld-forkjoin-10-chameleon.json.gz"},
		{"montage", "montage-chameleon-2mass-01d-001.json.gz"},
		{"epigenomics", "epigenomics-chameleon-hep-2seq-100k-001.json.gz"},
	} {
		all = append(all, scenario{
			"makespan/" + file.name, "a recorded workflow, scaled, against the greedy list schedule without overhead", onSQLite,
			func(ctx context.Context, t *trial) {
				spec, g, scale := t.workflow(ctx, file.path)
				makespan(ctx, t, spec, g, fmt.Sprintf(", recorded times × %.3g", scale), named{demo.Name: demo.Plugin})
			},
		})
	}
	return all
}

// makespan runs a plan of sleeping tasks and compares how long that takes with the ideal schedule of its graph.
func makespan(ctx context.Context, t *trial, spec *plan.Spec, g *graph, note string, with named) {
	t.again(3, func() { t.sample("took", milliseconds(t.runNew(ctx, spec, makespanThreads, with).took)) })
	t.sample("ideal", milliseconds(g.listSchedule(makespanThreads)))
	t.line("took", "ideal", result{
		What: "makespan", Unit: "ms", Peer: "greedy list schedule", Note: fmt.Sprintf("%d tasks, %d needs, %d threads, SQLite%s", g.tasks(), g.edges(), makespanThreads, note),
	})
}

// workflow imports a recorded workflow, scaled so that its ideal schedule takes two seconds.
func (t *trial) workflow(ctx context.Context, name string) (*plan.Spec, *graph, float64) {
	root := must(exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/seed-1177d267/sluice").Output()) // inside the folder of the source
	recorded := must(os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), "internal", "planfile", "testdata", "workloads", name)))
	_, g := imported(recorded, 1)
	scale := t.lasts(2*time.Second, 200*time.Millisecond).Seconds() / g.listSchedule(makespanThreads).Seconds()
	spec, g := imported(recorded, scale)
	return spec, g, scale
}

// imported reads a recorded workflow as sluice plan import does, and its graph.
func imported(recorded []byte, scale float64) (*plan.Spec, *graph) {
	file := must(planfile.ImportWfFormat(bytes.NewReader(recorded), scale))
	spec := must(planfile.Parse("imported.yaml", file, planfile.Options{}))
	return spec, must(graphOf(spec))
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
	i, err := taskNumber(t.Name)
	if err == nil {
		err = s.check(t, i)
	}
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

func (s *stressPlugin) check(t *plugins.Task, i int) error {
	var params struct{ Args []int }
	if err := json.Unmarshal(t.Params, &params); err != nil {
		return err
	}
	if !slices.Equal(params.Args, s.graph.needs[i]) {
		return fmt.Errorf("bad arguments: expected %v, actual %v", s.graph.needs[i], params.Args)
	}
	return nil
}
