package storetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

var ruleCases = []testCase{
	{"every rule decides for every pair of parents as its name says", testRules},
	{"a rule that is settled skips its task before the other parents have finished", func(w *world) {
		tasks := []plan.TaskSpec{task("good"), task("bad"), task("slow")}
		for _, when := range rules.Whens() {
			tasks = append(tasks,
				plan.TaskSpec{Name: "good-" + string(when), When: when, Needs: []string{"good", "slow"}},
				plan.TaskSpec{Name: "bad-" + string(when), When: when, Needs: []string{"bad", "slow"}})
		}
		p := w.submit(tasks...)
		n := w.node("n1")
		c := n.take("good", "bad", "slow")
		n.end(ok(c[0]), fail(c[1]))
		w.want(p,
			"good-all_succeeded held", "bad-all_succeeded skipped", "good-all_done held", "bad-all_done held",
			"good-all_failed skipped", "bad-all_failed held", "good-all_skipped skipped", "bad-all_skipped skipped",
			"good-any_failed held", "bad-any_failed held", "good-any_succeeded held", "bad-any_succeeded held",
			"good-any_skipped held", "bad-any_skipped held", "good-none_failed held", "bad-none_failed skipped",
			"good-none_skipped held", "bad-none_skipped held",
			"good-none_failed_any_succeeded held", "bad-none_failed_any_succeeded skipped")
		n.end(ok(c[2]))
		n.run(ok)
		w.wantPlan(p, plan.PlanFailed)
	}},
	{"a failure with continue-on-error counts as success, and its output is null", func(w *world) {
		a := task("a")
		a.ContinueOnError = true
		p := w.submit(a, task("b", "a"))
		n := w.node("n1")
		c := n.one()
		e := fail(c)
		n.end(e)
		b := n.one()
		w.equalJSON("params", b.Params, `{"needs":{"a":null},"args":[null]}`)
		n.end(ok(b))
		w.want(p, "a failed", "b succeeded")
		w.wantPlan(p, plan.PlanSucceeded)
		w.equal("counts", w.plan(p.ID).Counts, plan.Counts{Succeeded: 1, Allowed: 1})
	}},
	{"a task is told how its parents ended", func(w *world) {
		allowed, report := task("allowed"), task("report", "skipped", "bad", "good", "allowed", "stopped", "copy")
		allowed.ContinueOnError, report.When = true, plan.AllDone
		p := w.submit(task("good"), task("bad"), task("skipped", "bad"), allowed, task("stopped"), each("copy", list(1, 2)), report)
		n := w.node("n1")
		n.end()
		claimed := n.claim(9)
		w.no(w.s.CancelTask(w.ctx, w.named(p, "stopped").ID))
		for _, c := range claimed {
			switch c.Name {
			case "bad", "allowed", "copy[1]":
				n.end(fail(c))
			case "stopped":
				n.end(protocol.Ending{Claim: c.Claim, Status: plan.Terminated, Reason: plan.ReasonCancelled})
			default:
				n.end(ok(c))
			}
		}
		n.sweep()
		w.equal("parents", must(w.s.Parents(w.ctx, n.one().Task))(w), []plan.Parent{
			{Name: "skipped", State: "skipped"}, {Name: "bad", State: "failed"}, {Name: "good", State: "succeeded"},
			{Name: "allowed", State: "failed"}, {Name: "stopped", State: "terminated"}, {Name: "copy", State: "failed"},
		})
		w.equal("parents of one without", len(must(w.s.Parents(w.ctx, w.named(p, "good").ID))(w)), 0)
		_, err := w.s.Parents(w.ctx, plan.TaskID{ID: plan.NewID(time.Now())})
		w.is(err, plan.ErrNotFound)
	}},
	{"more parents than a document holds are told of in their order", func(w *world) {
		const many = 600
		tasks := make([]plan.TaskSpec, many, many+1)
		report := plan.TaskSpec{Name: "report", When: plan.AllDone}
		for i := range tasks {
			tasks[i].Name = fmt.Sprint("t", i)
			report.Needs = append(report.Needs, tasks[i].Name)
		}
		w.submit(append(tasks, report)...)
		n := w.node("n1")
		for _, c := range n.claim(many) {
			if c.Name == "t599" {
				n.end(fail(c))
			} else {
				n.end(ok(c))
			}
		}
		n.sweep()
		parents := must(w.s.Parents(w.ctx, n.one().Task))(w)
		w.equal("parents", len(parents), many)
		w.equal("last", parents[599], plan.Parent{Name: "t599", State: "failed"})
		w.equal("first", parents[0], plan.Parent{Name: "t0", State: "succeeded"})
	}},
	{"a long chain is skipped to its end, whatever the budget", func(w *world) {
		tasks := []plan.TaskSpec{task("t0")}
		for i := 1; i < 300; i++ {
			tasks = append(tasks, task(fmt.Sprint("t", i), fmt.Sprint("t", i-1)))
		}
		p := w.submit(tasks...)
		n := w.node("n1")
		did := n.turn(protocol.Turn{Ended: []protocol.Ending{fail(n.one())}, Budget: 10})
		turns := 1
		for ; did.More; turns++ {
			did = n.turn(protocol.Turn{Budget: 10})
		}
		if turns < 20 {
			w.Errorf("300 tasks were skipped in %d turns of 10", turns)
		}
		w.wantPlan(p, plan.PlanFailed)
		w.equal("skipped", w.plan(p.ID).Counts.Skipped, 299)
	}},
	{"a task without parents whose rule needs none runs, and one whose rule needs some is skipped", func(w *world) {
		p := must(w.s.CreatePlan(w.ctx, plan.Plan{Name: "nightly"}))(w)
		q := w.queue("exec", 0)
		var tasks []plan.Task
		all := []string{"all_succeeded queued", "all_done queued", "all_failed queued", "all_skipped queued", "none_failed queued", "none_skipped queued"}
		for _, when := range rules.Whens() {
			if rules.NeedsParents(when) {
				if w.d.Served { // a server adds no task that can never run
					continue
				}
				all = append(all, string(when)+" skipped")
			}
			t := w.newTask(q, string(when))
			t.When = when
			tasks = append(tasks, t)
		}
		w.no(w.s.AddTasks(w.ctx, p.ID, tasks))
		w.no(w.s.Ready(w.ctx, p.ID))
		n := w.node("n1")
		n.end()
		w.want(p, all...)
	}},
	{"a fatal failure closes any plan, and one of a task with continue-on-error none", func(w *world) {
		fatal := func(c protocol.ClaimedTask) protocol.Ending {
			e := fail(c)
			e.Reason = plan.ReasonFatal
			return e
		}
		lenient := task("lenient")
		lenient.ContinueOnError = true
		p := w.submitSpec(&plan.Spec{Name: "nightly", Tasks: []plan.TaskSpec{lenient, task("bad", "lenient"), task("slow", "lenient"), task("child", "slow")}})
		n := w.node("n1")
		n.end(fatal(n.claim(1)[0]))
		c := n.claim(2)
		w.equal("closing after the first", w.plan(p.ID).Closing, plan.Open)
		by := func(name string) protocol.ClaimedTask {
			return c[slices.IndexFunc(c, func(c protocol.ClaimedTask) bool { return c.Name == name })]
		}
		n.end(fatal(by("bad")))
		n.sweep()
		w.equal("closing", w.plan(p.ID).Closing, plan.ClosedByFailure)
		w.want(p, "bad failed", "slow running", "child skipped")
		n.end(ok(by("slow")))
		n.sweep()
		w.wantPlan(p, plan.PlanFailed)
	}},
	{"a failure in a plan that stops on failure stops what ran and waits, skips the rest, and lets run what runs", func(w *world) {
		p := w.submitSpec(&plan.Spec{Name: "nightly", OnFailure: plan.Stop, Tasks: []plan.TaskSpec{
			task("bad"), task("slow"), task("queued"), task("child", "slow"), {Name: "anyway", Needs: []string{"bad"}, When: plan.AllDone},
			task("again"), task("flaky"),
		}})
		n := w.node("n1")
		c := n.claim(6)
		by := func(name string) protocol.ClaimedTask {
			return c[slices.IndexFunc(c, func(c protocol.ClaimedTask) bool { return c.Name == name })]
		}
		n.end(giveBack(by("queued")), later(by("again"), time.Hour))
		n.end(fail(by("bad")))
		w.equal("claimed after the failure", names(n.claim(9)), "[]")
		n.end(later(by("flaky"), time.Hour))
		n.sweep()
		w.equal("closing", w.plan(p.ID).Closing, plan.ClosedByFailure)
		w.want(p, "bad failed", "slow running", "queued terminated", "child skipped", "anyway skipped", "again terminated", "flaky terminated")
		w.wantPlan(p, plan.PlanRunning)
		told := must(w.s.Beat(w.ctx, protocol.Beat{Instance: n.id}))(w)
		w.equal("to cancel", len(told.Cancel), 0)
		n.end(ok(by("slow")))
		n.sweep()
		w.want(p, "slow succeeded", "child skipped")
		w.wantPlan(p, plan.PlanFailed)
	}},
	{"the turn whose ending stops a plan claims nothing more of it", func(w *world) {
		w.submitSpec(&plan.Spec{Name: "nightly", OnFailure: plan.Stop, Tasks: []plan.TaskSpec{task("a"), task("b"), task("c"), task("d"), task("e")}})
		n := w.node("n1")
		did := n.turn(protocol.Turn{Ended: []protocol.Ending{fail(n.claim(1)[0])}, Slots: 9, Budget: 1}) // which does not reach the others
		w.equal("claimed after the failure", names(did.Claimed), "[]")
	}},
	{"a failure with continue-on-error does not stop its plan", func(w *world) {
		a := task("a")
		a.ContinueOnError = true
		p := w.submitSpec(&plan.Spec{Name: "nightly", OnFailure: plan.Stop, Tasks: []plan.TaskSpec{a, task("b")}})
		n := w.node("n1")
		c := n.take("a", "b")
		n.end(fail(c[0]))
		w.equal("closing", w.plan(p.ID).Closing, plan.Open)
		n.end(ok(c[1]))
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"every finished status has its verdict", func(w *world) {
		for _, c := range []struct {
			status plan.Status
			reason plan.Reason
			want   plan.Lifecycle
		}{
			{plan.Succeeded, "", plan.PlanSucceeded},
			{plan.Failed, "", plan.PlanFailed},
			{7, "", plan.PlanFailed},
			{plan.Failed, plan.ReasonTimeout, plan.PlanFailed},
			{plan.Terminated, plan.ReasonTimeout, plan.PlanFailed},
			{plan.Terminated, plan.ReasonCancelled, plan.PlanFailed},
			{plan.Cancelled, plan.ReasonCancelled, plan.PlanCancelled},
			{plan.Orphaned, plan.ReasonLost, plan.PlanFailed},
		} {
			p := w.submit(task("a"))
			n := w.node("n1")
			did := n.end(protocol.Ending{Claim: n.one().Claim, Status: c.status, Reason: c.reason})
			w.wantPlan(p, c.want)
			w.equal("ended", did.Ended, []protocol.EndedPlan{{ID: p.ID, State: c.want}})
		}
	}},
}

// testRules runs a plan with a child for every rule and every pair of outcomes that its parents can have.
func testRules(w *world) {
	allowed := task("allowed")
	allowed.ContinueOnError = true
	parents := []string{"succeeded", "failed", "skipped", "cancelled", "allowed"}
	tasks := []plan.TaskSpec{task("succeeded"), task("failed"), task("skipped", "failed"), task("cancelled"), allowed}
	for _, when := range rules.Whens() {
		for i, a := range parents {
			for _, b := range parents[i:] {
				t := plan.TaskSpec{Name: strings.Join([]string{string(when), a, b}, "-"), When: when, Needs: []string{a, b}}
				if a == b {
					t.Needs = []string{a}
				}
				tasks = append(tasks, t)
			}
		}
	}
	p := w.submit(tasks...)
	w.no(w.s.CancelTask(w.ctx, w.named(p, "cancelled").ID))
	n := w.node("n1")
	n.run(func(c protocol.ClaimedTask) protocol.Ending {
		if c.Name == "failed" || c.Name == "allowed" {
			return fail(c)
		}
		return ok(c)
	})
	var want []string
	for _, t := range tasks[len(parents):] {
		state := "skipped"
		if holds(t.When, t.Needs) {
			state = "succeeded"
		}
		want = append(want, t.Name+" "+state)
	}
	w.want(p, want...)
	w.wantPlan(p, plan.PlanFailed)
}

// holds says what the name of a rule says, in other words than the domain does.
func holds(when plan.When, parents []string) bool {
	good := func(p string) bool { return p == "succeeded" || p == "allowed" }
	bad := func(p string) bool { return p == "failed" }
	skipped := func(p string) bool { return p == "skipped" }
	cancelled := func(p string) bool { return p == "cancelled" }
	some := func(is func(string) bool) bool { return slices.ContainsFunc(parents, is) }
	all := func(is func(string) bool) bool { return !some(func(p string) bool { return !is(p) }) }
	switch when {
	case plan.AllSucceeded:
		return all(good)
	case plan.AllDone:
		return true
	case plan.AllFailed:
		return all(bad)
	case plan.AllSkipped:
		return all(skipped)
	case plan.AnyFailed:
		return some(bad)
	case plan.AnySucceeded:
		return some(good)
	case plan.AnySkipped:
		return some(skipped)
	case plan.NoneFailed:
		return !some(bad) && !some(cancelled)
	case plan.NoneSkipped:
		return !some(skipped) && !some(cancelled)
	case plan.NoneFailedAnySucceeded:
		return !some(bad) && !some(cancelled) && some(good)
	}
	panic("no rule " + when)
}
