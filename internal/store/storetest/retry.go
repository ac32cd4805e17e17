package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// selectRetry chooses what a retry of the named tasks, or of all that did not succeed, takes back.
func (w *world) selectRetry(p plan.Plan, downstream bool, names ...string) []plan.Retried {
	w.Helper()
	tasks := w.all(store.TaskQuery{Plan: p.ID, Needs: true})
	var chosen []plan.TaskID
	for _, t := range tasks {
		if slices.Contains(names, t.Name) {
			chosen = append(chosen, t.ID)
		}
	}
	return must(rules.SelectRetry(tasks, chosen, downstream))(w)
}

func (w *world) retry(p plan.Plan, downstream bool, names ...string) {
	w.Helper()
	w.no(w.s.Retry(w.ctx, p.ID, w.selectRetry(p, downstream, names...), nil, nil))
}

// endAll has a node run what it does not hold yet; the task of a name returns the output.
func (w *world) endAll(n *node, name, output string) {
	w.Helper()
	for {
		claimed := n.turn(plan.Turn{Slots: 10}).Claimed
		if len(claimed) == 0 {
			return
		}
		for _, c := range claimed {
			if c.Name == name {
				n.end(succeed(c, output))
			} else {
				n.end(withOutput(c))
			}
		}
	}
}

// endBut ends what the node holds, and what it can claim then, but for the tasks of these names.
func (n *node) endBut(names ...string) {
	n.w.Helper()
	for ended := true; ended; {
		n.claim(99)
		ended = false
		for _, c := range held(n) {
			if !slices.Contains(names, c.Name) {
				n.end(withOutput(c))
				ended = true
			}
		}
	}
}

// failing ends the named tasks as failed and the others well.
func failing(names ...string) func(plan.ClaimedTask) plan.Ending {
	return func(c plan.ClaimedTask) plan.Ending {
		if slices.Contains(names, c.Name) {
			return fail(c)
		}
		return withOutput(c)
	}
}

