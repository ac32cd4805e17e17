//go:build !race

package den_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-1177d267/sluice/den"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// An able node runs its tasks for a second if it can begin them.
type able struct {
	can   func(t *plugins.Task) plan.Lack
	tries atomic.Int32
	runs  atomic.Int32
	most  int32         // how many it runs at once; 0: any number
	slow  time.Duration // how long it takes to say that it runs no more
}

func (a *able) Run(ctx context.Context, t *plugins.Task) plan.Result {
	a.tries.Add(1)
	lacks := a.can(t)
	if n := a.runs.Add(1); a.most > 0 && n > a.most {
		lacks = plan.LacksRoom
		defer time.Sleep(a.slow)
	}
	defer a.runs.Add(-1)
	if lacks != plan.LacksNothing {
		return plan.Result{Status: plan.Failed, Reason: plan.ReasonError, Detail: "the folder /nonexistent is not there", Lacks: lacks}
	}
	select {
	case <-ctx.Done():
		return plan.Result{Status: plan.Terminated}
	case <-time.After(time.Second):
		return plan.Result{Status: plan.Succeeded}
	}
}

func never(*plugins.Task) plan.Lack  { return plan.LacksMeans }
func always(*plugins.Task) plan.Lack { return plan.LacksNothing }

// nodes starts a node for each able plugin, and returns when all are registered. They end with the test.
func (w *world) nodes(cfg den.Config, abilities map[string]*able) {
	w.Helper()
	nodesOf(w, cfg, abilities)
}

func nodesOf[P plugins.Plugin](w *world, cfg den.Config, abilities map[string]P) {
	w.Helper()
	for name, a := range abilities {
		cfg.Name, cfg.Host, cfg.Plugins = plan.NodeName(name), "host", plugins.NewRegistry()
		cfg.Plugins.Register("work", a)
		n, err := den.New(w.store, cfg)
		if err != nil {
			w.Fatal(err)
		}
		ctx, stop := context.WithCancel(w.Context())
		ended := make(chan error, 1)
		go func() { ended <- n.Run(ctx) }()
		w.Cleanup(func() {
			stop()
			if err := <-ended; err != nil {
				w.Error(err)
			}
		})
	}
	synctest.Wait()
}

func (w *world) work(n int, retry plan.Retry) plan.Plan {
	w.Helper()
	s := plan.New("work")
	for i := range n {
		s.Add(plan.TaskSpec{Name: fmt.Sprint("t", i), Plugin: "work", Retry: retry})
	}
	return w.submit(s)
}

// paused returns the pauses of a node.
func (w *world) paused(name plan.NodeName) (pauses []plan.Pause) {
	w.Helper()
	nodes, err := w.store.Instances(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	for _, n := range nodes {
		if n.Node == name {
			pauses = append(pauses, n.Pauses...)
		}
	}
	return pauses
}

func (w *world) tasks(p plan.Plan) []plan.Task {
	w.Helper()
	tasks, err := w.store.Tasks(w.Context(), store.TaskQuery{Plan: p.ID, Limit: 1000})
	if err != nil {
		w.Fatal(err)
	}
	return tasks
}

func TestANodeThatCannotBeginTasksLeavesThemToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		bad, good := &able{can: never}, &able{can: always}
		w.nodes(den.Config{Threads: 4}, map[string]*able{"bad": bad, "good": good})
		p := w.work(20, plan.Retry{Attempts: 3})
		time.Sleep(3 * time.Second)
		paused := w.paused("bad")
		if len(paused) != 1 || paused[0].Each <= 0 || !strings.Contains(paused[0].Why, "/nonexistent") || len(paused[0].Tasks) == 0 {
			t.Errorf("the pauses of the bad node are %+v, want one, with its reason and its tasks", paused)
		}
		time.Sleep(time.Minute)
		noted := 0
		for _, task := range w.tasks(p) {
			if task.Status != plan.Succeeded || task.Attempt != 1 || task.Node != "good" || task.Detail != "" {
				t.Errorf("%s is %v after %d attempts on %s (%s), want it to have succeeded at the first on good", task.Name, task.Status, task.Attempt, task.Node, task.Detail)
			}
			log, _, err := w.store.Log(t.Context(), task.ID, 0, 100)
			if err != nil {
				t.Fatal(err)
			}
			for i := range log {
				if rules.IsGivenBack(&log[i]) && strings.Contains(log[i].Text, "node bad could not begin it: the folder /nonexistent") {
					noted++
				}
			}
		}
		if tries := int(bad.tries.Load()); noted != tries || tries < 4 || tries > 8 {
			t.Errorf("the bad node tried %d tasks, and %d logs say so; want the 4 of its first turn, and few more", tries, noted)
		}
	})
}

