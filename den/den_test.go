//go:build !race

// In Go 1.26 a synctest bubble and the race detector do not work together. Timers that fire in a
// bubble now and then crash the detector (golang.org/issue/78156). Tests for the detector run in
// real time, in race_test.go.

package den_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/internal/compiler"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/storetest/model"
	"github.com/seed-1177d267/sluice/internal/submit"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// All tests here run in a bubble of synctest, over the model of a store: their time is not real.

type world struct {
	*testing.T
	store   store.Store
	plugins *plugins.Registry
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, store: model.New(model.Options{}), plugins: plugins.NewRegistry()}
	w.register("sleep", func(ctx context.Context, t *plugins.Task) (any, error) {
		var params struct{ For string }
		if err := json.Unmarshal(t.Params, &params); err != nil {
			return nil, err
		}
		d, err := time.ParseDuration(params.For)
		if err != nil {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(d):
			return t.Name, nil
		}
	})
	w.register("echo", func(ctx context.Context, t *plugins.Task) (any, error) {
		var params struct {
			Needs map[string]json.RawMessage
			Item  json.RawMessage
		}
		if err := json.Unmarshal(t.Params, &params); err != nil {
			return nil, err
		}
		if params.Item != nil {
			return params.Item, nil
		}
		return params.Needs, nil
	})
	return w
}

func (w *world) register(name string, f plugins.Func) { w.plugins.Register(name, f) }

func (w *world) submit(s *plan.Spec) plan.Plan {
	w.Helper()
	if err := compiler.Validate(s); err != nil {
		w.Fatal(err)
	}
	p, err := submit.Submit(w.Context(), w.store, s, false)
	if err != nil {
		w.Fatal(err)
	}
	return p
}

// Store is all that a node may ask of a store: a test's own store stands before one.
type Store = store.Node

func (w *world) node(cfg den.Config) *den.Node { return w.on(w.store, cfg) }

// on returns a node on another store than the world's.
func (w *world) on(st den.Store, cfg den.Config) *den.Node {
	w.Helper()
	cfg.Plugins, cfg.Host = w.plugins, "host"
	n, err := den.New(st, cfg)
	if err != nil {
		w.Fatal(err)
	}
	return n
}

func (w *world) task(p plan.Plan, name string) plan.Task {
	w.Helper()
	found, err := w.store.Tasks(w.Context(), store.TaskQuery{Plan: p.ID, Name: name})
	if err != nil || len(found) != 1 {
		w.Fatalf("task %q: %d found, %v", name, len(found), err)
	}
	t, err := w.store.Task(w.Context(), found[0].ID)
	if err != nil {
		w.Fatal(err)
	}
	return t
}

func (w *world) wantState(p plan.Plan, want map[string]string) {
	w.Helper()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if t := w.task(p, name); t.State() != want[name] {
			w.Errorf("task %s is %s (%s %s), want %s", name, t.State(), t.Reason, t.Detail, want[name])
		}
	}
}

func (w *world) wantEnd(p plan.Plan, want plan.Lifecycle) {
	w.Helper()
	got, err := w.store.Plan(w.Context(), p.ID)
	if err != nil {
		w.Fatal(err)
	}
	if got.State != want {
		w.Errorf("the plan is %s, want %s (%+v)", got.State, want, got.Counts)
	}
}

func params(text string) json.RawMessage { return json.RawMessage(text) }

func TestANodeOfAPlanRunsItAndReturnsAtItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := plan.New("diamond")
		s.Add(plan.TaskSpec{Name: "a", Plugin: "sleep", Params: params(`{"for": "1m"}`)})
		s.Add(plan.TaskSpec{Name: "b", Plugin: "sleep", Params: params(`{"for": "2m"}`), Needs: []string{"a"}})
		s.Add(plan.TaskSpec{Name: "c", Plugin: "sleep", Params: params(`{"for": "3m"}`), Needs: []string{"a"}})
		s.Add(plan.TaskSpec{Name: "d", Plugin: "echo", Needs: []string{"b", "c"}})
		p := w.submit(s)
		start := time.Now()
		if err := w.node(den.Config{Plan: p.ID, Threads: 4}).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, want := time.Since(start), 4*time.Minute; got < want || got > want+100*time.Millisecond {
			t.Errorf("the plan took %v, want %v: a child is to start as soon as its parents have finished", got, want)
		}
		w.wantEnd(p, plan.PlanSucceeded)
		if out, want := string(w.task(p, "d").Output), `{"b":"b","c":"c"}`; out != want {
			t.Errorf("d got %s from its parents, want %s", out, want)
		}
	})
}

