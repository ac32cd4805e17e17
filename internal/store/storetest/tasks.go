package storetest

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

var taskCases = []testCase{
	{"a task is kept as it was given", func(w *world) {
		p := w.submitUnready(&plan.Spec{Name: "nightly", Tasks: []plan.TaskSpec{task("a")}})
		q := w.queue("wide", 0)
		a := w.named(p, "a")
		at := w.clock.Now().Add(time.Hour)
		t := plan.Task{
			ID: plan.TaskID{ID: plan.NewID(time.Now())}, Name: "b", Queue: q.ID, Needs: []plan.TaskID{a.ID},
			Params: json.RawMessage(`{"run":"x","n":1.5,"null":null,"$set":{"a.b":1}}`), NotBefore: at,
			Definition: plan.Definition{
				Description: "the second", Subject: "order 4711", When: plan.AllDone, Retry: plan.Retry{Attempts: 3, Delay: 1500 * time.Millisecond, Factor: 1.5, Max: time.Hour},
				Timeout: 90 * time.Second, OnLost: plan.OnLostFail, MaxRescues: 5, ContinueOnError: true, Estimate: time.Minute, Rank: 61000, Template: true,
				Secrets: []string{"*_key", "item"},
				Foreach: &plan.Foreach{Lines: "/tmp/list"},
			},
		}
		w.add(p.ID, t)
		got := w.task(t.ID)
		w.equal("task", []any{got.ID, got.Plan, got.Name, got.Queue, got.Needs, got.Status, got.Attempt, got.Foreach.Lines},
			[]any{t.ID, p.ID, "b", q.ID, t.Needs, plan.Held, 0, "/tmp/list"})
		w.equalJSON("params", got.Params, string(t.Params))
		got.Foreach, t.Foreach = nil, nil
		w.equal("definition", fmt.Sprintf("%+v", got.Definition), fmt.Sprintf("%+v", t.Definition))
		if d := got.NotBefore.Sub(at).Abs(); d > time.Millisecond {
			w.Errorf("not before %v, want %v", got.NotBefore, at)
		}
		if got.Created.IsZero() || got.Modified.IsZero() || got.Created.Location() != time.UTC {
			w.Errorf("created %v, modified %v; want instants in UTC", got.Created, got.Modified)
		}
	}},
	{"another task under an id that is there is refused, and the same one is harmless", func(w *world) {
		q, other := w.queue("exec", 0), w.queue("other", 0)
		n := w.node("n1")
		for _, inPlan := range []bool{false, true} {
			var p plan.Plan
			if inPlan {
				p = w.submit(task("root"))
				n.end(ok(n.one()))
				p = must(w.s.CreatePlan(w.ctx, plan.Plan{Name: "nightly"}))(w)
			}
			parent := w.newTask(q, "parent")
			child := w.newTask(q, "child", parent.ID)
			child.Params = json.RawMessage(`{"path":"/a","n":1.50,"needs":"mine"}`)
			child.Timeout = time.Minute
			again := func(when string) {
				w.Helper()
				same := child
				same.Params = json.RawMessage(` { "needs" : "mine", "n":1.50, "path":"\u002fa"} `)
				w.add(p.ID, parent, same, same)
				for what, change := range map[string]func(*plan.Task){
					"params":     func(t *plan.Task) { t.Params = json.RawMessage(`{"path":"/b","n":1.50}`) },
					"queue":      func(t *plan.Task) { t.Queue = other.ID },
					"needs":      func(t *plan.Task) { t.Needs = nil },
					"name":       func(t *plan.Task) { t.Name = "nephew" },
					"definition": func(t *plan.Task) { t.Timeout = time.Hour },
				} {
					wrong, fresh := child, w.newTask(q, "fresh")
					change(&wrong)
					err := w.s.AddTasks(w.ctx, p.ID, []plan.Task{fresh, wrong})
					w.is(err, plan.ErrExists)
					if err != nil && !(strings.Contains(err.Error(), child.ID.String()) && strings.Contains(err.Error(), what)) {
						w.Errorf("%s, other %s: %v names not both", when, what, err)
					}
					_, err = w.s.Task(w.ctx, fresh.ID)
					w.is(err, plan.ErrNotFound)
				}
			}
			twice := child
			twice.Params = nil
			w.is(w.s.AddTasks(w.ctx, p.ID, []plan.Task{parent, child, twice}), plan.ErrExists)
			w.add(p.ID, parent, child)
			again("held")
			if inPlan {
				continue // of a plan that is submitted; others go the way of tasks of no plan
			}
			n.end(succeed(n.one(), `{"x":1}`))
			again("queued with its inputs")
			n.end(ok(n.one()))
			again("ended")
		}
	}},
	{"tasks are added held, in the plan given, whatever their fields say", func(w *world) {
		p := must(w.s.CreatePlan(w.ctx, plan.Plan{Name: "nightly"}))(w)
		t := w.newTask(w.queue("exec", 0), "a")
		t.Status, t.Plan, t.Attempt, t.Output = plan.Succeeded, plan.PlanID{ID: plan.NewID(time.Now())}, 7, json.RawMessage("1")
		w.add(p.ID, t)
		got := w.task(t.ID)
		w.equal("task", []any{got.Status, got.Plan, got.Attempt, string(got.Output)}, []any{plan.Held, p.ID, 0, ""})
	}},
	{"adding a task again under its id changes nothing", func(w *world) {
		p := must(w.s.CreatePlan(w.ctx, plan.Plan{Name: "nightly"}))(w)
		q := w.queue("exec", 0)
		a := w.newTask(q, "a")
		w.add(p.ID, a)
		w.add(p.ID, a, w.newTask(q, "b", a.ID))
		w.no(w.s.Ready(w.ctx, p.ID))
		w.add(p.ID, a)
		w.equal("tasks", w.plan(p.ID).Counts.Total(), 2)
		w.equal("ran", w.node("n1").run(ok), "[a b]")
	}},
	{"a batch with a mistake adds nothing, and says which task it is", func(w *world) {
		q := w.queue("exec", 0)
		p := w.submit(task("a"), each("copy", list(1)))
		w.node("n1").sweep()
		other := w.submit(task("foreign"))
		a, foreign, item := w.named(p, "a").ID, w.named(other, "foreign").ID, w.named(p, "copy[0]").ID
		alone := w.newTask(q, "alone")
		w.add(plan.PlanID{}, alone)
		later := w.newTask(q, "later")
		self := w.newTask(q, "self")
		self.Needs = []plan.TaskID{self.ID}
		for _, c := range []struct {
			name  string
			tasks []plan.Task
			want  error
			says  string
		}{
			{"an unknown queue", []plan.Task{w.newTask(plan.Queue{ID: plan.QueueID{ID: plan.NewID(time.Now())}}, "lost")}, plan.ErrNotFound, "lost"},
			{"an unknown parent", []plan.Task{w.newTask(q, "child", plan.TaskID{ID: plan.NewID(time.Now())})}, plan.ErrNotFound, "child"},
			{"a parent of another plan", []plan.Task{w.newTask(q, "child", a, foreign)}, plan.ErrNotFound, "which is not of its plan"},
			{"a parent of no plan", []plan.Task{w.newTask(q, "child", alone.ID)}, plan.ErrNotFound, "which is not of its plan"},
			{"an item as a parent", []plan.Task{w.newTask(q, "child", item)}, plan.ErrNotFound, "which is an item: let it need the foreach task"},
			{"a parent that comes later", []plan.Task{w.newTask(q, "child", later.ID), later}, plan.ErrNotFound, "child"},
			{"a task that needs itself", []plan.Task{self}, plan.ErrNotFound, "self"},
			{"a name that the plan has", []plan.Task{w.newTask(q, "a")}, plan.ErrExists, "a"},
			{"a name twice", []plan.Task{w.newTask(q, "twice"), w.newTask(q, "twice")}, plan.ErrExists, "twice"},
		} {
			err := w.s.AddTasks(w.ctx, p.ID, append([]plan.Task{w.newTask(q, "fine")}, c.tasks...))
			w.is(err, c.want)
			if err != nil && !strings.Contains(err.Error(), c.says) {
				w.Errorf("%s: the error is %q, which does not name %q", c.name, err, c.says)
			}
			if got := w.plan(p.ID).Counts.Stored(); got != 3 {
				w.Fatalf("%s: the plan has %d tasks, want 3", c.name, got)
			}
		}
		copies := w.newTask(q, "copies")
		copies.Foreach = &plan.Foreach{List: json.RawMessage("[1]")}
		w.refused(w.s.AddTasks(w.ctx, plan.PlanID{}, []plan.Task{copies}), `task "copies" is of no plan and has a foreach: submit it in a plan`)
		w.is(w.s.AddTasks(w.ctx, plan.PlanID{}, []plan.Task{w.newTask(q, "child", a)}), plan.ErrNotFound)
		w.equal("tasks of no plan", len(w.all(store.TaskQuery{NoPlan: true})), 1)
	}},
	{"any number of tasks may be added at once", func(w *world) {
		q := w.queue("exec", 0)
		p := must(w.s.CreatePlan(w.ctx, plan.Plan{Name: "nightly"}))(w)
		tasks := []plan.Task{w.newTask(q, "root")}
		for i := range 2500 {
			tasks = append(tasks, w.newTask(q, fmt.Sprint("t", i), tasks[i/2].ID))
		}
		w.add(p.ID, tasks...)
		w.equal("tasks", w.plan(p.ID).Counts.Held, 2501)
	}},
	{"a late task whose parents have finished is released at once", func(w *world) {
		p := w.submit(task("a"), task("b"), task("slow"))
		n := w.node("n1")
		c := n.take("a", "b", "slow")
		n.end(succeed(c[0], `"of a"`), fail(c[1]))
		q := w.queue("exec", 0)
		a, b, slow := w.named(p, "a").ID, w.named(p, "b").ID, w.named(p, "slow").ID
		fine := w.newTask(q, "fine", a)
		w.add(p.ID, fine, w.newTask(q, "bad", b), w.newTask(q, "below", fine.ID), w.newTask(q, "waits", a, slow), w.newTask(q, "root"))
		n.end() // what it skipped may itself have been left to release
		w.want(p, "fine queued", "bad skipped", "below held", "waits held", "root queued")
		w.equal("edits", w.plan(p.ID).Edits > 0, true)
		n.end(ok(c[2]))
		n.run(func(c protocol.ClaimedTask) protocol.Ending {
			if c.Name == "fine" {
				w.equalJSON("params", c.Params, `{"needs":{"a":"of a"},"args":["of a"]}`)
			}
			return ok(c)
		})
		w.want(p, "fine succeeded", "below succeeded", "waits succeeded", "root succeeded")
		w.wantPlan(p, plan.PlanFailed)
	}},
	{"a plan that has ended, or is closed, takes no tasks", func(w *world) {
		q := w.queue("exec", 0)
		p := w.submit(task("a"))
		n := w.node("n1")
		n.run(ok)
		w.is(w.s.AddTasks(w.ctx, p.ID, []plan.Task{w.newTask(q, "late")}), plan.ErrPlanEnded)
		closed := w.submit(task("a"))
		c := n.one()
		w.no(w.s.CancelPlan(w.ctx, closed.ID, false))
		w.is(w.s.AddTasks(w.ctx, closed.ID, []plan.Task{w.newTask(q, "late")}), plan.ErrPlanEnded)
		n.end(protocol.Ending{Claim: c.Claim, Status: plan.Terminated, Reason: plan.ReasonCancelled})
		n.sweep()
		w.equal("tasks", w.plan(p.ID).Counts.Total()+w.plan(closed.ID).Counts.Total(), 2)
	}},
	{"a task of no plan runs when its parents have finished", func(w *world) {
		q := w.queue("exec", 0)
		a, first := w.newTask(q, "a"), w.newTask(q, "first")
		second := w.newTask(q, "second", first.ID, a.ID)
		unnamed := w.newTask(q, "", second.ID)
		w.add(plan.PlanID{}, a, first, second, unnamed)
		n := w.node("n1")
		c := n.take("a", "first")
		n.end(succeed(c[0], "1"))
		w.equal("second", w.task(second.ID).Status, plan.Held)
		n.end(succeed(c[1], "2"))
		s := n.one()
		w.equalJSON("params", s.Params, `{"needs":{"first":2,"a":1},"args":[2,1]}`)
		w.equal("plan", []any{s.Plan.IsZero(), s.PlanName}, []any{true, ""})
		n.end(ok(s))
		u := n.one()
		n.end(ok(u))
		after := w.newTask(q, "after", unnamed.ID)
		w.add(plan.PlanID{}, after)
		w.equalJSON("params", n.one().Params, fmt.Sprintf(`{"needs":{%q:null},"args":[null]}`, unnamed.ID))
	}},
	{"tasks of no plan may have the same name", func(w *world) {
		q := w.queue("exec", 0)
		w.add(plan.PlanID{}, w.newTask(q, "same"), w.newTask(q, "same"))
		w.equal("tasks", len(w.all(store.TaskQuery{NoPlan: true, Name: "same"})), 2)
	}},
	{"a task is held until its instant", func(w *world) {
		p := w.submit(task("a"))
		t := w.newTask(w.queue("exec", 0), "later")
		t.NotBefore = w.clock.Now().Add(time.Hour)
		child := w.newTask(w.queue("exec", 0), "child", w.named(p, "a").ID)
		child.NotBefore = t.NotBefore
		w.add(p.ID, t, child)
		n := w.node("n1")
		w.equal("ran", n.run(ok), "[a]")
		n.sweep()
		w.want(p, "later held", "child held")
		w.pass(time.Hour + time.Minute)
		n.sweep()
		ran := n.run(ok)
		w.equal("ran", len(ran), 2)
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"an instant that is over before the parents finish holds nothing", func(w *world) {
		p := w.submit(task("a"))
		n := w.node("n1")
		c := n.one()
		child := w.newTask(w.queue("exec", 0), "child", c.Task)
		child.NotBefore = w.clock.Now().Add(time.Minute)
		w.add(p.ID, child)
		w.pass(time.Hour)
		n.sweep()
		w.want(p, "child held")
		n.end(ok(c))
		n.sweep()
		w.want(p, "child queued")
	}},
	{"an instant that was over before the parents finished is forgotten once they have", func(w *world) {
		p := w.submit(task("a"), task("b"))
		n := w.node("n1")
		c := n.take("a", "b")
		q := w.queue("exec", 0)
		first, second, third := w.newTask(q, "first", c[0].Task), w.newTask(q, "second", c[1].Task), w.newTask(q, "third")
		first.NotBefore, second.NotBefore, third.NotBefore = w.clock.Now().Add(time.Minute), w.clock.Now().Add(time.Second), w.clock.Now().Add(time.Hour)
		w.add(p.ID, first, second, third)
		w.pass(2 * time.Minute)
		n.end(ok(c[0]))
		running := n.one()
		w.equal("claimed", running.Name, "first")
		n.sweep()
		w.want(p, "first running", "second held", "third held")
		n.end(ok(running), ok(c[1]))
		w.want(p, "second queued", "third held")
		w.pass(time.Hour)
		n.sweep()
		w.equal("ran", len(n.run(ok)), 2)
		w.wantPlan(p, plan.PlanSucceeded)
	}},
}