var retryCases = []testCase{
	{"nothing of a plan whose submission ended half-way runs again", func(w *world) {
		p, tasks := w.compile(&plan.Spec{Name: "nightly", Tasks: []plan.TaskSpec{task("a"), task("b"), task("c", "a")}})
		p = must(w.s.CreatePlan(w.ctx, p))(w)
		w.no(w.s.AddTasks(w.ctx, p.ID, tasks[:2]))
		w.no(w.s.CancelTask(w.ctx, tasks[0].ID))
		a := []plan.Retried{{ID: tasks[0].ID, Status: plan.Cancelled}}
		w.is(w.s.Retry(w.ctx, p.ID, a, nil, nil), plan.ErrPlanNotReady)
		w.wantPlan(p, plan.PlanSubmitting)
		w.no(w.s.CancelPlan(w.ctx, p.ID))
		w.is(w.s.Retry(w.ctx, p.ID, append(a, plan.Retried{ID: tasks[1].ID, Status: plan.Cancelled}), nil, nil), plan.ErrPlanNotReady)
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
			must(w.s.Sweep(w.ctx, plan.Sweep{Instance: n.id, Budget: 1}))(w)
		}
		w.wantPlan(p, plan.PlanAbandoned)
		w.is(w.s.Retry(w.ctx, p.ID, []plan.Retried{{ID: a.ID, Status: plan.Cancelled}}, nil, nil), plan.ErrPlanNotReady)
		w.wantPlan(p, plan.PlanAbandoned)
		n.sweep()
		w.equal("ran", n.run(ok), "[]")
	}},
	{"one whose tasks were all in does, though it was cancelled before it was ready", func(w *world) {
		p := w.submitUnready(&plan.Spec{Name: "nightly", Tasks: []plan.TaskSpec{task("a"), task("b", "a")}})
		w.no(w.s.CancelPlan(w.ctx, p.ID))
		w.retry(p, false)
		w.equal("ran", w.node("n1").run(ok), "[a b]")
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"a retry is in the log of what had been tried", func(w *world) {
		p := w.submit(task("a"), task("b", "a"))
		n := w.node("n1")
		try := func(text string, status plan.Status) {
			n.run(func(c plan.ClaimedTask) plan.Ending {
				e := plan.Ending{Claim: c.Claim, Status: status}
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
		n.end(plan.Ending{Claim: c.Claim, Status: plan.Failed, Reason: plan.ReasonSignal, Detail: "killed", Exit: &plan.Exit{Code: -1, Signal: "SIGKILL"}})
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
		n.run(func(c plan.ClaimedTask) plan.Ending { return succeed(c, `"first"`) })
		w.wantPlan(p, plan.PlanSucceeded)
		w.retry(p, true, "a")
		w.want(p, "a queued", "b held", "c held", "other succeeded")
		n.run(func(c plan.ClaimedTask) plan.Ending { return succeed(c, `"second"`) })
		w.equalJSON("params", w.named(p, "c").Params, `{"needs":{"b":"second"},"args":["second"]}`)
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"a retry may bring new definitions, params and queues", func(w *world) {
		p := w.submit(task("z"), plan.TaskSpec{Name: "a", Needs: []string{"z"}, Params: json.RawMessage(`{"run":"old"}`)}, task("b", "a"))
		n := w.node("n1")
		n.run(failing("a"))
		a := w.named(p, "a")
		q := w.queue("narrow", 1)
		w.no(w.s.Retry(w.ctx, p.ID, w.selectRetry(p, false), []plan.Task{{
			ID: a.ID, Name: "a", Queue: q.ID, Params: json.RawMessage(`{"run":"new"}`),
			Definition: plan.Definition{Timeout: time.Hour, Rank: a.Rank, ContinueOnError: true},
		}}, nil))
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
		tasks := make([]plan.TaskSpec, count)
		for i := range tasks {
			tasks[i] = task(fmt.Sprint("t", i))
		}
		p := w.submit(tasks...)
		n := w.node("n1")
		n.run(fail)
		params := json.RawMessage(`{"text":"` + strings.Repeat("x", 900_000) + `"}`)
		var replace []plan.Task
		for _, t := range w.all(store.TaskQuery{Plan: p.ID}) {
			replace = append(replace, plan.Task{ID: t.ID, Name: t.Name, Queue: t.Queue, Params: params, Definition: plan.Definition{Rank: t.Rank}})
		}
		w.no(w.s.Retry(w.ctx, p.ID, w.selectRetry(p, false), replace, nil))
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
		w.refused(w.s.Retry(w.ctx, p.ID, w.selectRetry(p, false), nil, nil), `task "a" cannot run again, since its queue was deleted; submit its plan again, or retry it`)
		w.want(p, states...)
		w.wantPlan(p, before.State)
		w.equal("edits", w.plan(p.ID).Edits, before.Edits)
		w.no(w.s.Retry(w.ctx, p.ID, w.selectRetry(p, false), []plan.Task{
			{ID: a.ID, Name: "a", Queue: w.queue("exec", 0).ID, Params: a.Params, Definition: plan.Definition{Rank: a.Rank}},
		}, nil))
		n.run(ok)
		w.want(p, "z succeeded", "a succeeded", "b succeeded")
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"a retry may bring new params of the plan, and leaves them as they are otherwise", func(w *world) {
		p := w.submit(task("a"), task("b"))
		n := w.node("n1")
		n.run(failing("a", "b"))
		refused := append(w.selectRetry(p, false), plan.Retried{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Status: plan.Failed})
		before := w.plan(p.ID).Params
		w.is(w.s.Retry(w.ctx, p.ID, refused, nil, json.RawMessage(`{"level":0}`)), plan.ErrNotFound)
		w.equalJSON("params after a retry that was refused", w.plan(p.ID).Params, string(before))
		w.no(w.s.Retry(w.ctx, p.ID, w.selectRetry(p, false), nil, json.RawMessage(`{"level":1,"who":"x<y"}`)))
		w.equalJSON("params", w.plan(p.ID).Params, `{"level":1,"who":"x<y"}`)
		n.run(failing("b"))
		w.retry(p, false, "b")
		w.equalJSON("params after a retry without any", w.plan(p.ID).Params, `{"level":1,"who":"x<y"}`)
		n.run(ok)
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"a retry is refused when a task is not any more as the caller saw it, and changes nothing", func(w *world) {
		p := w.submit(task("a"), task("b", "a"), task("c"))
		n := w.node("n1")
		n.run(failing("a", "c"))
		seen := w.selectRetry(p, false)
		w.retry(p, false, "a")
		w.refused(w.s.Retry(w.ctx, p.ID, seen, nil, nil), `task "b" is held (-4), and was taken for cancelled (-5)`)
		w.want(p, "a queued", "b held", "c failed")
		n.run(ok)
		w.refused(w.s.Retry(w.ctx, p.ID, seen, nil, nil), `task "b" is succeeded (1), and was taken for cancelled (-5)`)
		w.want(p, "a succeeded", "b succeeded", "c failed")
		w.wantPlan(p, plan.PlanFailed)
	}},
	{"a retry is refused while a task of it is claimed or running, and changes nothing", func(w *world) {
		p := w.submit(task("a"), task("b"), plan.TaskSpec{Name: "below", Needs: []string{"a"}, When: plan.AllDone})
		n := w.node("n1")
		c := n.take("a", "b")
		n.end(fail(c[0]), fail(c[1]))
		below := n.one()
		a, b := w.named(p, "a"), w.named(p, "b")
		chosen := []plan.Retried{{ID: below.Task, Status: plan.Running}, {ID: a.ID, Status: plan.Failed}, {ID: b.ID, Status: plan.Failed}}
		w.is(w.s.Retry(w.ctx, p.ID, chosen, nil, nil), plan.ErrPlanActive)
		w.want(p, "a failed", "b failed", "below running")
		n.end(ok(below))
		w.wantPlan(p, plan.PlanFailed)
	}},
	{"a retry is refused when something below was queued, or has begun to run, since the caller looked", func(w *world) {
		p := w.submit(task("a"), task("b", "a"), task("slow"))
		n := w.node("n1")
		first := n.take("a", "slow")
		n.end(fail(first[0]))
		seen := w.selectRetry(p, false)
		q := w.queue("exec", 0)
		late := w.newTask(q, "late", w.named(p, "a").ID)
		late.When = plan.AnyFailed
		w.add(p.ID, late)
		w.want(p, "late queued")
		refused := func() {
			w.Helper()
			if err := w.s.Retry(w.ctx, p.ID, seen, nil, nil); !errors.Is(err, plan.ErrConflict) && !errors.Is(err, plan.ErrPlanActive) {
				w.Errorf("got error %v, want %v or %v", err, plan.ErrConflict, plan.ErrPlanActive)
			}
		}
		refused()
		w.want(p, "a failed", "b skipped", "late queued")
		c := n.claim(9)
		refused()
		w.want(p, "a failed", "b skipped", "late running")
		n.end(ok(c[0]), ok(first[1]))
		w.wantPlan(p, plan.PlanFailed)
	}},
	{"a retry is refused while a task of no plan below is queued or runs, and holds it if it waits", func(w *world) {
		p := w.submit(task("a"), task("b"))
		n := w.node("n1")
		c := n.take("a", "b")
		n.end(fail(c[0]))
		q := w.queue("exec", 0)
		below, waits := w.newTask(q, "below", c[0].Task), w.newTask(q, "waits", c[0].Task, c[1].Task)
		below.When, waits.When = plan.AllDone, plan.AllDone
		w.add(plan.PlanID{}, below, waits)
		w.equal("status", []any{w.task(below.ID).Status, w.task(waits.ID).Status}, []any{plan.Queued, plan.Held})
		seen := w.selectRetry(p, false, "a")
		w.refused(w.s.Retry(w.ctx, p.ID, seen, nil, nil), `task "below" below is queued, and not among what is to run again`)
		runs := n.one()
		w.is(w.s.Retry(w.ctx, p.ID, seen, nil, nil), plan.ErrPlanActive)
		w.want(p, "a failed", "b running")
		n.end(ok(runs))
		w.no(w.s.Retry(w.ctx, p.ID, seen, nil, nil))
		n.end(ok(c[1]))
		w.equal("waits", w.task(waits.ID).Status, plan.Held)
		w.equal("ran", n.run(ok), "[a waits]")
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"a retry is refused while a task of no plan below waits for its instant, its next attempt or its items", func(w *world) {
		p := w.submit(task("a"))
		n := w.node("n1")
		n.end(succeed(n.one(), `1`))
		a := w.named(p, "a").ID
		q := w.queue("exec", 0)
		copies, tries, instant := w.newTask(q, "copies", a), w.newTask(q, "tries", a), w.newTask(q, "instant", a)
		copies.Foreach = &plan.Foreach{List: json.RawMessage(`[7]`)}
		instant.NotBefore = w.clock.Now().Add(time.Hour)
		for _, below := range []plan.Task{instant, copies, tries} {
			w.add(plan.PlanID{}, below)
			n.end()
			c := n.claim(9)
			for len(c) > 0 && below.ID == tries.ID {
				n.end(later(c[0], time.Hour))
				c = c[1:]
			}
			w.equal("status", w.task(below.ID).Status, plan.Held)
			w.refused(w.s.Retry(w.ctx, p.ID, w.selectRetry(p, true, "a"), nil, nil), fmt.Sprintf("task %q below waits to run, and is not among", below.Name))
			w.want(p, "a succeeded")
			n.end()
			for _, item := range w.all(store.TaskQuery{Of: below.ID}) {
				w.equal("status of the item", item.Status, plan.Running)
				n.end(ok(c[0]))
			}
			w.pass(2 * time.Hour)
			n.sweep()
			n.run(func(c plan.ClaimedTask) plan.Ending {
				w.equalJSON("params of "+c.Name, c.Params, `{"needs":{"a":1},"args":[1]}`)
				return ok(c)
			})
			w.equal("status", w.task(below.ID).Status, plan.Succeeded)
		}
		w.retry(p, true, "a")
		w.equal("ran", n.run(ok), "[a]")
	}},
	{"a retry that would drop an item is refused while a task of no plan that needs it is queued or runs", func(w *world) {
		p := w.submit(task("list"), each("copy", plan.Foreach{Value: "needs.list"}, "list"))
		n := w.node("n1")
		n.run(func(c plan.ClaimedTask) plan.Ending {
			switch c.Name {
			case "list":
				return succeed(c, `["x","y"]`)
			case "copy[1]":
				return fail(c)
			}
			return succeed(c, `"copied"`)
		})
		w.want(p, "copy failed", "copy[0] succeeded", "copy[1] failed")
		below := w.newTask(w.queue("exec", 0), "below", w.named(p, "copy[0]").ID)
		w.add(plan.PlanID{}, below)
		w.equal("status", w.task(below.ID).Status, plan.Queued)
		drops := w.selectRetry(p, true, "list")
		if slices.ContainsFunc(drops, func(r plan.Retried) bool { return r.ID == below.Needs[0] }) {
			w.Fatal("the item that is dropped was chosen")
		}
		w.refused(w.s.Retry(w.ctx, p.ID, drops, nil, nil), `task "below" below is queued, and not among what is to run again`)
		keeps := w.selectRetry(p, false, "copy")
		w.no(w.s.Retry(w.ctx, p.ID, keeps, nil, nil))
		c := n.take("below", "copy[1]")
		w.equalJSON("params", c[0].Params, `{"needs":{"copy[0]":"copied"},"args":["copied"]}`)
		n.end(fail(c[1]))
		w.is(w.s.Retry(w.ctx, p.ID, drops, nil, nil), plan.ErrPlanActive)
		n.end(ok(c[0]))
		w.no(w.s.Retry(w.ctx, p.ID, drops, nil, nil))
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
		w.no(w.s.CancelPlan(w.ctx, p.ID))
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
		w.no(w.s.CancelPlan(w.ctx, p.ID))
		n.sweep()
		w.want(p, "a cancelled", "b cancelled", "slow running")
		w.wantPlan(p, plan.PlanRunning)
		w.retry(p, false, "a")
		w.want(p, "a queued", "b held", "slow running")
		n.end(plan.Ending{Claim: c[1].Claim, Status: plan.Terminated, Reason: plan.ReasonCancelled})
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
	{"tasks of no plan are retried too", func(w *world) {
		q := w.queue("exec", 0)
		a := w.newTask(q, "a")
		b := w.newTask(q, "b", a.ID)
		w.add(plan.PlanID{}, a, b)
		n := w.node("n1")
		n.run(failing("a"))
		w.equal("b", w.task(b.ID).Reason, plan.ReasonSkipped)
		w.no(w.s.Retry(w.ctx, plan.PlanID{}, []plan.Retried{{ID: b.ID, Status: plan.Cancelled}, {ID: a.ID, Status: plan.Failed}}, nil, nil))
		w.equal("status", []any{w.task(a.ID).Status, w.task(b.ID).Status}, []any{plan.Queued, plan.Held})
		w.equal("ran", n.run(ok), "[a b]")
	}},
	{"a retry of a foreach task runs its items that failed, and gathers all", func(w *world) {
		p := w.submit(each("copy", list(0, 1, 2, 3)), task("after", "copy"))
		n := w.node("n1")
		n.run(failing("copy[1]", "copy[3]"))
		w.want(p, "copy failed", "after skipped")
		w.equal("counts", w.plan(p.ID).Counts, plan.Counts{Succeeded: 2, Failed: 2, Skipped: 1, Gathered: 1})
		w.retry(p, false)
		w.equal("counts", w.plan(p.ID).Counts, plan.Counts{Held: 1, Queued: 2, Succeeded: 2, Gathering: 1})
		w.want(p, "copy held", "copy[0] succeeded", "copy[1] queued", "copy[2] succeeded", "copy[3] queued", "after held")
		w.equal("ran", n.run(failing("copy[3]")), "[copy[1] copy[3]]")
		w.equalJSON("output", w.named(p, "copy").Output, `[0,2,4,null]`)
		w.want(p, "copy failed")
		w.equal("detail", w.named(p, "copy").Detail, "1 of 4 items failed")
		w.retry(p, false, "copy")
		n.run(failing())
		w.equalJSON("output", w.named(p, "copy").Output, `[0,2,4,6]`)
		w.want(p, "copy succeeded", "after succeeded")
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"a retry may bring new definitions and params of items, each by its own id, and leaves the others as they were", func(w *world) {
		spec := each("copy", list(0, 1, 2))
		spec.Params = json.RawMessage(`{"how":"badly"}`)
		p := w.submit(spec)
		n := w.node("n1")
		n.run(failing("copy[0]", "copy[1]"))
		better := w.named(p, "copy")
		better.Params, better.Timeout = json.RawMessage(`{"how":"well"}`), time.Hour
		first := rules.ItemTask(&better, 0, json.RawMessage("0"), better.Params, w.clock.Now())
		first.Queue = w.queue("narrow", 1).ID
		w.no(w.s.Retry(w.ctx, p.ID, w.selectRetry(p, false), []plan.Task{better, first}, nil))
		var got []string
		n.run(func(c plan.ClaimedTask) plan.Ending {
			got = append(got, fmt.Sprint(c.Name, " ", c.QueueName, " ", c.Timeout))
			return succeed(c, string(c.Params))
		})
		slices.Sort(got)
		w.equal("ran", got, "[copy[0] narrow 1h0m0s copy[1] exec 0s]")
		w.equalJSON("output", w.named(p, "copy").Output, `[{"how":"well","item":0},{"how":"badly","item":1},4]`)
		w.equal("the foreach task", w.named(p, "copy").Timeout, time.Hour)
		w.equal("an item that succeeded", w.named(p, "copy[2]").Timeout, time.Duration(0))
	}},
	{"a retry of one item gathers its task again, and leaves the other items", func(w *world) {
		p := w.submit(each("copy", list(0, 1, 2)), task("after", "copy"))
		n := w.node("n1")
		n.run(failing("copy[0]", "copy[1]"))
		w.retry(p, false, "copy[0]")
		w.want(p, "copy held", "copy[0] queued", "copy[1] failed", "copy[2] succeeded", "after held")
		w.equal("ran", n.run(failing()), "[copy[0]]")
		w.want(p, "copy failed", "after skipped")
		w.equalJSON("output", w.named(p, "copy").Output, `[0,null,4]`)
		w.wantPlan(p, plan.PlanFailed)
	}},
	{"a retry of one item takes along those that wait, with their task", func(w *world) {
		p := w.submit(each("copy", list(0, 1, 2)), task("after", "copy"))
		w.no(w.s.CancelTask(w.ctx, w.named(p, "copy[1]").ID))
		w.want(p, "copy held", "copy[0] queued", "copy[1] cancelled", "copy[2] queued")
		w.retry(p, false, "copy[1]")
		w.want(p, "copy held", "copy[0] queued", "copy[1] queued", "copy[2] queued", "after held")
		n := w.node("n1")
		w.equal("ran", n.run(failing()), "[copy[0] copy[1] copy[2] after]")
		w.equalJSON("output", w.named(p, "copy").Output, `[0,2,4]`)
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"a foreach task whose items could not be made makes them after a retry of its parent", func(w *world) {
		p := w.submit(task("list"), each("copy", plan.Foreach{Value: "needs.list"}, "list"))
		n := w.node("n1")
		n.end(succeed(n.one(), `"not a list"`))
		w.want(p, "copy failed")
		w.retry(p, true, "list")
		w.want(p, "list queued", "copy held")
		n.end(succeed(n.one(), `[5,6]`))
		w.equal("ran", n.run(failing()), "[copy[0] copy[1]]")
		w.equalJSON("output", w.named(p, "copy").Output, `[0,2]`)
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"when the parent that its list comes from runs again, a foreach task makes its items anew", func(w *world) {
		for _, c := range []struct{ name, first, then, params, output string }{
			{"fewer items", `[1,2,3]`, `[4,5]`, `{"needs":{"list":null},"args":[null],"item":4}`, `[0,2]`},
			{"more items", `[1]`, `[4,5,6]`, `{"needs":{"list":null},"args":[null],"item":4}`, `[0,2,4]`},
			{"other items", `["a","b"]`, `["c","a"]`, `{"needs":{"list":null},"args":[null],"item":"c"}`, `[0,2]`},
			{"no items", `[1,2]`, `[]`, ``, `[]`},
			{"items after none", `[]`, `[7]`, `{"needs":{"list":null},"args":[null],"item":7}`, `[0]`},
			{"as many as several joins have, and a few", string(ordinals(600)), `[1,2]`, `{"needs":{"list":null},"args":[null],"item":1}`, `[0,2]`},
		} {
			p := w.submit(task("list"), each("copy", plan.Foreach{Value: "needs.list"}, "list"), task("after", "copy"))
			n := w.node("n1")
			run := func(list string) []string {
				return n.run(func(c plan.ClaimedTask) plan.Ending {
					if c.Name == "list" {
						return succeed(c, list)
					}
					e := withOutput(c)
					e.Log = []plan.LogEntry{{At: w.clock.Now(), Attempt: c.Attempt, Stream: plan.Stdout, Text: list}}
					return e
				})
			}
			run(c.first)
			w.wantPlan(p, plan.PlanSucceeded)
			w.retry(p, true, "list")
			w.want(p, "list queued", "copy held", "after held")
			copied := w.named(p, "copy")
			w.equal(c.name+": copy", []any{copied.Items, copied.Expanded, copied.Expanding, w.plan(p.ID).Counts.Total()}, []any{0, false, false, 3})
			run(c.then)
			w.wantPlan(p, plan.PlanSucceeded)
			var items []json.RawMessage
			w.no(json.Unmarshal([]byte(c.then), &items))
			w.equal(c.name+": tasks", w.plan(p.ID).Counts.Succeeded, max(3, 2+len(items)))
			w.equalJSON(c.name+": output", w.named(p, "copy").Output, c.output)
			w.equalJSON(c.name+": params", w.named(p, "after").Params, `{"needs":{"copy":`+c.output+`},"args":[`+c.output+`]}`)
			if len(items) > 0 {
				first := w.named(p, "copy[0]")
				w.equalJSON(c.name+": params", first.Params, c.params)
				entries, _, err := w.s.Log(w.ctx, first.ID, 0, 10)
				w.no(err)
				w.equal(c.name+": log", []any{len(entries), entries[len(entries)-1].Text, first.Attempt}, []any{1, c.then, 1})
			}
		}
	}},
	{"a task that needs an item waits for the new one with its index, and is skipped if there is none", func(w *world) {
		p := w.submit(task("list"), each("copy", plan.Foreach{Value: "needs.list"}, "list"), task("slow"))
		n := w.node("n1")
		var slow plan.ClaimedTask
		for _, c := range n.turn(plan.Turn{Slots: 2}).Claimed {
			if c.Name == "list" {
				n.end(succeed(c, `[1,2,3]`))
			} else {
				slow = c
			}
		}
		w.endAll(n, "", "")
		q := plan.Queue{ID: w.named(p, "slow").Queue}
		item := func(k int) plan.TaskID { return w.named(p, rules.ItemName("copy", k)).ID }
		first, third, after := w.newTask(q, "first", item(0), slow.Task), w.newTask(q, "third", item(2), slow.Task), w.newTask(q, "after", item(2), slow.Task)
		after.When = plan.AllDone
		plain := w.newTask(q, "plain", item(1), slow.Task)
		w.add(p.ID, first, third, after)
		w.add(plan.PlanID{}, plain)
		w.retry(p, true, "list")
		w.endAll(n, "list", `[4,5]`)
		w.want(p, "copy succeeded", "first held", "third skipped", "after held")
		w.equal("why", w.named(p, "third").Detail, "it needs copy[2], and copy has 2 items since it was retried")
		n.end(ok(slow))
		w.endAll(n, "", "")
		w.wantPlan(p, plan.PlanSucceeded)
		w.want(p, "first succeeded", "third skipped", "after succeeded")
		w.equal("the one of no plan", w.task(plain.ID).Status, plan.Succeeded)
		w.equalJSON("params", w.task(plain.ID).Params, `{"needs":{"copy[1]":2,"slow":null},"args":[2,null]}`)
		w.equal("needs", w.task(plain.ID).Needs[0], item(1))
		w.equalJSON("params of the one that ran without", w.named(p, "after").Params, `{"needs":{"copy[2]":null,"slow":null},"args":[null,null]}`)
	}},
	{"tasks of many parents wait for an item that a retry makes again, and are skipped if it makes none", func(w *world) {
		p := w.submit(task("list"), each("copy", plan.Foreach{Value: "needs.list"}, "list"), task("slow"))
		n := w.node("n1")
		n.endBut("slow", "list")
		n.end(succeed(n.holdOne("list"), `[1,2,3]`))
		n.endBut("slow")
		q := plan.Queue{ID: w.named(p, "slow").Queue}
		var others []plan.Task
		var ids []plan.TaskID
		for i := range 400 {
			others = append(others, w.newTask(q, fmt.Sprint("t", i)))
			ids = append(ids, others[i].ID)
		}
		many := func(name string, k int, when plan.When) plan.Task {
			t := w.newTask(q, name, append(slices.Clone(ids), w.named(p, rules.ItemName("copy", k)).ID)...)
			t.When = when
			return t
		}
		first, third, after := many("first", 0, plan.AllSucceeded), many("third", 2, plan.AllSucceeded), many("after", 2, plan.AllDone)
		w.add(p.ID, append(others, first, third, after)...)
		w.retry(p, true, "list")
		n.endBut("slow", "list")
		w.want(p, "t399 succeeded", "copy held", "first held", "third held", "after held")
		n.end(succeed(n.holdOne("list"), `[4,5]`))
		n.endBut("slow")
		w.want(p, "first succeeded", "third skipped", "after succeeded")
		w.equal("why", w.named(p, "third").Detail, "it needs copy[2], and copy has 2 items since it was retried")
	}},
	{"a retry that makes a missing item again is refused once a task that needs it was let go on without", func(w *world) {
		p := w.submit(task("list"), each("copy", plan.Foreach{Value: "needs.list"}, "list"), task("slow"))
		n := w.node("n1")
		slow := n.holdOne("slow")
		n.end(succeed(n.holdOne("list"), `[1,2,3]`))
		n.endBut("slow")
		q := plan.Queue{ID: slow.Queue}
		after := w.newTask(q, "after", w.named(p, rules.ItemName("copy", 2)).ID)
		waits := w.newTask(q, "waits", after.Needs[0], slow.Task)
		after.When, waits.When = plan.AllDone, plan.AllDone
		w.add(p.ID, after, waits)
		w.retry(p, true, "list")
		n.end(succeed(n.holdOne("list"), `[4,5]`))
		n.endBut("slow", "after")
		w.want(p, "copy succeeded", "after running", "waits held")
		err := w.s.Retry(w.ctx, p.ID, w.selectRetry(p, true, "list"), nil, nil)
		if !errors.Is(err, plan.ErrPlanActive) {
			w.Errorf("the retry while a task runs: %v, want %v", err, plan.ErrPlanActive)
		}
		n.end(giveBack(n.holding[after.ID]))
		err = w.s.Retry(w.ctx, p.ID, w.selectRetry(p, true, "list"), nil, nil)
		if !errors.Is(err, plan.ErrConflict) {
			w.Errorf("the retry while a task is queued: %v, want %v", err, plan.ErrConflict)
		}
		w.want(p, "list succeeded", "copy succeeded", "after queued")
		n.end(withOutput(n.holdOne("after")))
		w.retry(p, true, "list")
		n.end(succeed(n.holdOne("list"), `[6,7,8]`))
		n.endBut("slow")
		n.end(ok(slow))
		w.endAll(n, "", "")
		w.wantPlan(p, plan.PlanSucceeded)
		w.equalJSON("params", w.named(p, "waits").Params, `{"needs":{"copy[2]":4,"slow":null},"args":[4,null]}`)
	}},
	{"so is one that makes a missing item of a task that made none since, or was no foreach task", func(w *world) {
		for _, plain := range []bool{false, true} {
			p := w.submit(task("list"), each("copy", plan.Foreach{Value: "needs.list"}, "list"), task("slow"))
			n := w.node(plan.NodeName(fmt.Sprint("n-", plain)))
			slow := n.holdOne("slow")
			n.end(succeed(n.holdOne("list"), `[1,2,3]`))
			n.endBut("slow")
			after := w.newTask(plan.Queue{ID: slow.Queue}, "after", w.named(p, rules.ItemName("copy", 2)).ID, slow.Task)
			after.When = plan.AllDone
			w.add(p.ID, after)
			copied := w.named(p, "copy")
			foreach := copied
			copied.Foreach = nil
			var replace, back []plan.Task
			if plain {
				replace, back = []plan.Task{copied}, []plan.Task{foreach}
				back[0].Params = json.RawMessage("{}")
			}
			w.no(w.s.Retry(w.ctx, p.ID, w.selectRetry(p, true, "list"), replace, nil))
			n.end(succeed(n.holdOne("list"), `[]`))
			n.endBut("after")
			w.want(p, "copy succeeded", "after running")
			n.end(giveBack(n.holding[after.ID]))
			w.refused(w.s.Retry(w.ctx, p.ID, w.selectRetry(p, true, "copy"), back, nil), `task "after" below is queued`)
			w.want(p, "copy succeeded", "after queued")
			n.endBut()
			w.wantPlan(p, plan.PlanSucceeded)
		}
	}},
	{"a task that needs an item and its foreach task runs once the task has ended as no foreach task", func(w *world) {
		p := w.submit(each("copy", list(0, 1)), task("slow"))
		n := w.node("n1")
		slow := n.holdOne("slow")
		after := w.newTask(plan.Queue{ID: slow.Queue}, "after", w.named(p, "copy").ID, w.named(p, "copy[1]").ID)
		after.When = plan.AllDone
		w.add(p.ID, after)
		copied := w.named(p, "copy")
		n.endBut("slow", "after")
		n.end(ok(n.holdOne("after")))
		copied.Foreach = nil
		w.no(w.s.Retry(w.ctx, p.ID, w.selectRetry(p, true, "copy"), []plan.Task{copied}, nil))
		w.want(p, "copy queued", "after held")
		n.endBut("slow")
		w.want(p, "copy succeeded", "after succeeded")
		n.end(ok(slow))
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"an item does not run again without its foreach task", func(w *world) {
		p := w.submit(each("copy", list(0, 1)), task("a"))
		n := w.node("n1")
		n.run(failing("copy[1]"))
		item := w.named(p, "copy[1]")
		w.refused(w.s.Retry(w.ctx, p.ID, []plan.Retried{{ID: item.ID, Status: item.Status}}, nil, nil), "without its foreach task")
		w.want(p, "copy failed", "copy[1] failed")
	}},
	{"of several reasons to refuse a retry each store gives the same one", func(w *world) {
		p := w.submit(task("a"), task("b"), task("c", "a"))
		n := w.node("n1")
		held := n.take("a", "b")
		n.end(fail(held[0]))
		a, b := w.named(p, "a"), w.named(p, "b")
		other := a
		other.Queue = plan.QueueID{ID: plan.NewID(time.Now())}
		as := func(t plan.Task, status plan.Status) plan.Retried { return plan.Retried{ID: t.ID, Status: status} }
		refused := func(kind error, why string, replace []plan.Task, chosen ...plan.Retried) {
			w.Helper()
			if err := w.s.Retry(w.ctx, p.ID, chosen, replace, nil); !errors.Is(err, kind) || !strings.Contains(err.Error(), why) {
				w.Errorf("got error %v, want %v that says %q", err, kind, why)
			}
		}
		nobody := plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}}
		refused(plan.ErrConflict, "was taken for", []plan.Task{other}, as(a, plan.Succeeded), as(b, plan.Running))
		refused(plan.ErrPlanActive, "is running", []plan.Task{other}, as(b, plan.Running), as(a, plan.Failed))
		refused(plan.ErrNotFound, other.Queue.String(), []plan.Task{other}, as(a, plan.Failed), as(b, plan.Running))
		refused(plan.ErrNotFound, nobody.ID.String(), nil, as(nobody, plan.Failed), as(b, plan.Running))
		refused(plan.ErrPlanActive, "is running", nil, as(b, plan.Failed), as(nobody, plan.Failed))
		w.no(w.s.Retry(w.ctx, p.ID, nil, nil, nil))
		w.want(p, "a failed", "b running", "c skipped")
	}},
	{"items that succeeded are made anew too, when the parent of a foreach task that failed runs again", func(w *world) {
		p := w.submit(task("list"), each("copy", plan.Foreach{Value: "needs.list"}, "list"), task("after", "copy"))
		n := w.node("n1")
		n.end(succeed(n.one(), `[1,2,3]`))
		n.run(failing("copy[1]"))
		w.want(p, "copy failed", "copy[0] succeeded", "after skipped")
		w.retry(p, true, "list")
		n.end(succeed(n.one(), `[4,5,6]`))
		w.equal("ran", n.run(failing()), "[copy[0] copy[1] copy[2] after]")
		w.equalJSON("params", w.named(p, "copy[2]").Params, `{"needs":{"list":null},"args":[null],"item":6}`)
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"a foreach task whose parent runs again while its items are being made makes only the new ones", func(w *world) {
		p := w.submit(task("list"), task("fails"), each("copy", plan.Foreach{Value: "needs.list"}, "list"), task("after", "copy"))
		n := w.node("n1")
		c := n.take("list", "fails")
		n.end(fail(c[1]))
		n.turn(plan.Turn{Ended: []plan.Ending{succeed(c[0], string(ordinals(250)))}, Budget: 100})
		w.equal("expanding", w.named(p, "copy").Expanding, true)
		w.retry(p, true, "list")
		n.end(succeed(n.one(), `[4,5]`))
		n.run(failing())
		w.equalJSON("output", w.named(p, "copy").Output, `[0,2]`)
		w.want(p, "after succeeded")
		w.equal("tasks", w.plan(p.ID).Counts.Total(), 5)
		w.checkSettledAfter(n)
		w.wantPlan(p, plan.PlanFailed)
	}},
	{"a task of many parents that is retried with another rule is decided by that one", func(w *world) {
		var names []string
		var tasks []plan.TaskSpec
		for i := range 260 {
			names = append(names, fmt.Sprint("t", i))
			tasks = append(tasks, task(names[i]))
		}
		join := task("join", names...)
		join.When = plan.AllDone
		p := w.submit(append(tasks, join)...)
		n := w.node("n1")
		w.equal("tasks that ran", len(n.run(failing(append(names, "join")...))), 261)
		again := w.named(p, "join")
		again.When = plan.AllSucceeded
		w.no(w.s.Retry(w.ctx, p.ID, w.selectRetry(p, false), []plan.Task{again}, nil))
		n.end(fail(n.claim(1)[0]))
		again = w.named(p, "join")
		w.equal("join", []any{again.Status, again.Reason}, []any{plan.Cancelled, plan.ReasonSkipped})
	}},
	{"a foreach task over files that is named with downstream reads them again, and without runs what failed", func(w *world) {
		p := w.submit(each("copy", plan.Foreach{Lines: "/tmp/list"}), task("after", "copy"))
		n := w.node("n1")
		n.end(expand(n.one(), `"a"`, `"b"`, `"c"`))
		n.run(failing("copy[1]"))
		w.retry(p, false, "copy")
		w.equal("ran", n.run(failing("copy[1]")), "[copy[1]]")
		w.retry(p, true, "copy")
		w.want(p, "copy queued", "after held")
		w.equal("tasks", w.plan(p.ID).Counts.Total(), 2)
		c := n.one()
		w.equal("claim", []any{c.Name, c.Attempt}, "[copy 1]")
		n.end(expand(c, `"d"`, `"b"`))
		n.run(failing())
		w.wantPlan(p, plan.PlanSucceeded)
		w.retry(p, true, "copy[1]")
		w.equal("ran", n.run(failing()), "[copy[1] after]")
		w.retry(p, true, "copy")
		n.end(expand(n.one(), `"e"`))
		n.run(failing())
		w.equalJSON("params", w.named(p, "copy[0]").Params, `{"item":"e"}`)
		w.equalJSON("output", w.named(p, "copy").Output, `[0]`)
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"a foreach task over files reads them again when its parent has run again", func(w *world) {
		p := w.submit(task("z"), each("copy", plan.Foreach{Glob: "*"}, "z"))
		n := w.node("n1")
		n.end(succeed(n.one(), `1`))
		n.end(expand(n.one(), `"a"`, `"b"`))
		n.run(failing())
		w.retry(p, true, "z")
		w.want(p, "z queued", "copy held")
		n.end(succeed(n.one(), `2`))
		n.end(expand(n.one(), `"c"`))
		w.equalJSON("params", w.named(p, "copy[0]").Params, `{"needs":{"z":2},"args":[2],"item":"c"}`)
		w.equal("ran", n.run(failing()), "[copy[0]]")
		w.equal("tasks", w.plan(p.ID).Counts.Succeeded, 2)
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"a foreach task that was cancelled runs its items again", func(w *world) {
		p := w.submit(each("copy", list(0, 1, 2)))
		n := w.node("n1")
		n.end()
		n.end(withOutput(n.claim(1)[0]))
		w.no(w.s.CancelPlan(w.ctx, p.ID))
		n.sweep()
		w.wantPlan(p, plan.PlanCancelled)
		w.retry(p, false)
		w.equal("ran", n.run(failing()), "[copy[1] copy[2]]")
		w.equalJSON("output", w.named(p, "copy").Output, `[0,2,4]`)
		w.wantPlan(p, plan.PlanSucceeded)
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
		n.run(func(c plan.ClaimedTask) plan.Ending {
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

// checkSettledAfter sweeps and then checks that nobody is held without a reason.
func (w *world) checkSettledAfter(n *node) {
	w.Helper()
	n.sweep()
	w.checkSettled()
}
