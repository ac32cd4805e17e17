package storetest

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

var retryCases = []testCase{
	{"nothing of a plan whose submission ended half-way runs again", func(w *world) {
		p, tasks := w.compile(&plan.Spec{Name: "nightly", Tasks: []plan.TaskSpec{task("a"), task("b"), task("c", "a")}})
		p = must(w.s.CreatePlan(w.ctx, p))(w)
		w.no(w.s.AddTasks(w.ctx, p.ID, tasks[:2]))
		w.no(w.s.CancelTask(w.ctx, tasks[0].ID))
		w.is(w.tryRetry(p.ID, rules.Ask{Tasks: []plan.TaskID{tasks[0].ID}}), plan.ErrPlanNotReady)
		w.wantPlan(p, plan.PlanSubmitting)
		w.no(w.s.CancelPlan(w.ctx, p.ID, false))
		w.is(w.tryRetry(p.ID, rules.Ask{}), plan.ErrPlanNotReady)
		w.wantPlan(p, plan.PlanCancelled)
		w.want(p, "a cancelled", "b cancelled")
		w.equal("ran", w.node("n1").run(ok), "[]")
	}},
	{"nothing of a plan that was abandoned runs again, though tasks of it are still in", func(w *world) {
		p := must(w.s.CreatePlan(w.ctx, plan.Plan{Name: "nightly"}))(w)
		q := w.queue("exec", 0)
		w.add(p.ID, w.newTask(q, "a"), w.newTask(q, "b"), w.newTask(q, "c"), w.newTask(q, "d"))
		a := w.named(p, "a")
		w.no(w.s.CancelTask(w.ctx, a.ID))
		n := w.node("n1")
		for range 10 { // a store may need several looks before it abandons a submission
			if w.plan(p.ID).State == plan.PlanAbandoned {
				break
			}
			w.pass(2 * time.Hour)
			must(w.s.Sweep(w.ctx, protocol.Sweep{Instance: n.id, Budget: 1}))(w)
		}
		w.wantPlan(p, plan.PlanAbandoned)
		w.is(w.tryRetry(p.ID, rules.Ask{Tasks: []plan.TaskID{a.ID}}), plan.ErrPlanNotReady)
		w.wantPlan(p, plan.PlanAbandoned)
		n.sweep()
		w.equal("ran", n.run(ok), "[]")
	}},
	{"one whose tasks were all in does, though it was cancelled before it was ready", func(w *world) {
		p := w.submitUnready(&plan.Spec{Name: "nightly", Tasks: []plan.TaskSpec{task("a"), task("b", "a")}})
		w.no(w.s.CancelPlan(w.ctx, p.ID, false))
		w.retry(p, false)
		w.equal("ran", w.node("n1").run(ok), "[a b]")
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"a retry is in the log of what had been tried", func(w *world) {
		p := w.submit(task("a"), task("b", "a"))
		n := w.node("n1")
		try := func(text string, status plan.Status) {
			n.run(func(c protocol.ClaimedTask) protocol.Ending {
				e := protocol.Ending{Claim: c.Claim, Status: status}
				if c.Name == "a" {
					e.Log = []plan.LogEntry{{At: time.Now(), Attempt: c.Attempt, Stream: plan.Stdout, Text: text}}
				}
				return e
			})
		}
		try("first\n", plan.Failed)
		w.retry(p, false)
		try("second\n", plan.Failed)
		w.retry(p, false)
		try("third\n", plan.Succeeded)
		w.wantPlan(p, plan.PlanSucceeded)
		var got []string
		for cursor, more := int64(0), true; more; {
			page, next, err := w.s.Log(w.ctx, w.named(p, "a").ID, cursor, 2)
			w.no(err)
			for i := range page {
				e := &page[i]
				got = append(got, fmt.Sprint(e.Attempt, " ", strings.TrimSpace(e.Text)))
				if rules.IsRetried(e) {
					got[len(got)-1] = "retried"
				}
				if e.At.IsZero() {
					w.Errorf("entry %q has no time", e.Text)
				}
			}
			cursor, more = next, len(page) > 0
		}
		w.equal("log", strings.Join(got, ", "), "1 first, retried, 1 second, retried, 1 third")
		skipped, _, err := w.s.Log(w.ctx, w.named(p, "b").ID, 0, 10)
		w.no(err)
		w.equal("entries of a task that had not been tried", len(skipped), 0)
	}},
	{"a retry runs what failed and what was skipped below it, and keeps what succeeded", func(w *world) {
		p := w.submit(task("a"), task("bad", "a"), task("c", "bad"), task("d", "c", "a"), task("e", "a"),
			plan.TaskSpec{Name: "anyway", Needs: []string{"bad"}, When: plan.AllDone})
		n := w.node("n1")
		n.run(failing("bad"))
		w.want(p, "a succeeded", "bad failed", "c skipped", "d skipped", "e succeeded", "anyway succeeded")
		w.wantPlan(p, plan.PlanFailed)
		edits := w.plan(p.ID).Edits
		w.retry(p, false)
		w.want(p, "a succeeded", "bad queued", "c held", "d held", "e succeeded", "anyway held")
		got := w.plan(p.ID)
		w.equal("plan", []any{got.State, got.Ended.IsZero(), got.Edits > edits, got.Closing}, []any{plan.PlanRunning, true, true, plan.Open})
		w.equal("ran", n.run(ok), "[bad c anyway d]")
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"a plan has the instant of the last retry that let it run again after it had ended", func(w *world) {
		p := w.submit(task("a"), task("b"))
		retriedAfter := func() time.Duration {
			got := w.plan(p.ID)
			return got.Retried.Sub(got.Created).Round(time.Hour)
		}
		w.equal("a plan that was not retried has none", w.plan(p.ID).Retried.IsZero(), true)
		w.node("n1").run(failing("a", "b"))
		for hours := range 2 {
			w.pass(time.Hour)
			w.retry(p, false)
			w.equal("the retry of a plan that had ended", retriedAfter(), time.Duration(hours+1)*time.Hour)
			n := w.node(plan.NodeName(fmt.Sprint("n", hours+2)))
			c := n.claim(1)[0]
			n.end(protocol.Ending{Claim: c.Claim, Status: plan.Failed})
			w.pass(time.Second)
			w.wantPlan(p, plan.PlanRunning)
			w.retry(p, false)
			w.equal("the retry of a plan that runs", retriedAfter(), time.Duration(hours+1)*time.Hour)
			n.run(failing("a", "b"))
			w.wantPlan(p, plan.PlanFailed)
		}
	}},
	{"what ran because of a failure runs again if something fails again, and is skipped if nothing does", func(w *world) {
		p := w.submit(task("copy"), task("switch", "copy"),
			plan.TaskSpec{Name: "rollback", Needs: []string{"copy", "switch"}, When: plan.AnyFailed}, task("told", "rollback"))
		n := w.node("n1")
		w.equal("ran", n.run(failing("copy")), "[copy rollback told]")
		w.retry(p, false)
		w.want(p, "copy queued", "switch held", "rollback held", "told held")
		w.equal("ran", n.run(failing("switch")), "[copy switch rollback told]")
		w.want(p, "copy succeeded", "switch failed", "rollback succeeded", "told succeeded")
		w.retry(p, false)
		w.want(p, "copy succeeded", "switch queued", "rollback held", "told held")
		w.equal("ran", n.run(ok), "[switch]")
		w.want(p, "copy succeeded", "switch succeeded", "rollback skipped", "told skipped")
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"a retry forgets the last attempts", func(w *world) {
		p := w.submit(task("z"), task("a", "z"))
		n := w.node("n1")
		n.end(succeed(n.one(), `1`))
		n.one()
		must(w.s.Rescue(w.ctx, n.id, -1))(w)
		n = w.node("n2")
		c := n.one()
		n.end(protocol.Ending{Claim: c.Claim, Status: plan.Failed, Reason: plan.ReasonSignal, Detail: "killed", Exit: &plan.Exit{Code: -1, Signal: "SIGKILL"}})
		w.retry(p, false)
		a := w.named(p, "a")
		w.equal("a", []any{a.Status, a.Attempt, a.Rescues, a.Reason, a.Detail, a.Exit == nil, a.Ended.IsZero(), a.Node},
			[]any{plan.Queued, 0, 0, "", "", true, true, ""})
		again := n.one()
		w.equal("attempt", []any{again.Attempt, again.Rescues}, "[1 0]")
		w.equalJSON("params", again.Params, `{"needs":{"z":1},"args":[1]}`)
		w.equal("the claim before the retry", n.end(ok(c)).Lost, []plan.TaskID{c.Task})
		n.end(ok(again))
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"with downstream what succeeded runs again too, with what its parents return now", func(w *world) {
		p := w.submit(task("a"), task("b", "a"), task("c", "b"), task("other"))
		n := w.node("n1")
		n.run(func(c protocol.ClaimedTask) protocol.Ending { return succeed(c, `"first"`) })
		w.wantPlan(p, plan.PlanSucceeded)
		w.retry(p, true, "a")
		w.want(p, "a queued", "b held", "c held", "other succeeded")
		n.run(func(c protocol.ClaimedTask) protocol.Ending { return succeed(c, `"second"`) })
		w.equalJSON("params", w.named(p, "c").Params, `{"needs":{"b":"second"},"args":["second"]}`)
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"a retry may bring new definitions, params and queues", func(w *world) {
		p := w.submit(task("z"), plan.TaskSpec{Name: "a", Needs: []string{"z"}, Params: json.RawMessage(`{"run":"old"}`)}, task("b", "a"))
		n := w.node("n1")
		n.run(failing("a"))
		a := w.named(p, "a")
		q := w.queue("narrow", 1)
		w.no(w.tryRetry(p.ID, rules.Ask{Replace: []plan.Task{{
			ID: a.ID, Name: "a", Queue: q.ID, Params: json.RawMessage(`{"run":"new"}`),
			Definition: plan.Definition{Timeout: time.Hour, Rank: a.Rank, ContinueOnError: true},
		}}}))
		c := n.one()
		w.equal("claim", []any{c.Name, c.QueueName, c.Timeout, c.ContinueOnError}, "[a narrow 1h0m0s true]")
		w.equalJSON("params", c.Params, `{"run":"new","needs":{"z":null},"args":[null]}`)
		n.end(fail(c))
		n.run(ok)
		w.want(p, "a failed", "b succeeded")
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"new params of many tasks may be large together", func(w *world) {
		const count = 20
		p := w.submit(numbered(count)...)
		n := w.node("n1")
		n.run(fail)
		params := json.RawMessage(`{"text":"` + strings.Repeat("x", 900_000) + `"}`)
		var replace []plan.Task
		for _, t := range w.all(store.TaskQuery{Plan: p.ID}) {
			replace = append(replace, plan.Task{ID: t.ID, Name: t.Name, Queue: t.Queue, Params: params, Definition: plan.Definition{Rank: t.Rank}})
		}
		w.no(w.tryRetry(p.ID, rules.Ask{Replace: replace}))
		ran := 0
		for claimed := n.claim(1); len(claimed) > 0; claimed = n.claim(1) {
			ran++
			w.equal("bytes of params", len(claimed[0].Params), len(params))
			n.end(ok(claimed[0]))
		}
		w.equal("ran", ran, count)
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"what is of a queue that was deleted is not retried, unless it gets another one", func(w *world) {
		p := w.submit(task("z"), plan.TaskSpec{Name: "a", Needs: []string{"z"}, Queue: "other", Plugin: "exec"}, task("b", "a"))
		n := w.node("n1")
		n.run(failing("a", "b"))
		states := []string{"z succeeded", "a failed", "b skipped"}
		w.want(p, states...)
		a := w.named(p, "a")
		queues, is := w.s.(store.QueueDeleter)
		if !is {
			w.Skip("this store deletes no queues")
		}
		w.no(queues.DeleteQueue(w.ctx, a.Queue))
		before := w.plan(p.ID)
		w.refused(w.tryRetry(p.ID, rules.Ask{}), `task "a" cannot run again, since its queue was deleted; submit its plan again, or retry it`)
		w.want(p, states...)
		w.wantPlan(p, before.State)
		w.equal("edits", w.plan(p.ID).Edits, before.Edits)
		w.no(w.tryRetry(p.ID, rules.Ask{Replace: []plan.Task{
			{ID: a.ID, Name: "a", Queue: w.queue("exec", 0).ID, Params: a.Params, Definition: plan.Definition{Rank: a.Rank}},
		}}))
		n.run(ok)
		w.want(p, "z succeeded", "a succeeded", "b succeeded")
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"a retry may bring new params of the plan, and leaves them as they are otherwise", func(w *world) {
		p := w.submit(task("a"), task("b"))
		n := w.node("n1")
		n.run(failing("a", "b"))
		refused := append(w.askRetry(p, false, "a").Tasks, plan.TaskID{ID: plan.NewID(time.Now())})
		before := w.plan(p.ID).Params
		w.is(w.tryRetry(p.ID, rules.Ask{Tasks: refused, Params: json.RawMessage(`{"level":0}`)}), plan.ErrNotFound)
		w.equalJSON("params after a retry that was refused", w.plan(p.ID).Params, string(before))
		w.no(w.tryRetry(p.ID, rules.Ask{Params: json.RawMessage(`{"level":1,"who":"x<y"}`)}))
		w.equalJSON("params", w.plan(p.ID).Params, `{"level":1,"who":"x<y"}`)
		n.run(failing("b"))
		w.retry(p, false, "b")
		w.equalJSON("params after a retry without any", w.plan(p.ID).Params, `{"level":1,"who":"x<y"}`)
		n.run(ok)
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"a retry with a new definition of a task that does not run again any more is refused, and changes nothing", func(w *world) {
		p := w.submit(task("a"), task("b", "a"), task("c"))
		n := w.node("n1")
		n.run(failing("a", "c"))
		b, before := w.named(p, "b"), w.plan(p.ID).Params
		b.Timeout = time.Hour
		ask := rules.Ask{Replace: []plan.Task{b}, Params: json.RawMessage(`{"level":1}`)}
		w.retry(p, false, "a")
		n.run(ok)
		edits := w.plan(p.ID).Edits
		w.refused(w.tryRetry(p.ID, ask), `task "b" has a new definition, and does not run again`)
		w.want(p, "a succeeded", "b succeeded", "c failed")
		w.wantPlan(p, plan.PlanFailed)
		w.equal("the timeout and the edits", []any{w.named(p, "b").Timeout, w.plan(p.ID).Edits}, []any{time.Duration(0), edits})
		w.equalJSON("the params", w.plan(p.ID).Params, string(before))
	}},
	{"a retry that is only checked says what it would take, or why not, and changes nothing", func(w *world) {
		p := w.submit(task("a"), task("b", "a"), task("c"))
		n := w.node("n1")
		n.run(failing("a"))
		before, ask := w.plan(p.ID), w.askRetry(p, false)
		ask.Check, ask.Params = true, json.RawMessage(`{"level":1}`)
		would := must(w.s.Retry(w.ctx, p.ID, ask))(w)
		again := w.askRetry(p, false, "c")
		again.Check = true
		w.refused(w.tryRetry(p.ID, again), `task "c" succeeded; to run it and what is below it again add --downstream`)
		w.want(p, "a failed", "b skipped", "c succeeded")
		w.equal("the plan", w.plan(p.ID), fmt.Sprint(before))
		w.equal("what a retry takes then", must(w.s.Retry(w.ctx, p.ID, rules.Ask{}))(w), fmt.Sprint(would))
	}},
	{"a retry takes what has failed by now, though the caller has not seen it", func(w *world) {
		p := w.submit(task("a"), task("b"), task("c", "b"))
		n := w.node("n1")
		c := n.take("a", "b")
		n.end(fail(c[0]))
		a := w.named(p, "a")
		a.Timeout = time.Hour
		n.end(fail(c[1]))
		took := must(w.s.Retry(w.ctx, p.ID, rules.Ask{Replace: []plan.Task{a}}))(w)
		w.equal("how many it took", len(took), 3)
		w.want(p, "a queued", "b queued", "c held")
		w.equal("timeouts", []time.Duration{w.named(p, "a").Timeout, w.named(p, "b").Timeout}, "[1h0m0s 0s]")
		n.run(ok)
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"a retry looks at its tasks in the order in which they were added, and one that fails closes the plan for those after it", func(w *world) {
		p := w.submitSpec(&plan.Spec{Name: "nightly", OnFailure: plan.Stop, Tasks: []plan.TaskSpec{
			task("list"), task("other"),
			{Name: "before", Needs: []string{"list"}, When: plan.AllSkipped},
			each("copy", plan.Foreach{Value: "needs.list"}, "list"),
			{Name: "after", Needs: []string{"list"}, When: plan.AllSkipped},
			task("below", "before"),
		}})
		n := w.node("n1")
		c := n.take("list", "other")
		w.no(w.s.CancelPlan(w.ctx, p.ID, false))
		n.end(ok(c[0]), giveBack(c[1]))
		n.sweep()
		w.want(p, "list succeeded", "other terminated", "before cancelled", "copy cancelled", "after cancelled")
		w.retry(p, false)
		n.sweep()
		w.want(p, "before skipped", "copy failed", "after skipped", "other skipped")
		w.equal("details", []string{w.named(p, "before").Detail, w.named(p, "after").Detail}, []string{"", rules.ByFailure})
	}},
	{"a retry is refused while a task of it is claimed or running, and changes nothing", func(w *world) {
		p := w.submit(task("a"), task("b"), plan.TaskSpec{Name: "below", Needs: []string{"a"}, When: plan.AllDone})
		n := w.node("n1")
		c := n.take("a", "b")
		n.end(fail(c[0]), fail(c[1]))
		below := n.one()
		w.is(w.tryRetry(p.ID, w.askRetry(p, false, "a", "b")), plan.ErrPlanActive)
		w.want(p, "a failed", "b failed", "below running")
		n.end(ok(below))
		w.wantPlan(p, plan.PlanFailed)
	}},
	{"a retry takes a task below that was queued, and is refused once that has begun to run", func(w *world) {
		p := w.submit(task("a"), task("b", "a"), task("slow"))
		n := w.node("n1")
		first := n.take("a", "slow")
		n.end(fail(first[0]))
		q := w.queue("exec", 0)
		late := w.newTask(q, "late", w.named(p, "a").ID)
		late.When = plan.AnyFailed
		w.add(p.ID, late)
		w.want(p, "late queued")
		w.retry(p, false)
		w.want(p, "a queued", "b held", "late held")
		n.end(fail(n.one()))
		c := n.claim(9)
		w.is(w.tryRetry(p.ID, rules.Ask{}), plan.ErrPlanActive)
		w.want(p, "a failed", "b skipped", "late running")
		n.end(ok(c[0]), ok(first[1]))
		w.wantPlan(p, plan.PlanFailed)
	}},
	{"a queued task below goes back to held first", func(w *world) {
		p := w.submit(task("a"), plan.TaskSpec{Name: "below", Needs: []string{"a"}, When: plan.AllDone}, task("below2", "below"))
		n := w.node("n1")
		n.end(fail(n.one()))
		w.want(p, "below queued")
		w.retry(p, false, "a")
		w.want(p, "a queued", "below held", "below2 held")
		w.equal("ran", n.run(ok), "[a below below2]")
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"a plan that was cancelled runs again", func(w *world) {
		p := w.submit(task("a"), task("b", "a"), task("c", "b"))
		n := w.node("n1")
		n.end(ok(n.one()))
		w.no(w.s.CancelPlan(w.ctx, p.ID, false))
		n.sweep()
		w.wantPlan(p, plan.PlanCancelled)
		w.retry(p, false)
		w.want(p, "a succeeded", "b queued", "c held")
		w.equal("plan", []any{w.plan(p.ID).State, w.plan(p.ID).Closing}, []any{plan.PlanRunning, plan.Open})
		w.equal("ran", n.run(ok), "[b c]")
		w.wantPlan(p, plan.PlanSucceeded)
		w.equal("cancel mark", w.named(p, "b").Cancel, false)
	}},
	{"a plan that is still being cancelled runs again, and its node still stops what it was told to", func(w *world) {
		p := w.submit(task("a"), task("slow"), task("b", "a"))
		n := w.node("n1")
		c := n.take("a", "slow")
		n.end(giveBack(c[0]))
		w.no(w.s.CancelPlan(w.ctx, p.ID, false))
		n.sweep()
		w.want(p, "a terminated", "b cancelled", "slow running")
		w.wantPlan(p, plan.PlanRunning)
		w.retry(p, false, "a")
		w.want(p, "a queued", "b held", "slow running")
		n.end(protocol.Ending{Claim: c[1].Claim, Status: plan.Terminated, Reason: plan.ReasonCancelled})
		w.equal("ran", n.run(ok), "[a b]")
		w.wantPlan(p, plan.PlanFailed)
	}},
	{"a plan that a failure stopped runs again", func(w *world) {
		p := w.submitSpec(&plan.Spec{Name: "nightly", OnFailure: plan.Stop, Tasks: []plan.TaskSpec{task("a"), task("b", "a"), task("c"), task("d", "c")}})
		n := w.node("n1")
		c := n.take("a", "c")
		n.end(ok(c[1]), fail(c[0]))
		n.sweep()
		w.want(p, "a failed", "b skipped", "c succeeded", "d skipped")
		w.wantPlan(p, plan.PlanFailed)
		w.retry(p, false)
		w.want(p, "a queued", "b held", "d queued")
		n.run(ok)
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"a retry while the rest of the plan runs on", func(w *world) {
		p := w.submit(task("a"), task("slow"), task("b", "a", "slow"))
		n := w.node("n1")
		c := n.take("a", "slow")
		n.end(fail(c[0]))
		w.want(p, "b skipped")
		w.retry(p, false, "a")
		w.want(p, "a queued", "b held", "slow running")
		again := n.one()
		n.end(ok(c[1]))
		w.want(p, "b held")
		n.end(ok(again))
		n.run(ok)
		w.want(p, "b succeeded")
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"a retry of a parent below which a late task waits holds that task again", func(w *world) {
		p := w.submit(task("a"), task("b"))
		n := w.node("n1")
		c := n.take("a", "b")
		n.end(fail(c[0]))
		late := w.newTask(w.queue("exec", 0), "late", c[0].Task, c[1].Task)
		late.When = plan.AllDone
		w.add(p.ID, late)
		w.retry(p, false, "a")
		n.end(ok(c[1]))
		w.want(p, "a queued", "late held")
		w.equal("ran", n.run(ok), "[a late]")
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"a retry of a task of no plan is refused while a task that needs it is queued, and names that by its id", func(w *world) {
		q := w.queue("exec", 0)
		a := w.newTask(q, "a")
		b := w.newTask(q, "b", a.ID)
		b.When = plan.AllDone
		w.add(plan.PlanID{}, a, b)
		n := w.node("n1")
		n.end(fail(n.one()))
		again := rules.Ask{Tasks: []plan.TaskID{a.ID}}
		w.refused(w.tryRetry(plan.PlanID{}, again),
			`task "b" below is queued, and not among what is to run again: wait for it, or cancel it: sluice task cancel `+b.ID.String())
		c := n.one()
		w.is(w.tryRetry(plan.PlanID{}, again), plan.ErrPlanActive)
		w.equal("what was not retried", w.task(a.ID).Status, plan.Failed)
		n.end(ok(c))
		w.no(w.tryRetry(plan.PlanID{}, again))
		w.equal("ran", n.run(ok), "[a]")
	}},
	{"tasks of no plan are retried too", func(w *world) {
		q := w.queue("exec", 0)
		a := w.newTask(q, "a")
		b := w.newTask(q, "b", a.ID)
		w.add(plan.PlanID{}, a, b)
		n := w.node("n1")
		n.run(failing("a"))
		w.equal("b", w.task(b.ID).Reason, plan.ReasonSkipped)
		w.is(w.tryRetry(plan.PlanID{}, rules.Ask{}), plan.ErrNotFound)
		w.no(w.tryRetry(plan.PlanID{}, rules.Ask{Tasks: []plan.TaskID{b.ID, a.ID}}))
		w.equal("status", []any{w.task(a.ID).Status, w.task(b.ID).Status}, []any{plan.Queued, plan.Held})
		w.equal("ran", n.run(ok), "[a b]")
	}},
	{"a large retry holds and releases what it should, layer by layer", func(w *world) {
		const wide, deep = 100, 15
		spec := &plan.Spec{Name: "nightly"}
		for d := range deep {
			for i := range wide {
				t := task(fmt.Sprint("t", d, "-", i))
				if d > 0 {
					t.Needs = []string{fmt.Sprint("t", d-1, "-", i), fmt.Sprint("t", d-1, "-", (i+1)%wide)}
				}
				spec.Add(t)
			}
		}
		p := w.submitSpec(spec)
		n := w.node("n1")
		n.run(func(c protocol.ClaimedTask) protocol.Ending {
			if c.Attempt == 1 && c.Name[0:2] == "t0" {
				return fail(c)
			}
			return ok(c)
		})
		n.sweep()
		w.equal("skipped", w.plan(p.ID).Counts.Skipped, wide*(deep-1))
		w.retry(p, false)
		w.equal("counts", w.plan(p.ID).Counts.Unfinished(), wide*deep)
		w.checkSettledAfter(n)
		w.equal("ran", len(n.run(ok)), wide*deep)
		w.wantPlan(p, plan.PlanSucceeded)
	}},
}
