package storetest

import (
	"slices"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// submitTimed submits a plan that may run for so long.
func (w *world) submitTimed(timeout time.Duration, tasks ...plan.TaskSpec) plan.Plan {
	w.Helper()
	s := plan.New("timed")
	s.Timeout, s.Tasks = timeout, tasks
	return w.submitSpec(s)
}

// timeoutCases are about plans that run longer than they may.
var timeoutCases = []testCase{
	{"a plan that has run longer than its timeout is closed: what runs is stopped, what waits is cancelled, and the plan has failed", func(w *world) {
		p := w.submitTimed(time.Hour, task("done"), task("runs"), task("below", "runs"), plan.TaskSpec{Name: "always", When: plan.AllDone, Needs: []string{"runs"}},
			each("copy", plan.Foreach{List: ordinals(3)}), plan.TaskSpec{Name: "later", Retry: plan.Retry{Attempts: 2}},
			plan.TaskSpec{Name: "ask", Approve: &plan.Approval{Question: "so?"}})
		n := w.node("n1")
		n.end()
		var runs protocol.ClaimedTask
		for _, c := range n.claim(7) {
			switch c.Name {
			case "done":
				n.end(ok(c))
			case "copy[2]":
				n.end(giveBack(c))
			case "later":
				n.end(later(c, 10*time.Hour))
			case "runs":
				runs = c
			case "ask":
				n.end(rules.AskApproval(&c))
			}
		}
		w.pass(50 * time.Minute)
		n.sweep()
		w.equal("closing", w.plan(p.ID).Closing, plan.Open)
		w.equal("cancels", len(n.cancels()), 0)
		w.pass(15 * time.Minute)
		n.sweep()
		w.equal("closing", w.plan(p.ID).Closing, plan.ClosedByTimeout)
		w.want(p, "done succeeded", "runs running", "below cancelled", "always cancelled", "copy[2] terminated", "later terminated", "ask cancelled")
		w.equal("details", []string{w.named(p, "below").Detail, w.named(p, "later").Detail}, []string{rules.ByTimeout, rules.ByTimeout})
		w.equal("runs is to stop", slices.Contains(n.cancels(), runs.Task), true)
		e := fail(runs)
		e.Status, e.Reason, e.Detail = plan.Terminated, plan.ReasonCancelled, rules.ByTimeout
		n.end(e)
		for _, c := range n.holding {
			n.end(ok(c))
		}
		w.wantPlan(p, plan.PlanFailed)
		w.equal("closing", w.plan(p.ID).Closing, plan.ClosedByTimeout)
		w.equal("claimed", len(n.claim(5)), 0)
	}},
	{"an attempt that goes on after the time of its plan ends with it", func(w *world) {
		p := w.submitTimed(time.Hour, plan.TaskSpec{Name: "a", Retry: plan.Retry{Attempts: 3}}, task("b"), task("c"))
		n := w.node("n1")
		all := n.claim(3)
		w.pass(65 * time.Minute)
		n.sweep()
		for _, c := range all {
			switch c.Name {
			case "a":
				n.end(later(c, time.Minute))
			case "b":
				n.end(giveBack(c))
			case "c":
				n.end(ok(c))
			}
		}
		n.sweep()
		w.want(p, "a terminated", "b terminated", "c succeeded")
		w.equal("detail", w.named(p, "a").Detail, rules.ByTimeout)
		w.wantPlan(p, plan.PlanFailed)
	}},
	{"a plan that ended in time has ended so", func(w *world) {
		p := w.submitTimed(time.Hour, task("a"))
		n := w.node("n1")
		n.run(failing())
		w.pass(2 * time.Hour)
		n.sweep()
		w.wantPlan(p, plan.PlanSucceeded)
		w.equal("closing", w.plan(p.ID).Closing, plan.Open)
	}},
	{"the time of a plan begins as it is ready, and anew with each retry", func(w *world) {
		s := plan.New("timed")
		s.Timeout, s.Tasks = time.Hour, []plan.TaskSpec{task("a"), task("b")}
		p := w.submitUnready(s)
		w.equal("timeout", w.plan(p.ID).Timeout, time.Hour)
		w.equal("has a deadline", w.plan(p.ID).Deadline.IsZero(), true)
		w.pass(50 * time.Minute)
		w.no(w.s.Ready(w.ctx, p.ID))
		began := must(w.s.Now(w.ctx))(w)
		w.equal("the deadline is an hour later", w.plan(p.ID).Deadline.Sub(began.Add(time.Hour)).Abs() < time.Minute, true)
		n := w.node("n1")
		c := n.claim(2)
		w.pass(50 * time.Minute)
		n.sweep()
		w.equal("closing", w.plan(p.ID).Closing, plan.Open)
		for _, c := range c {
			if c.Name == "a" {
				n.end(fail(c))
			}
		}
		w.retry(p, false, "a") // while b runs
		w.pass(50 * time.Minute)
		n.sweep()
		w.equal("closing after a retry", w.plan(p.ID).Closing, plan.Open)
		w.pass(15 * time.Minute)
		n.sweep()
		w.equal("closing", w.plan(p.ID).Closing, plan.ClosedByTimeout)
		for _, c := range n.holding {
			n.end(ok(c))
		}
		w.wantPlan(p, plan.PlanFailed)
		w.retry(p, false)
		w.pass(50 * time.Minute)
		n.sweep()
		w.equal("closing after the next one", w.plan(p.ID).Closing, plan.Open)
		n.run(failing())
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"of a person and the time of the plan the first counts, and either counts more than a failure", func(w *world) {
		n := w.node("n1")
		ends := func(close func(p plan.Plan), want plan.Closing, state plan.Lifecycle) {
			w.Helper()
			s := plan.New("timed")
			s.Timeout, s.OnFailure, s.Tasks = time.Hour, plan.Stop, []plan.TaskSpec{task("bad"), task("runs")}
			p := w.submitSpec(s)
			for _, c := range n.claim(2) {
				if c.Name == "bad" {
					n.end(fail(c))
				}
			}
			close(p)
			w.equal("closing", w.plan(p.ID).Closing, want)
			w.equal("runs is to stop", len(n.cancels()), 1)
			for _, c := range n.holding {
				n.end(ok(c))
			}
			w.wantPlan(p, state)
		}
		over := func(plan.Plan) { w.pass(65 * time.Minute); n.sweep() }
		cancel := func(p plan.Plan) { w.no(w.s.CancelPlan(w.ctx, p.ID, false)) }
		ends(over, plan.ClosedByTimeout, plan.PlanFailed)
		ends(func(p plan.Plan) { over(p); cancel(p) }, plan.ClosedByTimeout, plan.PlanFailed)
		ends(func(p plan.Plan) { cancel(p); over(p) }, plan.ClosedByPerson, plan.PlanCancelled)
	}},
	{"the timeout of a plan leaves its tasks of finally to run, and the plan says so until it is retried", func(w *world) {
		s := plan.New("timed")
		s.Timeout, s.Secrets, s.Tasks = time.Hour, []string{"token"}, []plan.TaskSpec{task("a"), last("undo", "")}
		p := w.submitSpec(s)
		n := w.node("n1")
		c := n.one()
		w.pass(65 * time.Minute)
		n.sweep()
		w.equal("before they run", []any{w.plan(p.ID).Closing, w.plan(p.ID).Stopped}, []any{plan.ClosedByTimeout, plan.Open})
		n.end(protocol.Ending{Claim: c.Claim, Status: plan.Terminated, Reason: plan.ReasonCancelled, Detail: rules.ByTimeout})
		n.sweep()
		w.pass(65 * time.Minute)
		n.sweep()
		now := w.plan(p.ID)
		w.equal("while they run", []any{now.Closing, now.Stopped, now.StoppedBy(), now.InFinally()}, []any{plan.Open, plan.ClosedByTimeout, plan.ClosedByTimeout, true})
		w.no(w.s.CancelPlan(w.ctx, p.ID, true))
		n.sweep()
		now = w.plan(p.ID)
		w.equal("after a cancellation", []any{now.State, now.Closing, now.Stopped, now.StoppedBy()}, []any{plan.PlanFailed, plan.ClosedByPerson, plan.ClosedByTimeout, plan.ClosedByTimeout})
		w.retry(p, false)
		n.sweep()
		now = w.plan(p.ID)
		w.equal("after a retry", []any{now.State, now.Closing, now.Stopped, now.Secrets}, []any{plan.PlanRunning, plan.Open, plan.Open, []string{"token"}})
		n.run(ok)
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"a retry may bring another timeout of the plan, or none, and leaves it as it is otherwise", func(w *world) {
		p := w.submitTimed(time.Hour, task("a"), task("b"))
		n := w.node("n1")
		n.run(failing("a"))
		after := func(name string, ask *time.Duration, want time.Duration) {
			w.Helper()
			began := must(w.s.Now(w.ctx))(w)
			w.no(w.tryRetry(p.ID, rules.Ask{Timeout: ask}))
			now := w.plan(p.ID)
			w.equal("timeout "+name, now.Timeout, want)
			w.equal("has a deadline "+name, !now.Deadline.IsZero(), want > 0)
			w.equal("which is in that time "+name, want == 0 || now.Deadline.Sub(began.Add(want)).Abs() < time.Minute, true)
		}
		longer, none, again := 3*time.Hour, time.Duration(0), 2*time.Hour
		after("that is longer", &longer, longer)
		w.pass(2 * time.Hour)
		n.sweep()
		w.equal("closing", w.plan(p.ID).Closing, plan.Open)
		n.run(failing("a"))
		after("that stays", nil, longer)
		n.run(failing("a"))
		after("that is dropped", &none, none)
		w.pass(4 * time.Hour)
		n.sweep()
		w.equal("closing without any", w.plan(p.ID).Closing, plan.Open)
		n.run(failing("a"))
		after("that is new", &again, again)
		n.run(ok)
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"a sweep tells when the time of the next plan is over", func(w *world) {
		n := w.node("n1")
		p := w.submitTimed(40*time.Minute, task("a"))
		w.submitTimed(50*time.Minute, task("b"))
		n.claim(2)
		swept := must(n.s.Sweep(w.ctx, protocol.Sweep{Instance: n.id, Holding: []plan.TaskID{w.named(p, "a").ID}}))(w)
		w.equal("in less than 40 minutes", swept.Pending > 30*time.Minute && swept.Pending <= 40*time.Minute, true)
	}},
}
