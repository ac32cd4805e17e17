package storetest

import (
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// shownCases are about fields that readers see, and that no other case looks at: one for each difference
// that random histories have found between stores.
var shownCases = []testCase{
	{"the exit status is that of the last attempt that ended, whatever the task became since", func(w *world) {
		p, n := w.submit(task("cancelled"), task("lost")), w.node("n1")
		c := n.take("cancelled", "lost")
		for i := range c {
			e := later(c[i], 10*time.Minute)
			e.Exit = &plan.Exit{Code: 2}
			n.end(e)
		}
		w.no(w.s.CancelTask(w.ctx, c[0].Task))
		w.equal("the exit of a task that was cancelled between two attempts", exitOf(w.named(p, "cancelled")), 2)
		w.pass(20 * time.Minute)
		n.sweep()
		n.take("lost")
		must(w.s.Rescue(w.ctx, n.id, -1))(w)
		w.equal("the exit of a task whose attempt was lost", exitOf(w.named(p, "lost")), -1)
	}},
	{"a task that has ended is not marked for its node to stop", func(w *world) {
		p, n := w.submit(each("copy", list(1, 2))), w.node("n1")
		items := n.take("copy[0]", "copy[1]")
		w.no(w.s.CancelTask(w.ctx, w.named(p, "copy").ID))
		w.equal("the foreach task is marked", w.named(p, "copy").Cancel, true)
		n.end(ok(items[0]), ok(items[1]))
		w.want(p, "copy succeeded")
		w.equal("it is marked after its end", w.named(p, "copy").Cancel, false)
	}},
	{"NotBefore, and params without inputs, stay until the task is queued", func(w *world) {
		p, n := w.submit(task("a"), task("b")), w.node("n1")
		t := w.newTask(w.queue("exec", 0), "late", w.named(p, "a").ID)
		t.NotBefore, t.Params = w.clock.Now().Add(10*time.Minute), json.RawMessage(`{"x":1}`)
		w.add(p.ID, t)
		claims := n.take("a", "b")
		w.pass(5 * time.Minute)
		n.sweep()
		n.end(succeed(claims[0], "7"))
		got := w.named(p, "late")
		w.equal("NotBefore of a task that waits for it is there", !got.NotBefore.IsZero(), true)
		w.equalJSON("its params", got.Params, `{"x":1}`)
		w.pass(10 * time.Minute)
		n.sweep()
		got = w.named(p, "late")
		w.equal("the task and its NotBefore", got.State()+" "+got.NotBefore.Format(time.DateOnly), "queued "+time.Time{}.Format(time.DateOnly))
		w.equalJSON("its params", got.Params, `{"x":1,"needs":{"a":7},"args":[7]}`)
	}},
	{"NotBefore stays while the task waits for its parents, however long it is over", func(w *world) {
		p, n := w.submit(task("a")), w.node("n1")
		t := w.newTask(w.queue("exec", 0), "late", w.named(p, "a").ID)
		t.NotBefore = w.clock.Now().Add(10 * time.Minute)
		w.add(p.ID, t)
		w.pass(20 * time.Minute)
		n.sweep()
		w.equal("NotBefore is there", !w.named(p, "late").NotBefore.IsZero(), true)
		n.run(ok)
		w.want(p, "late succeeded")
	}},
	{"a task that is stopped before it begins again has no node, and a claim that was not started has no start", func(w *world) {
		p, n := w.submit(task("a")), w.node("n1")
		c := n.claim(1)[0]
		n.end(giveBack(c))
		c = n.turn(protocol.Turn{Slots: 1}).Claimed[0]
		w.equal("Started of the second claim is there", !w.named(p, "a").Started.IsZero(), false)
		w.no(w.s.CancelTask(w.ctx, c.Task))
		n.end(giveBack(c))
		got := w.named(p, "a")
		w.equal("the task, its node and its instance", []any{got.State(), got.Node, got.Instance.IsZero()}, []any{"terminated", "", true})
	}},
	{"to cancel a marked task or a cancelled plan, and to adopt an adopted plan, changes nothing", func(w *world) {
		p, n := w.submit(task("a")), w.node("n1")
		c := n.claim(1)[0]
		do := func() {
			w.no(w.s.CancelTask(w.ctx, c.Task))
			w.no(w.s.Adopt(w.ctx, p.ID))
			w.no(w.s.CancelPlan(w.ctx, p.ID, false))
		}
		do()
		at := must(w.s.Latest(w.ctx))(w)
		do()
		changes, _, err := w.s.Changes(w.ctx, at, 10)
		w.no(err)
		w.equal("changes", len(changes), 0)
	}},
	{"what needs a task that was cancelled before its plan was ready is skipped when it is", func(w *world) {
		p := w.submitUnready(&plan.Spec{Name: "nightly", Tasks: []plan.TaskSpec{task("a"), task("b"), task("c", "a")}})
		n := w.node("n1")
		w.no(w.s.CancelTask(w.ctx, w.named(p, "a").ID))
		n.sweep()
		w.want(p, "a cancelled", "c held")
		w.no(w.s.Ready(w.ctx, p.ID))
		n.sweep()
		w.want(p, "b queued", "c skipped")
	}},
	{"a turn answers with higher ranks first, then older tasks, whatever the order of the queue is", func(w *world) {
		q := w.queue("exec", 0)
		q.Sort = plan.SortLIFO
		w.no(w.s.SetQueue(w.ctx, q))
		w.submit(task("a"), task("b"), plan.TaskSpec{Name: "c", Estimate: time.Hour})
		w.equal("claimed", names(w.node("n1").claim(3)), "[c a b]")
	}},
	{"a foreach task that has no items is expanded, and was made by its node", func(w *world) {
		p, n := w.submit(each("files", plan.Foreach{Glob: "*"})), w.node("n1")
		n.end(expand(n.one()))
		got := w.named(p, "files")
		w.equal("the task", []any{got.State(), got.Expanded, got.Items, got.Node}, []any{"succeeded", true, 0, "n1"})
		w.equal("the counts", w.plan(p.ID).Counts.Succeeded, 1)
		w.no(w.tryRetry(p.ID, rules.Ask{Tasks: []plan.TaskID{got.ID}, Downstream: true}))
		w.equal("it is expanded after a retry", w.named(p, "files").Expanded, false)
	}},
	{"the first failure of tasks that are released together stops the plan for the others", func(w *world) {
		spec := plan.Spec{Name: "nightly", OnFailure: plan.Stop, Tasks: []plan.TaskSpec{
			task("a"), task("b", "a"), each("c", plan.Foreach{Value: "needs.a"}, "a"), each("d", plan.Foreach{Value: "needs.a"}, "a"),
			{Name: "e", Needs: []string{"a"}, When: plan.AllFailed},
		}}
		p, n := w.submitSpec(&spec), w.node("n1")
		n.end(succeed(n.one(), `"no list"`))
		n.sweep()
		w.want(p, "b skipped", "c failed", "d skipped", "e skipped")
		for _, name := range []string{"b", "d", "e"} {
			w.equal("why "+name+" did not run", w.named(p, name).Detail, "the plan was stopped by a failure")
		}
	}},
	{"a task that a failure of the same turn skips has no inputs in its params", func(w *world) {
		ending := func(name string, fails bool) func(*node) {
			return func(n *node) {
				var ended []protocol.Ending
				for _, c := range n.take("a", "bad") {
					if e := succeed(c, `"no list"`); c.Name == "bad" && fails {
						ended = append(ended, fail(c))
					} else {
						ended = append(ended, e)
					}
				}
				if name == "bad" {
					slices.Reverse(ended)
				}
				n.end(ended...)
			}
		}
		for name, end := range map[string]func(*node){
			"a task that needs one that ended before the failure": ending("a", true),
			"a task that needs one that ended after the failure":  ending("bad", true),
			"a task released together with one that fails":        ending("a", false),
		} {
			spec := plan.Spec{Name: "nightly", OnFailure: plan.Stop, Tasks: []plan.TaskSpec{
				task("a"), task("bad"), each("b", plan.Foreach{Value: "needs.a"}, "a"), task("c", "a"), task("d", "bad"),
				{Name: "e", Needs: []string{"a", "bad"}, When: plan.AllDone}, {Name: "f", Needs: []string{"bad"}, When: plan.AnyFailed},
			}}
			p, n := w.submitSpec(&spec), w.node("n1")
			end(n)
			n.sweep()
			for _, of := range []string{"c", "d", "e", "f"} {
				got := w.named(p, of)
				w.equal(name+": "+of, got.State(), "skipped")
				w.equalJSON(name+": params of "+of, got.Params, `{}`)
			}
		}
	}},
	{"a malformed ending is refused whoever says it", func(w *world) {
		_, err := w.s.Turn(w.ctx, protocol.Turn{Instance: plan.InstanceID{ID: w.newID()}, Ended: []protocol.Ending{{Status: plan.Running}}})
		if err == nil || errors.Is(err, plan.ErrInstanceGone) {
			w.Errorf("a turn of nobody with an ending that runs is answered with %v", err)
		}
	}},
	{"Ready looks at a task that was added after its parent was cancelled", func(w *world) {
		p, n := must(w.s.CreatePlan(w.ctx, plan.Plan{Name: "nightly"}))(w), w.node("n1")
		q := w.queue("exec", 0)
		a, b := w.newTask(q, "a"), w.newTask(q, "b")
		w.add(p.ID, a, b)
		w.no(w.s.CancelTask(w.ctx, a.ID))
		late, waits := w.newTask(q, "late", a.ID), w.newTask(q, "waits", a.ID, b.ID)
		late.When, waits.When = plan.AllDone, plan.AllDone
		w.add(p.ID, late, waits)
		w.no(w.s.Ready(w.ctx, p.ID))
		n.run(ok)
		n.sweep()
		w.want(p, "a cancelled", "b succeeded", "late succeeded", "waits succeeded")
	}},
	{"what was not given is shown in one way", func(w *world) {
		t := w.newTask(w.queue("exec", 0), "plain")
		w.add(plan.PlanID{}, t)
		w.equalJSON("the params of a task without any", w.task(t.ID).Params, "{}")
		q := w.queue("wide", 7)
		q.Unlimited = true
		w.no(w.s.SetQueue(w.ctx, q))
		w.equal("the threads of an unlimited queue", w.queue("wide", 0).Threads, 0)
		w.equal("what is queued, of a queue that is there", must(w.s.EnsureQueue(w.ctx, plan.Queue{Name: "exec", Plugin: "exec"}))(w).Queued, 0)
		p := must(w.s.CreatePlan(w.ctx, plan.Plan{ID: plan.PlanID{ID: w.newID()}, Name: "nightly", Key: "k"}))(w)
		w.equal("keys", []string{p.Key, w.plan(p.ID).Key, must(w.s.Plans(w.ctx, store.PlanQuery{}))(w)[0].Key}, []string{"", "", ""})
	}},
}

// exitOf is the exit status that is shown of a task; -1: none.
func exitOf(t plan.Task) int {
	if t.Exit == nil {
		return -1
	}
	return t.Exit.Code
}