func TestATaskThatNoNodeCanBeginFailsAndThePausesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		odd := func(t *plugins.Task) plan.Lack {
			if t.Name == "t0" {
				return plan.LacksMeans
			}
			return plan.LacksNothing
		}
		a, b := &able{can: odd}, &able{can: odd}
		w.nodes(den.Config{Threads: 1}, map[string]*able{"a": a, "b": b})
		p := w.work(1, plan.Retry{})
		time.Sleep(5 * time.Second)
		if task := w.task(p, "t0"); task.Status != plan.Failed || task.Reason != plan.ReasonError || task.Attempt != 1 || !strings.Contains(task.Detail, "/nonexistent") {
			t.Errorf("it is %v, %s, with attempt %d (%s), want it to have failed at the first with the reason", task.Status, task.Reason, task.Attempt, task.Detail)
		}
		if n := a.tries.Load() + b.tries.Load(); n != 2 {
			t.Errorf("it was tried %d times, want once on each node", n)
		}
		for _, name := range []plan.NodeName{"a", "b"} {
			for _, pause := range w.paused(name) {
				if pause.Each > 0 {
					t.Errorf("node %s still pauses: %+v", name, pause)
				}
			}
		}
		p = w.work(3, plan.Retry{}) // t0 again, and two that can be begun
		time.Sleep(5 * time.Second)
		w.wantState(p, map[string]string{"t0": "failed", "t1": "succeeded", "t2": "succeeded"})
	})
}

func TestATaskThatItsOnlyNodeCannotBeginFailsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		bad := &able{can: never}
		w.nodes(den.Config{Threads: 1}, map[string]*able{"bad": bad})
		p := w.work(3, plan.Retry{Attempts: 2, Delay: plan.NoDelay, Max: plan.NoDelay})
		time.Sleep(100 * time.Millisecond)
		for _, task := range w.tasks(p) {
			if task.Status != plan.Failed || task.Attempt != 2 || task.Detail != "the folder /nonexistent is not there" {
				t.Errorf("%s is %v after %d attempts (%s), want it to have failed after 2 with the reason", task.Name, task.Status, task.Attempt, task.Detail)
			}
		}
		if paused := w.paused("bad"); len(paused) != 0 {
			t.Errorf("the pauses are %+v, want none", paused)
		}
	})
}

func TestANodeTriesOneTaskAfterEachPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var mended atomic.Bool
		bad := &able{can: func(*plugins.Task) plan.Lack {
			if mended.Load() {
				return plan.LacksNothing
			}
			return plan.LacksMeans
		}}
		w.nodes(den.Config{Threads: 4}, map[string]*able{"bad": bad})
		// The other node serves the queue, and is never there in time.
		if err := w.store.Register(t.Context(), plan.Instance{ID: plan.InstanceID{ID: plan.NewID(time.Now())}, Node: "full", Host: "host", Lease: 24 * time.Hour, Plugins: []string{"work"}}); err != nil {
			t.Fatal(err)
		}
		p := w.work(100, plan.Retry{})
		time.Sleep(10 * time.Minute)
		if tries := bad.tries.Load(); tries < 4+12 || tries > 4+30 {
			t.Errorf("it tried %d tasks in ten minutes, want the 4 of its first turn, and one after each pause of up to a minute", tries)
		}
		if paused := w.paused("bad"); len(paused) != 1 || paused[0].Each < 30*time.Second || paused[0].Each > time.Minute {
			t.Errorf("the pauses are %+v, want one of up to a minute", paused)
		}
		mended.Store(true)
		time.Sleep(2 * time.Minute)
		for _, task := range w.tasks(p) {
			if task.Status != plan.Succeeded || task.Attempt != 1 {
				t.Errorf("%s is %v with attempt %d, want it to have succeeded at the first", task.Name, task.Status, task.Attempt)
			}
		}
		if paused := w.paused("bad"); len(paused) != 0 {
			t.Errorf("the pauses are %+v after the node was mended", paused)
		}
	})
}

