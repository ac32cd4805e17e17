package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

var takeCases = []testCase{
	{"a runner is given what the node was that claimed the task", func(w *world) {
		p := w.submitSpec(&plan.Spec{Name: "nightly", Tasks: []plan.TaskSpec{
			{Name: "a", Params: json.RawMessage(`{"run":"true"}`), Timeout: time.Minute, Retry: plan.Retry{Attempts: 3}},
			task("b", "a"), task("c", "a", "b"), each("d", list("x", "y"), "b"),
		}})
		n := w.node("n1")
		plain := w.newTask(w.queue("exec", 0), "plain")
		w.add(plan.PlanID{}, plain)
		large := fmt.Sprintf("%q", strings.Repeat("x", plan.MaxCopiedOne))
		seen := 0
		for len(w.all(store.TaskQuery{Statuses: []plan.Status{plan.Queued}})) > 0 {
			for _, c := range n.turn(protocol.Turn{Slots: 9}).Claimed {
				r := w.runner("n1")
				got := r.takeOver(c.Task, true)
				if got.Token == c.Token || got.Token == (protocol.Token{}) {
					w.Errorf("the token of %s is %x, and was %x", c.Name, got.Token, c.Token)
				}
				w.equal("params of "+c.Name, string(got.Params), string(c.Params))
				output := `{"n":1}`
				if c.Name == "b" {
					output = large
				}
				r.end(succeed(got, output))
				got.Token, got.Params, c.Params = c.Token, nil, nil
				w.equal(c.Name, fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", c))
				seen++
			}
		}
		w.equal("taken", seen, 6)
		w.equal("output of what was ended", string(w.named(p, "a").Output), `{"n":1}`)
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"with start a taken task runs, without it stays claimed until it is started", func(w *world) {
		p := w.submit(task("a"), task("b"))
		n := w.node("n1")
		n.turn(protocol.Turn{Slots: 2})
		a, b := w.runner("n1"), w.runner("n1")
		a.takeOver(w.named(p, "a").ID, true)
		c := b.takeOver(w.named(p, "b").ID, false)
		of := func(name string) string {
			t := w.named(p, name)
			return fmt.Sprint(t.Status, t.Started.IsZero(), t.Attempt, t.Node, t.Instance)
		}
		w.equal("a", of("a"), fmt.Sprint(plan.Running, false, 1, "n1", a.id))
		w.equal("b", of("b"), fmt.Sprint(plan.Claimed, true, 1, "n1", b.id))
		w.equal("lost at its start", len(must(b.s.Start(w.ctx, []protocol.Claim{c.Claim}))(w)), 0)
		w.equal("b", of("b"), fmt.Sprint(plan.Running, false, 1, "n1", b.id))
	}},
	{"what an instance has taken it takes again, as when the answer was lost", func(w *world) {
		p := w.submit(task("a"))
		n, r := w.node("n1"), w.runner("n1")
		id := n.claimOnly().Task
		first := r.takeOver(id, false)
		again := r.takeOver(id, false)
		w.equal("again", again.Claim, first.Claim)
		w.want(p, "a claimed")
		w.equal("with start", r.takeOver(id, true).Claim, first.Claim)
		started := w.named(p, "a")
		w.equal("started", []any{started.Status, started.Started.IsZero()}, []any{plan.Running, false})
		for _, start := range []bool{true, false} {
			w.equal("when it runs", r.takeOver(id, start).Claim, first.Claim)
			w.equal("it", fmt.Sprintf("%+v", w.named(p, "a")), fmt.Sprintf("%+v", started))
		}
		r.end(ok(first))
		_, err := r.tryTake(id, true)
		w.is(err, plan.ErrConflict)
		w.want(p, "a succeeded")
	}},
	{"invariant 5: after a take what names the old claim is refused", func(w *world) {
		p := w.submit(task("a"))
		n, r := w.node("n1"), w.runner("n1")
		old := n.claimOnly()
		c := r.takeOver(old.Task, false)
		entries := []plan.LogEntry{{At: time.Now().UTC(), Attempt: 1, Stream: plan.Stdout, Text: "x\n"}}
		refused := func() {
			w.Helper()
			w.equal("lost at the start", must(n.s.Start(w.ctx, []protocol.Claim{old.Claim}))(w), []plan.TaskID{old.Task})
			w.equal("lost as it is given back", n.turn(protocol.Turn{Ended: []protocol.Ending{giveBack(old)}}).Lost, []plan.TaskID{old.Task})
			w.equal("lost at the end", n.turn(protocol.Turn{Ended: []protocol.Ending{fail(old)}}).Lost, []plan.TaskID{old.Task})
			w.is(n.s.AppendLog(w.ctx, old.Claim, entries), plan.ErrClaimLost)
		}
		refused()
		w.want(p, "a claimed")
		r.takeOver(old.Task, true)
		refused()
		w.want(p, "a running")
		w.no(r.s.AppendLog(w.ctx, c.Claim, entries))
		w.equal("lost by the runner", len(r.end(succeed(c, `"ran"`)).Lost), 0)
		refused()
		log, _, err := w.s.Log(w.ctx, c.Task, 0, 9)
		w.no(err)
		w.equal("entries of its log", len(log), 1)
		w.equalJSON("output", w.named(p, "a").Output, `"ran"`)
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"invariant 6: what a runner took counts against the limits as before", func(w *world) {
		for _, limit := range []struct {
			name string
			set  func(q plan.Queue)
		}{
			{"threads", func(q plan.Queue) { q.Threads, q.Unlimited = 1, false; w.no(w.s.SetQueue(w.ctx, q)) }},
			{"node-threads", func(q plan.Queue) { q.NodeThreads = 1; w.no(w.s.SetQueue(w.ctx, q)) }},
			{"max-threads", func(plan.Queue) { w.no(w.s.SetMaxThreads(w.ctx, "n1", 1)) }},
		} {
			q := w.queue(limit.name, 0)
			limit.set(q)
			p := w.submit(in(q.Name, "a"), in(q.Name, "b"), in(q.Name, "c"))
			for _, start := range []bool{false, true} {
				n, r := w.node("n1"), w.runner("n1")
				c := n.turn(protocol.Turn{Slots: 9}).Claimed
				w.equal(limit.name+": claimed", len(c), 1)
				taken := r.takeOver(c[0].Task, start)
				w.equal(limit.name+": claimed beside it", len(n.claim(9)), 0)
				r.end(ok(taken))
				w.no(w.s.Leave(w.ctx, r.id))
				w.equal(limit.name+": claimed after it", len(n.claim(9)), 1)
				w.no(w.s.Leave(w.ctx, n.id))
			}
			w.no(w.s.SetMaxThreads(w.ctx, "n1", -1))
			n := w.node("n1")
			n.run(ok)
			w.no(w.s.Leave(w.ctx, n.id))
			w.wantPlan(p, plan.PlanSucceeded)
		}
	}},
	{"the instance that claimed it loses nothing, gives nothing back and is told of nothing that was taken from it", func(w *world) {
		p := w.submit(task("claimed"), task("running"))
		n, a, b := w.node("n1"), w.runner("n1"), w.runner("n1")
		n.turn(protocol.Turn{Slots: 2})
		a.takeOver(w.named(p, "claimed").ID, false)
		b.takeOver(w.named(p, "running").ID, true)
		clear(n.holding)
		n.sweep()
		w.want(p, "claimed claimed", "running running")
		w.no(w.s.CancelPlan(w.ctx, p.ID, false))
		n.sweep()
		w.equal("told to cancel", []any{n.cancels(), a.cancels(), b.cancels()},
			[]any{[]plan.TaskID{}, []plan.TaskID{w.named(p, "claimed").ID}, []plan.TaskID{w.named(p, "running").ID}})
		w.equal("taken by a rescue", must(w.s.Rescue(w.ctx, n.id, -1))(w), 0)
		other := w.node("n2")
		other.sweep()
		w.want(p, "claimed claimed", "running running")
		a.end(giveBack(oneOf(a)))
		b.end(ok(oneOf(b)))
		other.sweep()
		w.want(p, "claimed cancelled", "running succeeded")
		w.wantPlan(p, plan.PlanCancelled)
	}},
	{"what a runner has taken is lost with it", func(w *world) {
		p := w.submit(task("claimed"), task("running"), plan.TaskSpec{Name: "once", OnLost: plan.OnLostFail})
		plain := w.newTask(w.queue("exec", 0), "plain")
		w.add(plan.PlanID{}, plain)
		n, r := w.node("n1"), w.runner("n1")
		for _, c := range n.turn(protocol.Turn{Slots: 9}).Claimed {
			r.takeOver(c.Task, c.Name != "claimed")
		}
		w.equal("taken by a rescue", must(w.s.Rescue(w.ctx, r.id, 0))(w), 4)
		clear(n.holding)
		n.sweep()
		w.want(p, "claimed queued", "running queued", "once orphaned")
		w.equal("of no plan", w.task(plain.ID).Status, plan.Orphaned)
		w.equal("rescues", []int{w.named(p, "claimed").Rescues, w.named(p, "running").Rescues}, []int{0, 1})
		_, err := r.tryTake(w.named(p, "claimed").ID, true)
		w.is(err, plan.ErrInstanceGone)
		for _, c := range n.turn(protocol.Turn{Slots: 9}).Claimed {
			if want := map[string]int{"claimed": 1, "running": 2}[c.Name]; c.Attempt != want {
				w.Errorf("attempt of %s is %d, want %d", c.Name, c.Attempt, want)
			}
		}
	}},
	{"what is not claimed, or not by the runner's node, or another runner's, is not taken, and nothing changes", func(w *world) {
		p := w.submit(task("done"), task("running"), task("others"), task("taken"), task("started"), task("delayed"), task("queued"), task("held", "queued"))
		n, other := w.node("n1"), w.node("n2")
		c := map[string]protocol.ClaimedTask{}
		for _, claimed := range n.turn(protocol.Turn{Slots: 9}).Claimed {
			c[claimed.Name] = claimed
		}
		must(n.s.Start(w.ctx, []protocol.Claim{c["running"].Claim}))(w)
		n.end(ok(c["done"]), giveBack(c["others"]))
		other.claimOnly()
		n.end(giveBack(c["queued"]), later(c["delayed"], time.Hour))
		first := w.runner("n1")
		first.takeOver(c["taken"].Task, false)
		first.takeOver(c["started"].Task, true)
		r := w.runner("n1")
		for name, why := range map[string]string{
			"done": `is succeeded: a runner takes what was claimed`, "running": `is running: a runner`, "others": `is claimed by node "n2", and not by "n1"`,
			"taken": `is claimed, and another runner has it`, "started": `is running, and another runner has it`, "delayed": "is held: ",
			"queued": "is queued: ", "held": "is held: ",
		} {
			before := fmt.Sprintf("%+v", w.named(p, name))
			for _, start := range []bool{true, false} {
				_, err := r.tryTake(w.named(p, name).ID, start)
				if w.is(err, plan.ErrConflict); err != nil && !strings.Contains(err.Error(), fmt.Sprintf("task %q %s", name, why)) {
					w.Errorf("%s: %v; want %s", name, err, why)
				}
			}
			w.equal(name, fmt.Sprintf("%+v", w.named(p, name)), before)
		}
		_, err := r.tryTake(plan.TaskID{ID: plan.NewID(time.Now())}, true)
		w.is(err, plan.ErrNotFound)
		n.claimOnly()
		w.no(w.s.Leave(w.ctx, r.id))
		for _, stranger := range []*node{r, {w: w, s: w.s, id: plan.InstanceID{ID: plan.NewID(time.Now())}}} {
			_, err = stranger.tryTake(c["queued"].Task, true)
			w.is(err, plan.ErrInstanceGone)
		}
		w.want(p, "queued claimed")
	}},
	{"a task that a person cancelled before it was started ends as it is taken", func(w *world) {
		p := w.submit(task("a"), task("child", "a"), task("mine"), task("runs"))
		n, r := w.node("n1"), w.runner("n1")
		c := map[string]protocol.ClaimedTask{}
		for _, claimed := range n.turn(protocol.Turn{Slots: 9}).Claimed {
			c[claimed.Name] = claimed
		}
		r.takeOver(c["mine"].Task, false)
		runs := r.takeOver(c["runs"].Task, true)
		for _, c := range c {
			w.no(w.s.CancelTask(w.ctx, c.Task))
		}
		for _, name := range []string{"a", "mine"} {
			for range 2 {
				_, err := r.tryTake(c[name].Task, true)
				w.is(err, plan.ErrConflict)
				t := w.named(p, name)
				w.equal(name, []any{t.Status, t.Reason, t.Started.IsZero()}, []any{plan.Cancelled, plan.ReasonCancelled, true})
			}
		}
		w.equal("lost by its node", n.end(ok(c["a"])).Lost, []plan.TaskID{c["a"].Task})
		w.want(p, "child skipped")
		w.equal("what runs", r.takeOver(runs.Task, true).Claim, runs.Claim)
		w.equal("told", r.cancels(), []plan.TaskID{runs.Task})
		r.end(protocol.Ending{Claim: runs.Claim, Status: plan.Terminated, Reason: plan.ReasonCancelled})
		w.wantPlan(p, plan.PlanFailed) // as by every task that ran and was stopped
	}},
	{"the feed of changes tells of a take", func(w *world) {
		p := w.submit(task("a"))
		n, r := w.node("n1"), w.runner("n1")
		id := n.claimOnly().Task
		for _, start := range []bool{false, true} {
			cursor := must(w.s.Latest(w.ctx))(w)
			r.takeOver(id, start)
			changes, _, err := w.s.Changes(w.ctx, cursor, 9)
			w.no(err)
			want := map[bool]plan.Status{false: plan.Claimed, true: plan.Running}[start]
			if len(changes) == 0 || changes[len(changes)-1].Task != id || changes[len(changes)-1].Status != want {
				w.Errorf("start %v: the changes are %+v, want the task as %v", start, changes, want)
			}
		}
		w.want(p, "a running")
	}},
	{"however many take a task at once, one gets it", func(w *world) {
		const many, runners = 10, 8
		p := w.submit(numbered(many)...)
		n := w.node("n1")
		claimed := n.turn(protocol.Turn{Slots: many}).Claimed
		w.equal("claimed", len(claimed), many)
		var taken, ended atomic.Int64
		var wg sync.WaitGroup
		for i := range runners {
			r := w.runnerOn(w.reopen(nil), "n1")
			wg.Go(func() {
				for _, c := range claimed {
					got, err := r.tryTake(c.Task, i%2 == 0)
					if errors.Is(err, plan.ErrConflict) {
						continue
					}
					if err != nil {
						w.Errorf("take: %v", err)
						return
					}
					taken.Add(1)
					did, err := r.try(protocol.Turn{Ended: []protocol.Ending{ok(got)}})
					if err != nil {
						w.Errorf("turn: %v", err)
						return
					}
					ended.Add(int64(1 - len(did.Lost)))
				}
			})
		}
		wg.Wait()
		w.equal("taken and ended", []int64{taken.Load(), ended.Load()}, []int64{many, many})
		n.sweep()
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"whatever write of a take a process dies before, nothing is lost", func(w *world) { dieTaking(w, true, false) }},
	{"whatever write of a take a process dies after, nothing is lost", func(w *world) { dieTaking(w, true, true) }},
	{"whatever write of a take is not made, taking again makes it", func(w *world) { dieTaking(w, false, false) }},
	{"whatever write's answer is lost, taking again does not do it twice", func(w *world) { dieTaking(w, false, true) }},
}

// dieTaking has a runner take a task, and one that was cancelled, once for each write of that with a killer before or after it.
func dieTaking(w *world, dies, after bool) {
	for _, cancelled := range []bool{false, true} {
		for at := 1; ; at++ {
			p := w.submit(task("a"), task("b", "a"))
			n := w.node("n1")
			c := n.claimOnly()
			if cancelled {
				w.no(w.s.CancelTask(w.ctx, c.Task))
			}
			k := &killer{at: at, after: after, dies: dies}
			r := w.runnerOn(w.reopen(k.hook), "n1")
			_, err := r.tryTake(c.Task, at%2 == 0)
			hit := k.tripped
			k.at = 0 // what comes next is spared
			w.check()
			if hit && !errors.Is(err, errKilled) {
				w.Fatalf("at write %d: got error %v", at, err)
			}
			if hit && !dies {
				_, err = r.tryTake(c.Task, true)
			}
			switch {
			case hit && dies:
			case cancelled:
				w.is(err, plan.ErrConflict)
			default:
				w.no(err)
				w.equal("attempt", oneOf(r).Attempt, 1)
				w.equal("lost", len(r.end(ok(oneOf(r))).Lost), 0)
			}
			must(w.s.Rescue(w.ctx, r.id, -1))(w)
			w.no(w.s.Leave(w.ctx, n.id))
			last := w.node("n2")
			last.sweep()
			last.run(ok)
			last.sweep()
			w.checkSettled()
			if cancelled {
				w.want(p, "a cancelled", "b skipped")
				w.wantPlan(p, plan.PlanCancelled)
			} else {
				w.wantPlan(p, plan.PlanSucceeded)
			}
			w.no(w.s.Leave(w.ctx, last.id))
			if !hit {
				w.Logf("a take, cancelled %v, has %d writes", cancelled, at-1)
				break
			}
		}
	}
}
