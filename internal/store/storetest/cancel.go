package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

var cancelCases = []testCase{
	{"cancelling a plan cancels what is held and queued, and tells the nodes of what runs", func(w *world) {
		p := w.submit(task("done"), task("running"), task("claimed"), task("delayed"), task("queued"), task("child", "running"),
			plan.TaskSpec{Name: "anyway", Needs: []string{"done", "running"}, When: plan.AllDone})
		other := w.submit(task("untouched"))
		n := w.node("n1")
		c := map[string]protocol.ClaimedTask{}
		for _, claimed := range n.turn(protocol.Turn{Slots: 9, Plan: p.ID}).Claimed {
			c[claimed.Name] = claimed
		}
		must(w.s.Start(w.ctx, []protocol.Claim{c["running"].Claim}))(w)
		n.end(ok(c["done"]), later(c["delayed"], time.Hour), giveBack(c["queued"]))
		w.no(w.s.CancelPlan(w.ctx, p.ID, false))
		w.equal("claimed of a closed plan", names(n.turn(protocol.Turn{Slots: 9, Plan: p.ID}).Claimed), "[]")
		n.sweep()
		w.want(p, "done succeeded", "running running", "claimed claimed", "delayed cancelled", "queued cancelled", "child cancelled", "anyway cancelled")
		w.equal("reason", w.named(p, "child").Reason, plan.ReasonCancelled)
		w.equal("plan", []any{w.plan(p.ID).State, w.plan(p.ID).Closing}, []any{plan.PlanRunning, plan.ClosedByPerson})
		told := must(w.s.Beat(w.ctx, protocol.Beat{Instance: n.id}))(w)
		w.equal("to cancel", len(told.Cancel), 2)
		n.end(protocol.Ending{Claim: c["running"].Claim, Status: plan.Terminated, Reason: plan.ReasonCancelled}, giveBack(c["claimed"]))
		n.sweep()
		w.want(p, "running terminated", "claimed cancelled")
		w.wantPlan(p, plan.PlanCancelled)
		w.want(other, "untouched queued")
		w.is(w.s.CancelPlan(w.ctx, p.ID, false), plan.ErrPlanEnded)
	}},
	{"a plan that is closed stops what ran, whatever that waits for, and does not start the rest", func(w *world) {
		for closing, not := range map[plan.Closing]string{plan.ClosedByPerson: "cancelled", plan.ClosedByFailure: "skipped"} {
			spec := &plan.Spec{Name: "nightly", OnFailure: plan.Stop}
			all := []string{"lost", "before", "delayed", "after", "flaky", "unstarted", "waits", "copy", "none"}
			for _, name := range all {
				t := task(name)
				if name == "copy" || name == "none" {
					t = each(name, list(1, 2))
				}
				spec.Add(t)
				spec.Add(plan.TaskSpec{Name: "undo-" + name, Needs: []string{name}, When: plan.AnyFailed})
			}
			spec.Add(task("bad"))
			spec.Add(task("told", "undo-lost")) // so that lost is claimed first
			p := w.submitSpec(spec)
			gone, n := w.node("n2"), w.node("n1")
			n.end()
			c := map[string]protocol.ClaimedTask{}
			for _, claimed := range append(gone.turn(protocol.Turn{Slots: 1, Plan: p.ID}).Claimed, n.turn(protocol.Turn{Slots: 99, Plan: p.ID}).Claimed...) {
				c[claimed.Name] = claimed
			}
			for _, name := range []string{"lost", "before", "delayed", "after", "flaky", "copy[0]", "bad"} {
				must(w.s.Start(w.ctx, []protocol.Claim{c[name].Claim}))(w)
			}
			n.end(giveBack(c["before"]), later(c["delayed"], time.Hour), giveBack(c["waits"]), ok(c["copy[0]"]), giveBack(c["copy[1]"]), giveBack(c["none[0]"]), giveBack(c["none[1]"]))
			ran := "[undo-lost undo-before undo-delayed undo-after undo-flaky undo-copy]"
			unrun := func() []string {
				tasks, _ := rules.Unrun(w.all(store.TaskQuery{Plan: p.ID, Needs: true}), w.plan(p.ID).Closing)
				return taskNames(tasks)
			}
			w.equal("clean-ups that a cancellation leaves out", unrun(), ran)
			w.equal("items that ran", taskNames(w.all(store.TaskQuery{Plan: p.ID, Of: w.named(p, "copy").ID, Began: true})), "[copy[0]]")
			if closing == plan.ClosedByPerson {
				w.no(w.s.CancelPlan(w.ctx, p.ID, false))
			} else {
				n.end(fail(c["bad"]))
			}
			w.equal("closing", w.plan(p.ID).Closing, closing)
			n.end(giveBack(c["after"]), later(c["flaky"], time.Hour), giveBack(c["unstarted"]))
			must(w.s.Rescue(w.ctx, gone.id, -1))(w)
			if closing == plan.ClosedByPerson {
				n.end(fail(c["bad"]))
			}
			n.sweep()
			w.want(p, "lost terminated", "before terminated", "delayed terminated", "after terminated", "flaky terminated", "copy terminated", "copy[1] "+not,
				"unstarted "+not, "waits "+not, "none "+not, "none[0] "+not, "none[1] "+not, "undo-lost "+not)
			w.equal("state", w.plan(p.ID).State.Ended(), true)
			w.equal("clean-ups that were left out", unrun(), ran)
			var undo []string
			for _, name := range all {
				undo = append(undo, "undo-"+name)
			}
			w.retry(p, false, undo...)
			w.equal("a retry of all clean-ups runs", fmt.Sprint(n.run(ok)), strings.TrimSuffix(ran, "]")+" told]")
		}
	}},
	{"a clean-up that is stopped half-way runs when it is retried", func(w *world) {
		for _, closing := range []plan.Closing{plan.ClosedByPerson, plan.ClosedByFailure} {
			spec := &plan.Spec{Name: "nightly", OnFailure: plan.Stop}
			copies := each("undo-copy", list(1, 2), "ok")
			copies.When = plan.AllDone
			for _, t := range []plan.TaskSpec{task("ok"), copies, {Name: "undo", Needs: []string{"ok"}, When: plan.AllDone}, task("told", "undo"), task("bad")} {
				spec.Add(t)
			}
			p, n := w.submitSpec(spec), w.node("n1")
			c := map[string]protocol.ClaimedTask{}
			for _, claimed := range n.turn(protocol.Turn{Slots: 99, Start: true, Plan: p.ID}).Claimed {
				c[claimed.Name] = claimed
			}
			n.end(ok(c["ok"]))
			for _, claimed := range n.turn(protocol.Turn{Slots: 99, Start: true, Plan: p.ID}).Claimed {
				c[claimed.Name] = claimed
			}
			unrun := func(closing plan.Closing) []string {
				tasks, _ := rules.Unrun(w.all(store.TaskQuery{Plan: p.ID, Needs: true}), closing)
				return taskNames(tasks)
			}
			w.equal("before the stop", unrun(closing), "[undo-copy undo]")
			if closing == plan.ClosedByPerson {
				w.no(w.s.CancelPlan(w.ctx, p.ID, false))
				n.end(giveBack(c["bad"]))
			} else {
				n.end(fail(c["bad"]))
			}
			n.end(giveBack(c["undo"]), giveBack(c["undo-copy[0]"]), giveBack(c["undo-copy[1]"]))
			n.sweep()
			w.equal("state", w.plan(p.ID).State.Ended(), true)
			w.equal("after it", unrun(closing), "[undo-copy undo]")
			w.retry(p, false, "undo", "undo-copy")
			w.equal("the retry runs", len(n.run(ok)), 4)
			w.want(p, "undo succeeded", "undo-copy succeeded", "told succeeded")
		}
	}},
	{"cancelling a plan of which nothing runs ends it", func(w *world) {
		p := w.submit(task("a"), task("b", "a"))
		w.no(w.s.CancelPlan(w.ctx, p.ID, false))
		w.node("n1").sweep()
		w.want(p, "a cancelled", "b cancelled")
		w.wantPlan(p, plan.PlanCancelled)
	}},
	{"cancelling a plan twice changes nothing", func(w *world) {
		p := w.submit(task("a"))
		n := w.node("n1")
		c := n.one()
		w.no(w.s.CancelPlan(w.ctx, p.ID, false))
		w.no(w.s.CancelPlan(w.ctx, p.ID, false))
		n.end(protocol.Ending{Claim: c.Claim, Status: plan.Terminated, Reason: plan.ReasonCancelled})
		w.wantPlan(p, plan.PlanCancelled)
	}},
	{"a submission can be cancelled, and takes no tasks any more", func(w *world) {
		p := w.submitUnready(&plan.Spec{Name: "nightly", Tasks: []plan.TaskSpec{task("a"), task("b", "a")}})
		w.no(w.s.CancelPlan(w.ctx, p.ID, false))
		n := w.node("n1")
		n.sweep()
		w.wantPlan(p, plan.PlanCancelled)
		w.want(p, "a cancelled", "b cancelled")
		w.is(w.s.AddTasks(w.ctx, p.ID, []plan.Task{w.newTask(w.queue("exec", 0), "late")}), plan.ErrPlanEnded)
		_ = w.s.Ready(w.ctx, p.ID) // whatever it says, it is too late
		w.wantPlan(p, plan.PlanCancelled)
	}},
	{"a large plan that is not ready is cancelled without a node, by calls that continue what others left", func(w *world) {
		tasks := numbered(protocol.DefaultBudget + 200)
		p := w.submitUnready(&plan.Spec{Name: "large", Tasks: tasks})
		for left := len(tasks); left > 0; {
			w.no(w.s.CancelPlan(w.ctx, p.ID, false))
			now := w.plan(p.ID)
			if now.Counts.Unfinished() >= left {
				w.Fatalf("%d tasks are left, as before the call", left)
			}
			left = now.Counts.Unfinished()
		}
		w.wantPlan(p, plan.PlanCancelled)
	}},
	{"a finish that was first stands", func(w *world) {
		p := w.submit(task("a"), task("b", "a"))
		n := w.node("n1")
		c := n.one()
		w.no(w.s.CancelPlan(w.ctx, p.ID, false))
		n.end(succeed(c, `"done"`))
		n.sweep()
		w.want(p, "a succeeded", "b cancelled")
		w.equalJSON("output", w.named(p, "a").Output, `"done"`)
		w.wantPlan(p, plan.PlanCancelled)
	}},
	{"a large plan is cancelled by sweeps, each within its budget", func(w *world) {
		const many = 1200
		tasks := make([]plan.TaskSpec, 0, 2*many)
		for i := range many {
			tasks = append(tasks, task(fmt.Sprint("a", i)), task(fmt.Sprint("b", i), fmt.Sprint("a", i)))
		}
		p := w.submit(tasks...)
		n := w.node("n1")
		n.end()
		w.equal("queued", w.plan(p.ID).Counts.Queued, many)
		w.no(w.s.CancelPlan(w.ctx, p.ID, false))
		w.equal("claimed", len(n.claim(9)), 0)
		for last := w.plan(p.ID).Counts.Cancelled; w.plan(p.ID).State == plan.PlanRunning; {
			did := must(n.s.Sweep(w.ctx, protocol.Sweep{Instance: n.id, Budget: 400}))(w)
			now := w.plan(p.ID).Counts.Cancelled
			if now-last > 400 || now == last && !did.More {
				w.Fatalf("a sweep with a budget of 400 cancelled %d; %d of %d are cancelled, more: %v", now-last, now, 2*many, did.More)
			}
			last = now
		}
		w.equal("cancelled", w.plan(p.ID).Counts.Cancelled, 2*many)
		w.wantPlan(p, plan.PlanCancelled)
	}},
	{"a person cancels one task, and its children are skipped", func(w *world) {
		p := w.submit(task("queued"), task("slow"), task("held", "slow"), task("c1", "queued"), task("c2", "held"),
			plan.TaskSpec{Name: "anyway", Needs: []string{"queued"}, When: plan.AllDone})
		w.no(w.s.CancelTask(w.ctx, w.named(p, "queued").ID))
		w.no(w.s.CancelTask(w.ctx, w.named(p, "held").ID))
		n := w.node("n1")
		n.end()
		w.want(p, "queued cancelled", "held cancelled", "c1 skipped", "c2 skipped", "anyway queued", "slow queued")
		w.refused(w.s.CancelTask(w.ctx, w.named(p, "queued").ID), "task queued is cancelled already: there is nothing to cancel")
		n.run(ok)
		w.want(p, "held cancelled", "slow succeeded")
		w.refused(w.s.CancelTask(w.ctx, w.named(p, "slow").ID), "task slow is succeeded already: there is nothing to cancel")
		w.wantPlan(p, plan.PlanCancelled)
	}},
	{"a task that is held by a delay is cancelled at once, and its delay never ends", func(w *world) {
		p := w.submit(task("a"), task("b"))
		n := w.node("n1")
		c := n.take("a", "b")
		n.end(later(c[0], time.Minute))
		w.no(w.s.CancelTask(w.ctx, c[0].Task))
		w.want(p, "a terminated")
		w.pass(time.Hour)
		n.sweep()
		w.want(p, "a terminated")
		n.end(ok(c[1]))
		w.wantPlan(p, plan.PlanFailed)
	}},
	{"a person stops a task that ran, whatever that waits for, and its clean-up runs", func(w *world) {
		all := []string{"delayed", "back", "unstarted", "copy"}
		spec := &plan.Spec{Name: "nightly"}
		for _, name := range all {
			t := task(name)
			if name == "copy" {
				t = each(name, list(1, 2, 3))
			}
			spec.Add(t)
			spec.Add(plan.TaskSpec{Name: "undo-" + name, Needs: []string{name}, When: plan.AnyFailed})
		}
		p := w.submitSpec(spec)
		n := w.node("n1")
		waitAfterAttempts(n, p.ID, "unstarted", "copy[1]")
		for _, name := range all {
			w.no(w.s.CancelTask(w.ctx, w.named(p, name).ID))
		}
		n.sweep()
		w.want(p, "delayed terminated", "back terminated", "unstarted cancelled", "copy[0] terminated", "copy[1] cancelled", "copy[2] terminated", "copy terminated",
			"undo-delayed queued", "undo-back queued", "undo-unstarted skipped", "undo-copy queued")
		for _, name := range []string{"delayed", "copy[0]"} {
			w.equal("detail of "+name, w.named(p, name).Detail, rules.ByPerson)
		}
		n.run(ok)
		w.wantPlan(p, plan.PlanFailed)
	}},
	{"a task that ran and that a person stops closes a plan that stops on failure", func(w *world) {
		for _, name := range []string{"delayed", "back", "copy"} {
			for _, allowed := range []bool{false, true} {
				t := task(name)
				if name == "copy" {
					t = each(name, list(1, 2, 3))
				}
				t.ContinueOnError = allowed
				p := w.submitSpec(&plan.Spec{Name: "nightly", OnFailure: plan.Stop, Tasks: []plan.TaskSpec{
					t, task("slow"), task("child", "slow"), {Name: "undo", Needs: []string{name}, When: plan.AnyFailed},
				}})
				n := w.node("n1")
				c := waitAfterAttempts(n, p.ID, "copy[1]")
				w.no(w.s.CancelTask(w.ctx, w.named(p, name).ID))
				n.sweep()
				w.want(p, name+" terminated", "undo skipped", "slow running")
				if name == "copy" {
					w.want(p, "copy[0] terminated", "copy[1] cancelled", "copy[2] terminated")
				}
				if allowed {
					w.equal("closing", w.plan(p.ID).Closing, plan.Open)
					w.want(p, "child held")
				} else {
					w.equal("closing", w.plan(p.ID).Closing, plan.ClosedByFailure)
					w.want(p, "child skipped")
				}
				n.end(ok(c["slow"]))
				n.run(ok)
				w.equal("the plan has ended", w.plan(p.ID).State.Ended(), true)
			}
		}
	}},
	{"a task that ran and of which the last claim was not started counts as one that ran", func(w *world) {
		p := w.submit(task("a"))
		n := w.node("n1")
		n.end(giveBack(n.one()))
		n.end(giveBack(n.turn(protocol.Turn{Slots: 1}).Claimed[0]))
		w.equal("tasks that ran", len(w.all(store.TaskQuery{Plan: p.ID, Began: true})), 1)
		w.no(w.s.CancelTask(w.ctx, w.named(p, "a").ID))
		w.want(p, "a terminated")
	}},
	{"a retry remembers that a task ran until a clean-up has undone that", func(w *world) {
		alter := task("alter")
		alter.OnLost = plan.OnLostRetry
		files := each("files", list(1, 2))
		p := w.submit(task("first"), alter, plan.TaskSpec{Name: "undo", Needs: []string{"alter"}, When: plan.AnyFailed}, task("plain"),
			files, plan.TaskSpec{Name: "tidy", Needs: []string{"files"}, When: plan.AnyFailed})
		n := w.node("n1")
		unrun := func() []string {
			tasks, _ := rules.Unrun(w.all(store.TaskQuery{Plan: p.ID, Needs: true}), w.plan(p.ID).Closing)
			return taskNames(tasks)
		}
		stop := func() {
			w.Helper()
			w.no(w.s.CancelPlan(w.ctx, p.ID, false))
			n.sweep()
			w.wantPlan(p, plan.PlanCancelled)
		}
		began := map[string]protocol.ClaimedTask{}
		for _, c := range n.turn(protocol.Turn{Slots: 9, Start: true}).Claimed {
			if began[c.Name] = c; c.Name == "first" {
				n.end(ok(c))
			}
		}
		w.no(w.s.CancelPlan(w.ctx, p.ID, false))
		for _, name := range []string{"alter", "plain", "files[0]", "files[1]"} {
			n.end(giveBack(began[name]))
		}
		n.sweep()
		w.want(p, "alter terminated", "plain terminated", "undo cancelled", "files terminated", "tidy cancelled")
		w.equal("clean-ups that did not run", unrun(), "[undo tidy]")

		w.retry(p, false)
		w.equal("ran", []any{w.named(p, "alter").Ran, w.named(p, "plain").Ran, w.named(p, "files").Ran, w.named(p, "files[1]").Ran}, []any{true, false, true, true})
		w.equal("clean-ups that a cancellation leaves out", unrun(), "[undo tidy]")
		stop()
		w.want(p, "alter terminated", "plain cancelled", "undo cancelled", "files terminated", "tidy cancelled")
		w.equal("clean-ups that did not run after a retry", unrun(), "[undo tidy]")

		w.retry(p, false)
		gone := w.node("n2")
		var back []protocol.Ending
		for _, c := range gone.turn(protocol.Turn{Slots: 9}).Claimed {
			if c.Name != "alter" { // its claim is lost before its start
				back = append(back, giveBack(c))
			}
		}
		gone.end(back...)
		must(w.s.Rescue(w.ctx, gone.id, -1))(w)
		stop()
		w.want(p, "alter terminated", "plain cancelled", "files terminated")
		w.equal("clean-ups that did not run after claims that were not started", unrun(), "[undo tidy]")

		w.retry(p, false, "undo", "tidy")
		n.run(ok)
		w.want(p, "undo succeeded", "tidy succeeded")
		w.retry(p, false)
		w.equal("ran, after the clean-up", w.named(p, "alter").Ran, false)
		stop()
		w.want(p, "alter cancelled", "undo cancelled", "files cancelled")
		w.equal("clean-ups that a stop left out after they ran", unrun(), "[]")
	}},
	{"a task that ran before a retry is stopped, not skipped, where its parent fails then, and its clean-up runs", func(w *world) {
		may := task("may", "first")
		may.ContinueOnError = true
		p := w.submit(task("first"), task("alter", "first"), task("below", "alter"), each("files", list(1, 2), "first"), may, task("on", "may"),
			plan.TaskSpec{Name: "told", Needs: []string{"may"}, When: plan.AllDone},
			plan.TaskSpec{Name: "undo", Needs: []string{"alter"}, When: plan.AnyFailed},
			plan.TaskSpec{Name: "tidy", Needs: []string{"files"}, When: plan.AnyFailed},
			plan.TaskSpec{Name: "half", Needs: []string{"first"}, When: plan.AnySucceeded},
			plan.TaskSpec{Name: "after", Needs: []string{"half"}, When: plan.AnyFailed})
		n := w.node("n1")
		n.end(ok(n.one()))
		began := n.claim(9)
		w.no(w.s.CancelPlan(w.ctx, p.ID, false))
		for _, c := range began {
			n.end(giveBack(c))
		}
		n.sweep()
		w.want(p, "alter terminated", "files terminated", "half terminated", "may terminated", "undo cancelled", "tidy cancelled", "after cancelled")
		w.retry(p, true, "first")
		n.end(fail(n.one()))
		n.sweep()
		w.want(p, "first failed", "alter terminated", "below skipped", "files terminated", "half skipped", "after skipped", "may skipped", "on skipped", "told queued", "undo queued", "tidy queued")
		w.equal("detail", w.named(p, "alter").Detail, rules.ByParents)
		n.run(ok)
		w.want(p, "undo succeeded", "tidy succeeded")
		w.wantPlan(p, plan.PlanFailed)
	}},
	{"a foreach task that makes its items anew remembers that earlier ones ran", func(w *world) {
		for _, claimed := range []bool{false, true} {
			p := w.submit(task("list"), each("copy", plan.Foreach{Value: "needs.list"}, "list"), plan.TaskSpec{Name: "undo", Needs: []string{"copy"}, When: plan.AnyFailed})
			n := w.node("n1")
			n.end(succeed(n.one(), `[1,2,3]`))
			first := n.claim(1)[0]
			w.no(w.s.CancelPlan(w.ctx, p.ID, false))
			n.end(giveBack(first))
			n.sweep()
			w.want(p, "copy terminated", "undo cancelled")
			w.retry(p, true, "list")
			w.equal("ran", w.named(p, "copy").Ran, true)
			if claimed {
				n.end(succeed(n.one(), `[1,2,3,4]`))
			}
			w.no(w.s.CancelPlan(w.ctx, p.ID, false))
			n.sweep()
			w.want(p, "copy terminated", "undo cancelled")
			tasks, _ := rules.Unrun(w.all(store.TaskQuery{Plan: p.ID, Needs: true}), w.plan(p.ID).Closing)
			w.equal("clean-ups that did not run", taskNames(tasks), "[undo]")
			w.wantPlan(p, plan.PlanCancelled)
		}
	}},
	{"whatever write a cancellation dies after, the plan is closed if the task was stopped", func(w *world) {
		for at := 1; ; at++ {
			p := w.submitSpec(&plan.Spec{Name: "nightly", OnFailure: plan.Stop, Tasks: []plan.TaskSpec{task("back"), task("slow"), task("child", "slow")}})
			n := w.node("n1")
			waitAfterAttempts(n, p.ID)
			k := &killer{at: at, after: true, dies: true}
			err := w.reopen(k.hook).CancelTask(w.ctx, w.named(p, "back").ID)
			if k.tripped && !errors.Is(err, errKilled) {
				w.Fatalf("at write %d: got error %v", at, err)
			}
			w.pass(time.Hour)
			n.sweep()
			if w.named(p, "back").Status == plan.Terminated {
				w.want(p, "slow running", "child skipped")
			} else {
				w.want(p, "back queued", "slow running", "child held")
			}
			w.no(w.s.Leave(w.ctx, n.id))
			if !k.tripped {
				w.want(p, "back terminated")
				w.Logf("a cancellation has %d writes", at-1)
				return
			}
		}
	}},
	{"a task that a node has is marked, and ends as the node says or as it stood", func(w *world) {
		spec := &plan.Spec{Name: "nightly"}
		cases := []struct {
			name   string
			start  bool
			ending func(protocol.ClaimedTask) protocol.Ending
			want   string
		}{
			{"running-given-back", true, giveBack, "terminated"},
			{"running-delayed", true, func(c protocol.ClaimedTask) protocol.Ending { return later(c, time.Second) }, "terminated"},
			{"running-stopped", true, func(c protocol.ClaimedTask) protocol.Ending {
				return protocol.Ending{Claim: c.Claim, Status: plan.Terminated, Reason: plan.ReasonCancelled}
			}, "terminated"},
			{"running-done", true, ok, "succeeded"},
			{"running-failed", true, fail, "failed"},
			{"claimed-given-back", false, giveBack, "cancelled"},
			{"claimed-delayed", false, func(c protocol.ClaimedTask) protocol.Ending { return later(c, time.Second) }, "cancelled"},
		}
		for _, c := range cases {
			spec.Add(task(c.name))
		}
		p := w.submitSpec(spec)
		n := w.node("n1")
		claimed := map[string]protocol.ClaimedTask{}
		for _, c := range n.turn(protocol.Turn{Slots: 99}).Claimed {
			claimed[c.Name] = c
		}
		for _, c := range cases {
			if c.start {
				must(w.s.Start(w.ctx, []protocol.Claim{claimed[c.name].Claim}))(w)
			}
			w.no(w.s.CancelTask(w.ctx, claimed[c.name].Task))
			w.equal(c.name, w.named(p, c.name).Cancel, true)
		}
		w.equal("to cancel", len(must(w.s.Beat(w.ctx, protocol.Beat{Instance: n.id}))(w).Cancel), len(cases))
		for _, c := range cases {
			n.end(c.ending(claimed[c.name]))
			w.want(p, c.name+" "+c.want)
		}
		w.equal("reason", w.named(p, "running-given-back").Reason, plan.ReasonCancelled)
		w.equal("to cancel", len(must(w.s.Beat(w.ctx, protocol.Beat{Instance: n.id}))(w).Cancel), 0)
		w.wantPlan(p, plan.PlanFailed)
	}},
	{"a cancelled task that its node does not know of ends when the node sweeps", func(w *world) {
		p := w.submit(task("a"))
		n := w.node("n1")
		n.one()
		w.no(w.s.CancelTask(w.ctx, w.named(p, "a").ID))
		clear(n.holding) // the answer to its turn was lost
		n.sweep()
		w.want(p, "a terminated")
	}},
	{"cancelling a foreach task cancels its items", func(w *world) {
		p := w.submit(each("copy", list(1, 2, 3, 4)), task("after", "copy"))
		n := w.node("n1")
		n.end()
		c := n.claim(2)
		n.end(ok(c[0]))
		w.no(w.s.CancelTask(w.ctx, w.named(p, "copy").ID))
		told := must(w.s.Beat(w.ctx, protocol.Beat{Instance: n.id}))(w)
		w.equal("to cancel", told.Cancel, []plan.TaskID{c[1].Task})
		n.sweep()
		w.want(p, c[1].Name+" running", "copy[2] cancelled", "copy[3] cancelled", "copy held", "after held")
		n.end(protocol.Ending{Claim: c[1].Claim, Status: plan.Terminated, Reason: plan.ReasonCancelled})
		n.sweep()
		w.want(p, c[0].Name+" succeeded", c[1].Name+" terminated", "copy[2] cancelled", "copy[3] cancelled", "copy terminated", "after skipped")
		w.equal("detail", w.named(p, "copy").Detail, "it was stopped before all of its items had ended")
		w.wantPlan(p, plan.PlanFailed)
	}},
	{"clean-ups of a foreach task that is cancelled run when its items have ended", func(w *world) {
		undo := task("undo", "copy")
		undo.When = plan.AnyFailed
		p := w.submit(each("copy", list(1, 2, 3)), undo)
		n := w.node("n1")
		n.end()
		c := n.claim(2)
		w.no(w.s.CancelTask(w.ctx, w.named(p, "copy").ID))
		w.no(w.s.CancelTask(w.ctx, w.named(p, "copy").ID)) // it has not finished
		n.end(ok(c[0]))
		n.sweep()
		w.want(p, "undo held")
		n.end(protocol.Ending{Claim: c[1].Claim, Status: plan.Queued}) // its node gives it back
		w.want(p, c[1].Name+" terminated", "copy terminated", "undo queued")
		n.run(ok)
		w.wantPlan(p, plan.PlanFailed)
	}},
	{"clean-ups of a foreach task that is cancelled run though the items that ran succeeded", func(w *world) {
		undo := task("undo", "copy")
		undo.When = plan.AnyFailed
		p := w.submit(each("copy", list(1, 2, 3)), undo)
		n := w.node("n1")
		n.end()
		c := n.claim(2)
		w.no(w.s.CancelTask(w.ctx, w.named(p, "copy").ID))
		n.end(ok(c[0]), ok(c[1])) // they end before their node is told
		n.sweep()
		w.want(p, "copy[2] cancelled", "copy terminated", "undo queued")
		n.run(ok)
		w.want(p, "undo succeeded")
		w.wantPlan(p, plan.PlanCancelled)
		w.retry(p, true)
		n.run(ok)
		w.want(p, "copy[2] succeeded", "copy succeeded", "undo skipped")
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"a foreach task that is cancelled before its items run is cancelled", func(w *world) {
		undo, done := task("undo", "copy"), task("done", "copy")
		undo.When, done.When = plan.AnyFailed, plan.AllDone
		p := w.submit(each("copy", list(1, 2, 3)), undo, done)
		n := w.node("n1")
		n.end()
		w.no(w.s.CancelTask(w.ctx, w.named(p, "copy").ID))
		n.sweep()
		w.want(p, "copy cancelled", "copy[1] cancelled", "undo skipped", "done queued")
		n.run(ok)
		w.wantPlan(p, plan.PlanCancelled)
		w.retry(p, true)
		n.run(ok)
		w.want(p, "copy succeeded", "copy[1] succeeded", "done succeeded")
	}},
	{"a foreach task of a plan that is closed ends with its last item", func(w *world) {
		for _, c := range []struct {
			stop        bool // by a failure, else by a person
			copy, other string
			end         plan.Lifecycle
		}{{false, "copy terminated", "copy[2] cancelled", plan.PlanCancelled}, {true, "copy failed", "copy[2] skipped", plan.PlanFailed}} {
			undo := task("undo", "copy")
			undo.When = plan.AnyFailed
			spec := plan.Spec{Name: "closed", Tasks: []plan.TaskSpec{each("copy", list(1, 2, 3)), undo}}
			if c.stop {
				spec.OnFailure = plan.Stop
			}
			p := w.submitSpec(&spec)
			n := w.node("n1")
			n.end()
			claimed := n.claim(2)
			if !c.stop {
				w.no(w.s.CancelPlan(w.ctx, p.ID, false))
			}
			n.end(protocol.Ending{Claim: claimed[0].Claim, Status: plan.Failed})
			n.sweep()
			w.want(p, c.other, "copy held")
			n.end(ok(claimed[1]))
			n.sweep()
			w.want(p, c.copy, "undo "+strings.Fields(c.other)[1])
			w.wantPlan(p, c.end)
		}
	}},
	{"a foreach task of very many items is cancelled in several rounds, and then its plan ends", func(w *world) {
		items := 2*protocol.DefaultBudget + 1
		p := w.submit(each("copy", plan.Foreach{List: ordinals(items)}))
		n := w.node("n1")
		n.sweep()
		w.equal("queued", w.plan(p.ID).Counts.Queued, items)
		w.no(w.s.CancelTask(w.ctx, w.named(p, "copy").ID))
		n.sweep()
		w.equal("cancelled", w.plan(p.ID).Counts.Cancelled, items)
		w.wantPlan(p, plan.PlanCancelled)
	}},
}

// waitAfterAttempts has a node claim everything of a plan, and start all but the tasks of the names.
// Then each task waits for its next attempt, or since the node gave it back. The node keeps the task
// slow. waitAfterAttempts returns the claims by name.
func waitAfterAttempts(n *node, p plan.PlanID, unstarted ...string) map[string]protocol.ClaimedTask {
	n.w.Helper()
	n.end()
	c := map[string]protocol.ClaimedTask{}
	var ended []protocol.Ending
	for _, claimed := range n.turn(protocol.Turn{Slots: 99, Plan: p}).Claimed {
		c[claimed.Name] = claimed
		if !slices.Contains(unstarted, claimed.Name) {
			must(n.w.s.Start(n.w.ctx, []protocol.Claim{claimed.Claim}))(n.w)
		}
		switch claimed.Name {
		case "slow":
		case "delayed", "copy[0]":
			ended = append(ended, later(claimed, time.Hour))
		default:
			ended = append(ended, giveBack(claimed))
		}
	}
	n.end(ended...)
	return c
}