func TestAPlanRunsOnFewerThreadsThanItHasTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := plan.New("many")
		for i := range 10 {
			s.Add(plan.TaskSpec{Name: fmt.Sprintf("t%d", i), Plugin: "sleep", Params: params(`{"for": "1m"}`)})
		}
		p := w.submit(s)
		start := time.Now()
		if err := w.node(den.Config{Plan: p.ID, Threads: 3}).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, want := time.Since(start).Round(time.Second), 4*time.Minute; got != want {
			t.Errorf("10 tasks of a minute on 3 threads took %v, want %v", got, want)
		}
	})
}

// A tenant learns of the lease.
type tenant struct {
	plugins.Func
	told []time.Duration
}

func (t *tenant) Lease(left time.Duration) { t.told = append(t.told, left) }

func TestPluginsAreToldOfTheLeaseBeforeAnythingRunsAndWithEachBeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var before int
		tenant := &tenant{}
		tenant.Func = func(context.Context, *plugins.Task) (any, error) {
			before = len(tenant.told)
			w.plugins.Remove("tenant")                        // its task continues
			time.Sleep(10*time.Second + 500*time.Millisecond) // ends at no beat: of two timers of one instant either may be first
			return nil, nil
		}
		w.plugins.Register("tenant", tenant)
		s := plan.New("p")
		s.Add(plan.TaskSpec{Name: "a", Plugin: "tenant"})
		p := w.submit(s)
		if err := w.node(den.Config{Plan: p.ID, Lease: 20 * time.Second, Beat: time.Second}).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if before == 0 || len(tenant.told) < before+10 {
			t.Errorf("it was told %d times before the task began and %d times in all, want once at least and with each of ten beats", before, len(tenant.told))
		}
		for _, left := range tenant.told {
			if left != 15*time.Second {
				t.Errorf("it was told %v, want three quarters of the lease", left)
			}
		}
	})
}

// More tasks end at once than reports may wait. A high limit of concurrent tasks costs nothing by
// itself.
func TestAsManyTasksEndAtOnceAsThereAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := plan.New("many")
		for i := range 1500 {
			s.Add(plan.TaskSpec{Name: fmt.Sprintf("t%d", i), Plugin: "sleep", Params: params(`{"for": "1m"}`)})
		}
		p := w.submit(s)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		n := w.node(den.Config{Plan: p.ID, Threads: plan.MaxThreads})
		start := time.Now()
		if err := n.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := time.Since(start); got > 2*time.Minute {
			t.Errorf("1,500 tasks of a minute at once took %v", got)
		}
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > 50<<20 {
			t.Errorf("they took %d MiB", got>>20)
		}
	})
}

func TestThreadsAreBounded(t *testing.T) {
	w := newWorld(t)
	for _, threads := range []int{-1, plan.MaxThreads + 1} {
		if _, err := den.New(w.store, den.Config{Plugins: plugins.NewRegistry(), Threads: threads}); err == nil || !strings.Contains(err.Error(), "thread") {
			t.Errorf("%d threads: %v, want a refusal", threads, err)
		}
	}
}

func TestTimesAreNotNegative(t *testing.T) {
	w := newWorld(t)
	for name, cfg := range map[string]den.Config{"lease": {Lease: -1}, "beat": {Beat: -1}, "grace": {Grace: -1}} {
		cfg.Plugins = plugins.NewRegistry()
		if _, err := den.New(w.store, cfg); err == nil || !strings.Contains(err.Error(), name+" of -1ns") {
			t.Errorf("a %s below 0: %v, want a refusal", name, err)
		}
	}
}

