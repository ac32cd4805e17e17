package storetest

import (
	"fmt"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// last is a task of finally.
func last(name string, when plan.When, needs ...string) plan.TaskSpec {
	return plan.TaskSpec{Name: name, Finally: true, When: when, Needs: needs}
}

// release is a plan that switches something over, with a rollback and a notice at its end.
func release(tasks ...plan.TaskSpec) *plan.Spec {
	return &plan.Spec{Name: "release", Tasks: append(tasks, last("rollback", plan.AnyFailed), last("tell", "", "rollback"))}
}

// finallyCases are about tasks of finally.
var finallyCases = []testCase{
	{"tasks of finally run when all others have ended, and then the plan ends", func(w *world) {
		p := w.submitSpec(release(task("copy"), task("switch", "copy")))
		n := w.node("n1")
		w.equal("it has some", w.plan(p.ID).Finally, true)
		w.equal("runs", n.run(ok), []string{"copy", "switch", "tell"})
		w.want(p, "rollback skipped", "tell succeeded")
		w.wantPlan(p, plan.PlanSucceeded)
		w.equal("ending", w.plan(p.ID).Ending, plan.PlanSucceeded)
	}},
	{"tasks of finally are held as long as any other task is unfinished", func(w *world) {
		p := w.submitSpec(release(task("a"), task("b")))
		n := w.node("n1")
		c := n.take("a", "b")
		n.end(fail(c[0]))
		n.sweep()
		w.want(p, "b running", "rollback held", "tell held")
		w.equal("ending", w.plan(p.ID).Ending, plan.PlanRunning)
		n.end(later(c[1], time.Hour))
		n.sweep()
		w.want(p, "b held", "rollback held", "tell held")
		w.pass(2 * time.Hour)
		n.sweep()
		n.end(ok(n.one()))
		n.sweep()
		w.want(p, "rollback queued", "tell held")
		w.equal("plan", []any{w.plan(p.ID).State, w.plan(p.ID).Ending}, []any{plan.PlanRunning, plan.PlanFailed})
		w.equal("runs", n.run(ok), []string{"rollback", "tell"})
		w.wantPlan(p, plan.PlanFailed)
	}},
	{"the when of a task of finally asks how the others ended together", func(w *world) {
		for _, c := range []struct {
			end  func(n *node, p plan.Plan)
			ran  []string
			left []string
			plan plan.Lifecycle
		}{
			{func(n *node, _ plan.Plan) { n.end(ok(n.one())) }, []string{"done", "well"}, []string{"failed skipped", "failed2 skipped"}, plan.PlanSucceeded},
			{func(n *node, _ plan.Plan) { n.end(fail(n.one())) }, []string{"done", "failed", "failed2"}, []string{"well skipped"}, plan.PlanFailed},
			{func(n *node, p plan.Plan) { w.no(w.s.CancelPlan(w.ctx, p.ID, false)) }, []string{"done", "failed", "failed2"}, []string{"well skipped"}, plan.PlanCancelled},
			{func(n *node, p plan.Plan) { w.no(w.s.CancelTask(w.ctx, w.named(p, "a").ID)) }, []string{"done", "failed", "failed2"}, []string{"well skipped"}, plan.PlanCancelled},
		} {
			p := w.submit(task("a"), last("done", ""), last("well", plan.AllSucceeded), last("failed", plan.AnyFailed), last("failed2", plan.AllFailed))
			n := w.node("n1")
			c.end(n, p)
			n.sweep()
			w.equal("runs", n.run(ok), c.ran)
			w.want(p, c.left...)
			w.wantPlan(p, c.plan)
		}
	}},
	{"needs among tasks of finally order them, whatever becomes of a parent", func(w *world) {
		p := w.submit(task("a"), last("first", ""), last("never", plan.AnyFailed, "first"), last("second", "", "never", "first"), last("third", plan.AllSucceeded, "first"))
		n := w.node("n1")
		n.end(ok(n.one()))
		n.sweep()
		w.want(p, "first queued", "never held", "second held", "third held")
		n.end(fail(n.one()))
		n.sweep()
		w.want(p, "never skipped", "second queued", "third queued")
		w.equal("runs", n.run(ok), []string{"second", "third"})
		w.wantPlan(p, plan.PlanFailed)
	}},
	{"tasks of finally get the outputs of those that they need", func(w *world) {
		p := w.submit(task("a"), last("first", ""), last("second", "", "first"))
		n := w.node("n1")
		n.end(ok(n.one()))
		n.sweep()
		n.end(succeed(n.one(), `{"x":1}`))
		n.sweep()
		w.equalJSON("params", n.one().Params, `{"needs":{"first":{"x":1}},"args":[{"x":1}]}`)
		w.want(p, "second running")
	}},
	{"a plan that had succeeded fails with a task of finally, and no other end is hidden", func(w *world) {
		for _, c := range []struct {
			main, last func(protocol.ClaimedTask) protocol.Ending
			allow      bool
			want       plan.Lifecycle
		}{
			{ok, fail, false, plan.PlanFailed}, {ok, fail, true, plan.PlanSucceeded}, {fail, ok, false, plan.PlanFailed}, {ok, skip, false, plan.PlanSucceeded},
		} {
			t := last("tell", "")
			t.ContinueOnError = c.allow
			p := w.submit(task("a"), t)
			n := w.node("n1")
			n.end(c.main(n.one()))
			n.sweep()
			n.end(c.last(n.one()))
			n.sweep()
			w.wantPlan(p, c.want)
		}
	}},
	{"a failure does not stop the tasks of finally, in a plan that stops on failure neither", func(w *world) {
		spec := release(task("a"), task("b", "a"), task("slow"))
		spec.OnFailure = plan.Stop
		spec.Tasks = append(spec.Tasks, last("other", ""), last("after", "", "other"))
		p := w.submitSpec(spec)
		n := w.node("n1")
		c := n.take("a", "slow")
		n.end(fail(c[0]))
		n.sweep()
		w.want(p, "b skipped", "rollback held", "tell held", "other held")
		w.equal("closing", w.plan(p.ID).Closing, plan.ClosedByFailure)
		n.end(ok(c[1]))
		n.sweep()
		now := w.plan(p.ID)
		w.equal("plan", []any{now.Closing, now.Ending, now.Stopped}, []any{plan.Open, plan.PlanFailed, plan.ClosedByFailure})
		fatal := func(c protocol.ClaimedTask) protocol.Ending {
			e := fail(c)
			e.Reason = plan.ReasonFatal
			return e
		}
		w.equal("runs", len(n.run(fatal)), 4)
		w.want(p, "rollback failed", "tell failed", "other failed", "after failed")
		w.wantPlan(p, plan.PlanFailed)
	}},
	{"a cancellation leaves the tasks of finally to run, and a second one stops them", func(w *world) {
		p := w.submitSpec(release(task("a"), task("b", "a")))
		n := w.node("n1")
		c := n.one()
		w.no(w.s.CancelPlan(w.ctx, p.ID, false))
		n.sweep()
		w.want(p, "a running", "b cancelled", "rollback held", "tell held")
		n.end(protocol.Ending{Claim: c.Claim, Status: plan.Terminated, Reason: plan.ReasonCancelled})
		n.sweep()
		w.want(p, "rollback queued")
		now := w.plan(p.ID)
		w.equal("plan", []any{now.State, now.Ending, now.Stopped, now.Closing, now.InFinally()}, []any{plan.PlanRunning, plan.PlanCancelled, plan.ClosedByPerson, plan.Open, true})
		w.no(w.s.CancelPlan(w.ctx, p.ID, false)) // it comes late
		n.sweep()
		w.want(p, "rollback queued", "tell held")
		c = n.one()
		w.no(w.s.CancelPlan(w.ctx, p.ID, true))
		n.sweep()
		w.want(p, "rollback running", "tell cancelled")
		w.equal("to stop", len(must(w.s.Beat(w.ctx, protocol.Beat{Instance: n.id}))(w).Cancel), 1)
		n.end(protocol.Ending{Claim: c.Claim, Status: plan.Terminated, Reason: plan.ReasonCancelled})
		n.sweep()
		w.wantPlan(p, plan.PlanCancelled)
		w.is(w.s.CancelPlan(w.ctx, p.ID, true), plan.ErrPlanEnded)
	}},
	{"a person who stops the tasks of finally of a plan that had succeeded cancels the plan", func(w *world) {
		p := w.submit(task("a"), last("tell", ""), last("tidy", ""))
		n := w.node("n1")
		n.end(ok(n.one()))
		n.sweep()
		w.no(w.s.CancelTask(w.ctx, w.named(p, "tell").ID))
		w.want(p, "tell cancelled", "tidy queued")
		n.run(ok)
		w.wantPlan(p, plan.PlanCancelled)
		w.equal("ending", w.plan(p.ID).Ending, plan.PlanSucceeded)
		w.equal("nothing stopped the others", w.plan(p.ID).Stopped, plan.Open)
	}},
	{"a task of finally is not cancelled before the others have ended", func(w *world) {
		p := w.submitSpec(release(task("a")))
		w.refused(w.s.CancelTask(w.ctx, w.named(p, "tell").ID), "task tell is one of finally, and waits for all others of its plan")
		w.want(p, "tell held")
	}},
	{"a submission that is cancelled ends its tasks of finally with the others", func(w *world) {
		p := w.submitUnready(release(task("a")))
		w.no(w.s.CancelPlan(w.ctx, p.ID, false))
		w.node("n1").sweep()
		w.want(p, "a cancelled", "rollback cancelled", "tell cancelled")
		w.wantPlan(p, plan.PlanCancelled)
	}},
	{"each retry asks all tasks of finally again", func(w *world) {
		p := w.submitSpec(release(task("copy"), task("switch", "copy")))
		n := w.node("n1")
		w.equal("runs", n.run(failing("copy")), []string{"copy", "rollback", "tell"})
		w.retry(p, false)
		w.want(p, "copy queued", "switch held", "rollback held", "tell held")
		now := w.plan(p.ID)
		w.equal("ending", now.Ending, plan.PlanRunning)
		w.equal("runs again", n.run(failing("switch")), []string{"copy", "switch", "rollback", "tell"})
		w.wantPlan(p, plan.PlanFailed)
		w.retry(p, false)
		w.equal("runs at last", n.run(ok), []string{"switch", "tell"})
		w.want(p, "rollback skipped", "tell succeeded")
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"a plan of which only a task of finally failed is retried with all of them", func(w *world) {
		p := w.submitSpec(release(task("copy")))
		n := w.node("n1")
		w.equal("runs", n.run(failing("tell")), []string{"copy", "tell"})
		w.want(p, "rollback skipped", "tell failed")
		w.wantPlan(p, plan.PlanFailed)
		w.retry(p, false)
		n.sweep()
		w.equal("ending", w.plan(p.ID).Ending, plan.PlanSucceeded)
		w.equal("runs again", n.run(ok), []string{"tell"})
		w.want(p, "copy succeeded", "rollback skipped")
		w.wantPlan(p, plan.PlanSucceeded)
		w.retry(p, true, "tell")
		w.equal("runs by name", n.run(ok), []string{"tell"})
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"while tasks of finally run, a retry and an addition are refused", func(w *world) {
		p := w.submitSpec(release(task("a")))
		n := w.node("n1")
		n.end(fail(n.one()))
		n.sweep()
		w.refused(w.tryRetry(p.ID, rules.Ask{}), "runs its tasks of finally: wait until they have ended")
		w.refused(w.s.AddTasks(w.ctx, p.ID, []plan.Task{w.newTask(w.queue("exec", 0), "late")}), "runs its tasks of finally, and takes no others")
		w.equal("runs", n.run(ok), []string{"rollback", "tell"})
	}},
	{"tasks of finally and others do not need each other, and come with their submission", func(w *world) {
		p := w.submitSpec(release(task("a")))
		q := w.queue("exec", 0)
		w.is(w.s.AddTasks(w.ctx, p.ID, []plan.Task{w.newTask(q, "late", w.named(p, "tell").ID)}), plan.ErrNotFound)
		t := w.newTask(q, "late")
		t.Finally, t.When = true, plan.AllDone
		w.refused(w.s.AddTasks(w.ctx, p.ID, []plan.Task{t}), `task "late" is one of finally, which is added as its plan is submitted`)
		w.refused(w.s.AddTasks(w.ctx, plan.PlanID{}, []plan.Task{t}), `task "late" is one of finally, which is added as its plan is submitted`)
		u := w.submitUnready(release(task("a")))
		t.Needs = []plan.TaskID{w.named(u, "a").ID}
		w.is(w.s.AddTasks(w.ctx, u.ID, []plan.Task{t}), plan.ErrNotFound)
		first := w.newTask(q, "first")
		first.Finally, first.When = true, plan.AllDone
		w.is(w.s.AddTasks(w.ctx, u.ID, []plan.Task{first, w.newTask(q, "second", first.ID)}), plan.ErrNotFound)
	}},
	{"a task of finally that dies with its node runs again", func(w *world) {
		p := w.submitSpec(release(task("a")))
		n := w.node("n1")
		n.end(fail(n.one()))
		n.sweep()
		w.equal("claimed", n.one().Name, "rollback")
		must(w.s.Rescue(w.ctx, n.id, -1))(w)
		w.want(p, "rollback queued", "tell held")
		w.equal("runs", w.node("n2").run(ok), []string{"rollback", "tell"})
		w.wantPlan(p, plan.PlanFailed)
	}},
	{"no task of finally is among the clean-ups that a stop leaves out", func(w *world) {
		p := w.submitSpec(release(task("a"), plan.TaskSpec{Name: "undo", Needs: []string{"a"}, When: plan.AnyFailed}))
		n := w.node("n1")
		n.one()
		unrun, running := rules.Unrun(w.all(store.TaskQuery{Plan: p.ID, Needs: true, Brief: true}), plan.ClosedByPerson)
		w.equal("left out", taskNames(unrun), "[undo]")
		w.equal("running", taskNames(running), "[a]")
	}},
	{"a foreach task of finally has items, which run whatever became of others, and each retry makes them again", func(w *world) {
		undo, told := last("undo", plan.AnyFailed), last("told", "")
		undo.Foreach, told.Foreach = &plan.Foreach{List: ordinals(3)}, &plan.Foreach{Each: []string{"undo"}}
		tell := last("tell", "", "told")
		tell.Foreach = &plan.Foreach{Value: "needs.told"}
		p := w.submit(task("a"), undo, told, tell)
		n := w.node("n1")
		c := n.one()
		w.want(p, "undo held", "told held", "tell held")
		w.equal("items before the others have ended", w.named(p, "undo").Items, 0)
		n.end(fail(c))
		all := []string{"undo[0]", "undo[1]", "undo[2]", "told[0]", "told[1]", "told[2]", "tell[0]", "tell[1]", "tell[2]"}
		w.equal("runs", n.run(failing("undo[1]")), all)
		w.want(p, "undo failed", "told succeeded", "tell succeeded")
		w.wantPlan(p, plan.PlanFailed)
		w.retry(p, false)
		w.want(p, "undo held", "told held", "tell held")
		w.equal("items while the others run", []int{w.named(p, "undo").Items, w.named(p, "told").Items}, []int{0, 0})
		w.equal("runs again", n.run(failing("a")), append([]string{"a"}, all...))
		w.want(p, "undo succeeded", "told succeeded", "tell succeeded")
		w.wantPlan(p, plan.PlanFailed)
		w.retry(p, false)
		w.equal("runs at last", n.run(ok), []string{"a"})
		w.want(p, "undo skipped", "told succeeded", "tell succeeded") // without items
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"a second cancellation stops the items of a foreach task of finally", func(w *world) {
		undo := last("undo", "")
		undo.Foreach, undo.Retry = &plan.Foreach{List: ordinals(3)}, plan.Retry{Attempts: 2, Delay: time.Hour}
		p := w.submit(task("a"), undo)
		n := w.node("n1")
		n.end(ok(n.one()))
		n.sweep()
		c := n.claim(2)
		n.end(later(c[0], time.Hour))
		w.no(w.s.CancelPlan(w.ctx, p.ID, false))
		n.sweep()
		w.want(p, "undo held", "undo[0] held", "undo[1] running", "undo[2] queued")
		w.no(w.s.CancelPlan(w.ctx, p.ID, true))
		n.sweep()
		w.want(p, "undo[0] terminated", "undo[1] running", "undo[2] cancelled")
		n.end(protocol.Ending{Claim: c[1].Claim, Status: plan.Terminated, Reason: plan.ReasonCancelled})
		n.sweep()
		w.want(p, "undo terminated")
		w.wantPlan(p, plan.PlanCancelled)
	}},
	{"many tasks of finally are released by turns, each within its budget", func(w *world) {
		const many = 1200
		spec := &plan.Spec{Name: "nightly", Tasks: []plan.TaskSpec{task("a")}}
		for i := range many {
			spec.Add(last(fmt.Sprint("f", i), ""))
			spec.Add(last(fmt.Sprint("g", i), plan.AnyFailed, fmt.Sprint("f", i)))
		}
		p := w.submitSpec(spec)
		n := w.node("n1")
		n.end(ok(n.one()))
		for did := (protocol.Turned{More: true}); did.More; {
			did = n.turn(protocol.Turn{Budget: 300})
		}
		w.equal("queued", w.plan(p.ID).Counts.Queued, many)
		w.no(w.s.CancelPlan(w.ctx, p.ID, true))
		n.sweep()
		w.wantPlan(p, plan.PlanCancelled)
	}},
}
