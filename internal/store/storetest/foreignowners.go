package storetest

import (
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/plan"
)

// foreignOwnerCases are the cases of other programs about who has a task.
var foreignOwnerCases = []testCase{
	{"invariant 6: what other programs run counts against a queue's threads", func(w *world) {
		q := w.queue("narrow", 2)
		p := w.submit(in("narrow", "a"), in("narrow", "b"), in("narrow", "c"), in("narrow", "d"))
		n, other := w.node("n1"), w.perl("perl1")
		id := other.run(q)
		w.equal("claimed beside one", len(n.claim(9)), 1)
		other.end(id, plan.Succeeded, "")
		n.sweep()
		w.equal("claimed when that ended", len(n.claim(9)), 1)
		w.equal("claimed when it is full", len(n.claim(9)), 0)
		for _, c := range n.holding {
			n.end(ok(c))
		}
		n.run(ok)
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"a task that another program orphaned is queued again in a plan, and its late end changes nothing", func(w *world) {
		q := w.queue("exec", 0)
		p := w.submit(task("a"), task("b", "a"))
		n, other := w.node("n1"), w.perl("perl1")
		id, _, err := other.Claim(w.ctx, q.ID, "perl1")
		w.no(err)
		w.equal("too early", must(other.Orphan(w.ctx, "perl1"))(w), 0)
		w.pass(6 * time.Minute)
		w.equal("orphaned", must(other.Orphan(w.ctx, "perl1"))(w), 1)
		w.pass(settling)
		n.sweep()
		w.want(p, "a queued", "b held")
		c := n.one()
		w.equal("late start and end", []bool{must(other.Start(w.ctx, id, "perl1"))(w), must(other.End(w.ctx, id, "perl1", plan.Failed))(w)}, "[false false]")
		n.end(ok(c))
		w.equal("late end of what has ended", must(other.End(w.ctx, id, "perl1", plan.Failed))(w), false)
		w.want(p, "a succeeded", "b queued")
	}},
	{"a task of no plan that another program orphaned stays so, and releases its children", func(w *world) {
		q := w.queue("exec", 0)
		parent := w.newTask(q, "parent")
		child, anyway := w.newTask(q, "child", parent.ID), w.newTask(q, "anyway", parent.ID)
		anyway.When = plan.AllDone
		w.add(plan.PlanID{}, parent, child, anyway)
		n, other := w.node("n1"), w.perl("perl1")
		_, _, err := other.Claim(w.ctx, q.ID, "perl1")
		w.no(err)
		w.pass(6 * time.Minute)
		w.equal("orphaned", must(other.Orphan(w.ctx, "perl1"))(w), 1)
		w.pass(settling)
		n.sweep()
		w.equal("states", []any{w.task(parent.ID).Status, w.task(child.ID).Status, w.task(anyway.ID).Status}, []any{plan.Orphaned, plan.Cancelled, plan.Queued})
	}},
	{"invariant 5: a node whose claim another program orphaned by the node's name has lost it", func(w *world) {
		p := w.submit(task("a"))
		n, other := w.node("n1"), w.perl("n1")
		c := n.turn(protocol.Turn{Slots: 1}).Claimed[0]
		w.pass(6 * time.Minute)
		w.equal("orphaned", must(other.Orphan(w.ctx, "n1"))(w), 1)
		w.equal("lost at start", must(w.s.Start(w.ctx, []protocol.Claim{c.Claim}))(w), []plan.TaskID{c.Task})
		w.equal("lost at the end", n.end(ok(c)).Lost, []plan.TaskID{c.Task})
		w.pass(settling)
		n.sweep()
		w.want(p, "a queued")
		n.end(ok(n.one()))
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"invariant 5: an end that another program writes under a node's name stands, and the node's own is refused", func(w *world) {
		p := w.submit(task("a"), task("b", "a"))
		n, other := w.node("n1"), w.perl("n1")
		c := n.one()
		other.end(c.Task, plan.Succeeded, `"theirs"`)
		w.equal("lost", n.end(succeed(c, `"ours"`)).Lost, []plan.TaskID{c.Task})
		n.sweep()
		w.want(p, "a succeeded", "b queued")
		w.equalJSON("output", w.named(p, "a").Output, `"theirs"`)
		b := n.one()
		n.end(ok(b))
		w.equal("an end after the end", must(other.End(w.ctx, b.Task, "n1", plan.Failed))(w), false)
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"a plan that a person cancels ends when another program's runner has", func(w *world) {
		q := w.queue("exec", 0)
		p := w.submit(task("a"), task("b", "a"))
		n, other := w.node("n1"), w.perl("perl1")
		id := other.run(q)
		w.no(w.s.CancelPlan(w.ctx, p.ID, false))
		n.sweep()
		w.want(p, "a running", "b cancelled")
		other.end(id, plan.Succeeded, "")
		n.sweep()
		w.want(p, "a succeeded")
		w.wantPlan(p, plan.PlanCancelled)
	}},
	{"a runner takes over what another program claimed, of a plan and of none, and the attempt counts", func(w *world) {
		q := w.queue("exec", 0)
		p := w.submit(task("a"), plan.TaskSpec{Name: "b", Needs: []string{"a"}, Params: json.RawMessage(`{"user":"x"}`), Timeout: time.Minute}, task("c", "b"))
		n, other := w.node("n1"), w.perl("perl1")
		n.end(succeed(n.one(), `{"n":1}`))
		b, _, err := other.Claim(w.ctx, q.ID, "perl1")
		w.no(err)
		r := w.runner("perl1")
		c := r.takeOver(b, true)
		w.equal("claim", []any{c.Task, c.Attempt, c.Plan, c.Name, c.QueueName, c.Plugin, c.Timeout, c.Token == protocol.Token{}},
			[]any{w.named(p, "b").ID, 1, p.ID, "b", "exec", "exec", time.Minute, false})
		w.equalJSON("params", c.Params, `{"user":"x","needs":{"a":{"n":1}},"args":[{"n":1}]}`)
		now := w.named(p, "b")
		w.equal("task", []any{now.Status, now.Started.IsZero(), now.Attempt, now.Node, now.Instance}, []any{plan.Running, false, 1, "perl1", r.id})
		w.equal("again", r.takeOver(b, true).Claim, c.Claim)
		w.equal("its start by its program", must(other.Start(w.ctx, b, "perl1"))(w), false)
		_, err = w.runner("perl1").tryTake(b, true)
		w.is(err, plan.ErrConflict)
		n.sweep()
		w.want(p, "b running")
		r.end(succeed(c, `2`))
		n.end(ok(n.one()))
		w.wantPlan(p, plan.PlanSucceeded)

		plain := must(other.Insert(w.ctx, q.ID, json.RawMessage(`{"commands":"a"}`), true))(w)
		_, _, err = other.Claim(w.ctx, q.ID, "perl1")
		w.no(err)
		c = r.takeOver(plain, true)
		w.equal("claim", []any{c.Attempt, c.Plan.IsZero(), c.Plugin}, []any{1, true, "exec"})
		w.equalJSON("params", c.Params, `{"commands":"a"}`)
		r.end(succeed(c, `"ok"`))
		w.equalJSON("output", w.task(plain).Output, `"ok"`)
	}},
	{"a task that was taken without start may be started by another program, and ends once", func(w *world) {
		q := w.queue("exec", 0)
		p := w.submit(task("a"), task("b"))
		n, other := w.node("n1"), w.perl("perl1")
		r := w.runner("perl1")
		a, _, err := other.Claim(w.ctx, q.ID, "perl1")
		w.no(err)
		b, _, err := other.Claim(w.ctx, q.ID, "perl1")
		w.no(err)
		ours, theirs := r.takeOver(a, false), r.takeOver(b, false)
		w.want(p, "a claimed", "b claimed")
		w.equal("started", []bool{must(other.Start(w.ctx, a, "perl1"))(w), must(other.Start(w.ctx, b, "perl1"))(w)}, "[true true]")
		w.equal("again", r.takeOver(a, true).Claim, ours.Claim)
		other.end(b, plan.Succeeded, `"theirs"`)
		w.equal("lost", r.end(succeed(ours, `"ours"`), fail(theirs)).Lost, []plan.TaskID{b})
		n.sweep()
		w.equalJSON("a", w.named(p, "a").Output, `"ours"`)
		w.equalJSON("b", w.named(p, "b").Output, `"theirs"`)
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"what another program claimed and a runner took counts against the queue's threads, and is lost with the runner", func(w *world) {
		q := w.queue("narrow", 1)
		p := w.submit(in("narrow", "a"))
		n, other := w.node("n1"), w.perl("perl1")
		dies := func() plan.TaskID {
			w.Helper()
			id, _, err := other.Claim(w.ctx, q.ID, "perl1")
			w.no(err)
			r := w.runner("perl1")
			r.takeOver(id, true)
			w.equal("claimed beside it", len(n.claim(9)), 0)
			w.equal("taken by a rescue", must(w.s.Rescue(w.ctx, r.id, -1))(w), 1)
			n.sweep()
			return id
		}
		id, c := dies(), n.one()
		w.equal("claimed after it", []any{c.Task, c.Attempt, c.Rescues}, []any{id, 2, 1})
		n.end(ok(c))
		w.wantPlan(p, plan.PlanSucceeded)
		plain := must(other.Insert(w.ctx, q.ID, json.RawMessage(`{}`), false))(w)
		w.equal("of no plan", []any{dies(), w.task(plain).Status}, []any{plain, plan.Orphaned})
	}},
	{"what another program claimed and a runner took is lost with the runner as its queue says", func(w *world) {
		for name, queue := range map[string]struct {
			says          plan.OnLost
			inPlan, plain plan.Status
		}{
			"default": {"", plan.Queued, plan.Orphaned}, "retry": {plan.OnLostRetry, plan.Queued, plan.Queued},
			"fail": {plan.OnLostFail, plan.Orphaned, plan.Orphaned},
		} {
			q := must(w.s.CreateQueue(w.ctx, plan.Queue{Name: name, Plugin: "exec", Unlimited: true, QueueSettings: plan.QueueSettings{OnLost: queue.says}}))(w)
			other := w.perl("perl1")
			plain := must(other.Insert(w.ctx, q.ID, json.RawMessage(`{}`), false))(w)
			p := w.submit(in(name, "a"))
			r := w.runner("perl1")
			for range 2 {
				id, some, err := other.Claim(w.ctx, q.ID, "perl1")
				w.no(err)
				w.equal(name+": claimed", some, true)
				r.takeOver(id, true)
			}
			w.equal(name+": taken by a rescue", must(w.s.Rescue(w.ctx, r.id, -1))(w), 2)
			w.equal(name+": states", []plan.Status{w.named(p, "a").Status, w.task(plain).Status}, []plan.Status{queue.inPlan, queue.plain})
		}
	}},
	{"what another program orphaned is judged by its queue in a plan, and stays so in none", func(w *world) {
		for name, queue := range map[string]struct {
			says plan.OnLost
			want plan.Status
		}{"retry": {plan.OnLostRetry, plan.Queued}, "fail": {plan.OnLostFail, plan.Orphaned}} {
			q := must(w.s.CreateQueue(w.ctx, plan.Queue{Name: name, Plugin: "exec", Unlimited: true, QueueSettings: plan.QueueSettings{OnLost: queue.says}}))(w)
			p := w.submit(in(name, "a"))
			plain := w.newTask(q, "plain")
			w.add(plan.PlanID{}, plain)
			n, other := w.node("n1"), w.perl("perl1")
			for range 2 {
				_, _, err := other.Claim(w.ctx, q.ID, "perl1")
				w.no(err)
			}
			w.pass(6 * time.Minute)
			w.equal(name+": orphaned", must(other.Orphan(w.ctx, "perl1"))(w), 2)
			w.pass(settling)
			n.sweep()
			w.equal(name+": states", []plan.Status{w.named(p, "a").Status, w.task(plain.ID).Status}, []plan.Status{queue.want, plan.Orphaned})
		}
	}},
	{"a runner does not take what another node of another program claimed, and ends what a person cancelled", func(w *world) {
		q := w.queue("exec", 0)
		p := w.submit(task("a"), task("b", "a"))
		other := w.perl("perl1")
		a, _, err := other.Claim(w.ctx, q.ID, "perl1")
		w.no(err)
		_, err = w.runner("perl2").tryTake(a, true)
		w.is(err, plan.ErrConflict)
		w.want(p, "a claimed")
		w.no(w.s.CancelTask(w.ctx, a))
		_, err = w.runner("perl1").tryTake(a, true)
		w.is(err, plan.ErrConflict)
		w.equal("its start by its program", must(other.Start(w.ctx, a, "perl1"))(w), false)
		w.want(p, "a cancelled", "b skipped")
		w.wantPlan(p, plan.PlanCancelled)
	}},
	{"claimers of both makers never take a task twice", func(w *world) {
		const many = 200
		q := w.queue("exec", 0)
		p := w.submit(numbered(many)...)
		c := w.crowd(nil)
		over := func() bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			return len(c.claims) == many || w.Failed()
		}
		var wg sync.WaitGroup
		var turns atomic.Int64
		for i := range 4 {
			n := w.nodeOn(w.reopen(nil), plan.NodeName(fmt.Sprint("n", i)))
			wg.Go(func() { c.work(n, 4, ok, func() bool { return turns.Add(1) > 100_000 || over() }) })
			other := w.perl(plan.NodeName(fmt.Sprint("perl", i)))
			wg.Go(func() {
				for !over() {
					id, some, err := other.Claim(w.ctx, q.ID, other.node)
					if err != nil || !some {
						if err != nil {
							w.Errorf("claim: %v", err)
						}
						time.Sleep(time.Millisecond) // the rest is claimed, and over soon
						continue
					}
					c.mu.Lock()
					c.claims[id]++
					c.mu.Unlock()
					started, err := other.Start(w.ctx, id, other.node)
					ended := false
					if err == nil {
						ended, err = other.End(w.ctx, id, other.node, plan.Succeeded)
					}
					if err == nil {
						err = other.Output(w.ctx, id, "", "")
					}
					if err != nil || !started || !ended {
						w.Errorf("%s runs task %s: started %v, ended %v, %v", other.node, id, started, ended, err)
					}
				}
			})
		}
		wg.Wait()
		for id, times := range c.claims {
			if times != 1 {
				w.Errorf("task %s was claimed %d times", id, times)
			}
		}
		w.equal("claimed", len(c.claims), many)
		last := w.node("last")
		for _, i := range must(w.s.Instances(w.ctx))(w) {
			if i.ID != last.id {
				must(w.s.Rescue(w.ctx, i.ID, -1))(w) // they may hold what they had not ended yet
			}
		}
		last.sweep()
		last.run(ok)
		last.sweep()
		w.wantPlan(p, plan.PlanSucceeded)
	}},
}