func TestATaskThatFailsIsTriedAgainAfterItsDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.register("third_time", func(_ context.Context, t *plugins.Task) (any, error) {
			t.Log.Printf("attempt %d", t.Attempt)
			if t.Attempt < 3 {
				return nil, errors.New("not yet")
			}
			return "charm", nil
		})
		s := plan.New("retry")
		s.Add(plan.TaskSpec{Name: "a", Plugin: "third_time", Retry: plan.Retry{Attempts: 3, Delay: time.Minute, Factor: 2, Max: time.Hour}})
		p := w.submit(s)
		start := time.Now()
		if err := w.node(den.Config{Plan: p.ID}).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		// Delays of half to all of one and of two minutes.
		if got := time.Since(start); got < 90*time.Second || got > 3*time.Minute+time.Second {
			t.Errorf("three attempts took %v, want the two delays between them: 1m30s to 3m", got)
		}
		w.wantState(p, map[string]string{"a": "succeeded"})
		a := w.task(p, "a")
		log, _, err := w.store.Log(t.Context(), a.ID, 0, 10)
		if err != nil || len(log) != 3 || log[2].Attempt != 3 || log[2].Text != "attempt 3\n" {
			t.Errorf("log = %+v, %v, want a line of each attempt", log, err)
		}
	})
}

func TestATaskWithoutDelayIsTriedAgainAtOnce(t *testing.T) {
	for name, retry := range map[string]plan.Retry{
		"no delay":            {Attempts: 4, Delay: plan.NoDelay},
		"no delay is longest": {Attempts: 4, Delay: time.Minute, Max: plan.NoDelay},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.register("fourth_time", func(_ context.Context, t *plugins.Task) (any, error) {
					if t.Attempt < 4 {
						return nil, errors.New("not yet")
					}
					return nil, nil
				})
				s := plan.New("retry")
				s.Add(plan.TaskSpec{Name: "a", Plugin: "fourth_time", Retry: retry})
				p := w.submit(s)
				start := time.Now()
				if err := w.node(den.Config{Plan: p.ID}).Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				if got := time.Since(start); got > 100*time.Millisecond {
					t.Errorf("four attempts took %v, want them to follow at once", got)
				}
				w.wantState(p, map[string]string{"a": "succeeded"})
			})
		})
	}
}