func TestANodeLeavesOnlyTheQueueAloneThatItCannotServe(t *testing.T) {
	for _, chosen := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			bad := &able{can: never}
			w.plugins.Register("work", bad)
			work, err := w.store.EnsureQueue(t.Context(), plan.Queue{Name: "work", Plugin: "work", Unlimited: true})
			if err != nil {
				t.Fatal(err)
			}
			echo, err := w.store.EnsureQueue(t.Context(), plan.Queue{Name: "echo", Plugin: "echo", Unlimited: true})
			if err != nil {
				t.Fatal(err)
			}
			if err := w.store.Register(t.Context(), plan.Instance{ID: plan.InstanceID{ID: plan.NewID(time.Now())}, Node: "full", Host: "host", Lease: 24 * time.Hour, Plugins: []string{"work"}}); err != nil {
				t.Fatal(err)
			}
			cfg := den.Config{Threads: 2}
			if chosen {
				cfg.Active = []plan.QueueID{work.ID, echo.ID}
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			go w.node(cfg).Run(ctx)
			p := w.work(10, plan.Retry{})
			time.Sleep(time.Minute)
			s := plan.New("others")
			s.Add(plan.TaskSpec{Name: "a", Plugin: "echo"})
			q := w.submit(s)
			time.Sleep(11 * time.Second) // the longest poll
			w.wantState(q, map[string]string{"a": "succeeded"})
			w.wantState(p, map[string]string{"t0": "queued"})
			stop()
			synctest.Wait()
			time.Sleep(time.Minute)
		})
	}
}

func TestANodeWithoutRoomRunsFewerTasksAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		small := &able{can: always, most: 3}
		w.nodes(den.Config{Threads: 8}, map[string]*able{"small": small})
		p := w.work(60, plan.Retry{})
		time.Sleep(10 * time.Second)
		if paused := w.paused("small"); len(paused) != 0 {
			t.Errorf("the pauses are %+v, want none: the node runs other tasks", paused)
		}
		time.Sleep(time.Minute)
		for _, task := range w.tasks(p) {
			if task.Status != plan.Succeeded || task.Attempt != 1 {
				t.Errorf("%s is %v with attempt %d (%s), want it to have succeeded at the first", task.Name, task.Status, task.Attempt, task.Detail)
			}
		}
		if tries := small.tries.Load(); tries > 60+40 {
			t.Errorf("it tried %d times to run 60 tasks", tries)
		}
		small.most = 0
		time.Sleep(2 * time.Minute)
		before := small.tries.Load()
		w.work(8, plan.Retry{})
		time.Sleep(11 * time.Second)
		if n := small.tries.Load() - before; n != 8 {
			t.Errorf("it began %d tasks, want 8", n)
		}
		small.most, small.slow = 1, 1500*time.Millisecond // the other task has ended by then
		p = w.work(2, plan.Retry{})
		time.Sleep(11 * time.Second)
		for _, task := range w.tasks(p) {
			if task.Status != plan.Succeeded || task.Attempt != 1 {
				t.Errorf("%s of two is %v with attempt %d (%s), want it to have succeeded at the first", task.Name, task.Status, task.Attempt, task.Detail)
			}
		}
	})
}

// A wanderer fails three times, wherever it runs.
type wanderer struct {
	name string
	ran  *[]string // names of nodes
}

func (*wanderer) Wanders() {}

func (p *wanderer) Run(context.Context, *plugins.Task) plan.Result {
	*p.ran = append(*p.ran, p.name)
	if len(*p.ran) <= 3 {
		return plan.Result{Status: plan.Failed, Reason: plan.ReasonError, Detail: "an input is out of reach"}
	}
	return plan.Result{Status: plan.Succeeded}
}

// A node on which a task of a plugins.Wanderer failed gives the next attempt back once, if there is another.
func TestATaskThatFailedOnANodeIsLeftToAnotherOnce(t *testing.T) {
	for _, names := range [][]string{{"n1"}, {"n1", "n2"}} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			var ran []string
			all := map[string]*wanderer{}
			for _, name := range names {
				all[name] = &wanderer{name, &ran}
			}
			nodesOf(w, den.Config{Threads: 1}, all)
			p := w.work(1, plan.Retry{Attempts: 4, Delay: time.Second})
			time.Sleep(time.Minute)
			task := w.tasks(p)[0]
			if task.Status != plan.Succeeded || task.Attempt != 4 || len(ran) != 4 {
				t.Errorf("the task is %v after %d attempts, and ran on %v", task.Status, task.Attempt, ran)
			}
			entries, _, err := w.store.Log(t.Context(), task.ID, 0, 100)
			if err != nil {
				t.Fatal(err)
			}
			back := 0
			for i := range entries {
				if rules.IsGivenBack(&entries[i]) {
					back++
				}
			}
			if alone := len(names) == 1; alone != (back == 0) || back > 3 {
				t.Errorf("on %v it was given back %d times after 3 failures; it ran on %v", names, back, ran)
			}
			for _, name := range names {
				if pauses := w.paused(plan.NodeName(name)); len(pauses) > 0 {
					t.Errorf("%s has pauses: %+v", name, pauses)
				}
			}
		})
	}
}