func TestATaskEndsAsItsPluginOrItsNodeSays(t *testing.T) {
	tests := []struct {
		name   string
		task   plan.TaskSpec
		plugin plugins.Func
		state  string
		status plan.Status
		reason plan.Reason
		detail string
	}{
		{"longer than its timeout", plan.TaskSpec{Plugin: "sleep", Timeout: time.Minute, Params: params(`{"for": "1h"}`)}, nil,
			"failed", plan.Failed, plan.ReasonTimeout, "1m0s"},
		{"with a status of its own", plan.TaskSpec{}, func(context.Context, *plugins.Task) (any, error) {
			return nil, &plugins.StatusError{Status: 7, Err: errors.New("seven")}
		}, "failed", 7, "", "seven"},
		{"with a panic", plan.TaskSpec{}, func(context.Context, *plugins.Task) (any, error) { panic("oh") },
			"failed", plan.Failed, plan.ReasonError, "panicked: oh"},
		{"with what is not JSON", plan.TaskSpec{Retry: plan.Retry{Attempts: 3}}, func(context.Context, *plugins.Task) (any, error) { return func() {}, nil },
			"failed", plan.Failed, plan.ReasonOutput, "not JSON"},
		{"with more output than is kept", plan.TaskSpec{}, func(context.Context, *plugins.Task) (any, error) {
			return strings.Repeat("x", plan.MaxOutput), nil
		}, "failed", plan.Failed, plan.ReasonOutput, "write a file"},
		{"with an expression that leads nowhere", plan.TaskSpec{
			Needs: []string{"parent"}, Params: params(`{"x": "${{ needs.parent.nosuch }}"}`), Retry: plan.Retry{Attempts: 3},
		}, nil, "failed", plan.Failed, plan.ReasonInput, `no "nosuch"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				if test.plugin != nil {
					w.register("own", test.plugin)
					test.task.Plugin = "own"
				} else if test.task.Plugin == "" {
					test.task.Plugin = "echo"
				}
				s := plan.New("one")
				s.Add(plan.TaskSpec{Name: "parent", Plugin: "echo"})
				test.task.Name = "t"
				s.Add(test.task)
				p := w.submit(s)
				if err := w.node(den.Config{Plan: p.ID}).Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				got := w.task(p, "t")
				if got.Attempt != 1 {
					t.Errorf("it was tried %d times, want once: it would be no better the next time", got.Attempt)
				}
				if got.State() != test.state || got.Status != test.status || got.Reason != test.reason || !strings.Contains(got.Detail, test.detail) {
					t.Errorf("the task is %s (%d, %q, %q), want %s (%d, %q, …%s…)",
						got.State(), got.Status, got.Reason, got.Detail, test.state, test.status, test.reason, test.detail)
				}
				w.wantEnd(p, plan.PlanFailed)
			})
		})
	}
}

func TestATaskIsNotGivenMoreThanANodeCanHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.register("large", func(context.Context, *plugins.Task) (any, error) { return strings.Repeat("x", 7<<20), nil })
		s := plan.New("large")
		s.Add(plan.TaskSpec{Name: "each", Plugin: "large", Foreach: &plan.Foreach{List: []byte(`[1,2,3,4,5,6,7,8,9,10]`)}})
		s.Add(plan.TaskSpec{Name: "all", Plugin: "echo", Needs: []string{"each"}})
		p := w.submit(s)
		if err := w.node(den.Config{Plan: p.ID}).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if all := w.task(p, "all"); all.Reason != plan.ReasonInput || !strings.Contains(all.Detail, "write files") {
			t.Errorf("it is %s: %s; want it refused with a remedy", all.State(), all.Detail)
		}
	})
}

func TestAPersonCancelsARunningTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := plan.New("cancel")
		s.Add(plan.TaskSpec{Name: "a", Plugin: "sleep", Params: params(`{"for": "1h"}`), Retry: plan.Retry{Attempts: 5}})
		s.Add(plan.TaskSpec{Name: "b", Plugin: "echo", Needs: []string{"a"}})
		p := w.submit(s)
		time.AfterFunc(time.Minute, func() {
			if err := w.store.CancelPlan(t.Context(), p.ID, false); err != nil {
				t.Error(err)
			}
		})
		start := time.Now()
		if err := w.node(den.Config{Plan: p.ID}).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := time.Since(start); got > time.Minute+3*time.Second {
			t.Errorf("the node ended %v after it started, want soon after a minute", got)
		}
		w.wantState(p, map[string]string{"a": "terminated", "b": "cancelled"})
		w.wantEnd(p, plan.PlanCancelled)
	})
}

func TestItemsComeFromFiles(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"lines.txt": "one\r\n\n \t\r\n two\nthree", "b.log": "", "a.log": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	in := params(fmt.Sprintf(`{"dir": %q}`, dir))
	tests := []struct {
		name    string
		foreach plan.Foreach
		output  string
		detail  string
	}{
		{"lines of a file", plan.Foreach{Lines: "lines.txt"}, `["one"," two","three"]`, ""},
		{"files of a pattern", plan.Foreach{Glob: "*.log"}, `["a.log","b.log"]`, ""},
		{"no files at all", plan.Foreach{Glob: "*.nosuch"}, `[]`, ""},
		{"a file that is not there", plan.Foreach{Lines: "nosuch"}, "", "no such file"},
		{"a folder that is not there", plan.Foreach{Glob: "nosuch/*"}, "", "nosuch does not exist"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				s := plan.New("files")
				s.Add(plan.TaskSpec{Name: "a", Plugin: "echo", Params: in, Foreach: &test.foreach})
				p := w.submit(s)
				if err := w.node(den.Config{Plan: p.ID}).Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				a := w.task(p, "a")
				if string(a.Output) != test.output || !strings.Contains(a.Detail, test.detail) {
					t.Errorf("output %s, detail %q, want %s and …%s…", a.Output, a.Detail, test.output, test.detail)
				}
			})
		})
	}
}

func TestItemsComeFromFilesInTheFolderThatAParentNames(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "${{ item }}")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "lines"), []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.register("where", func(context.Context, *plugins.Task) (any, error) { return dir, nil })
		s := plan.New("files")
		s.Add(plan.TaskSpec{Name: "where", Plugin: "where"})
		s.Add(plan.TaskSpec{
			Name: "a", Plugin: "echo", Needs: []string{"where"}, Foreach: &plan.Foreach{Lines: "lines"},
			Params: params(`{"dir": "${{ needs.where }}", "x": "${{ item }}"}`),
		})
		p := w.submit(s)
		if err := w.node(den.Config{Plan: p.ID}).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if a := w.task(p, "a"); string(a.Output) != `["one"]` {
			t.Errorf("output %s, detail %q", a.Output, a.Detail)
		}
	})
}
