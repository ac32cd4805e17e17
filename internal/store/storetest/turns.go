package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

var turnCases = []testCase{
	{"a turn queues what is due, and may claim it", func(w *world) {
		q := w.queue("exec", 0)
		at := w.clock.Now().Add(time.Hour)
		for range 10 {
			t := w.newTask(q, "a")
			t.NotBefore = at
			w.add(plan.PlanID{}, t)
		}
		n := w.node("n1")
		w.equal("claimed before", len(n.claim(20)), 0)
		w.pass(2 * time.Hour)
		did := must(w.s.Sweep(w.ctx, protocol.Sweep{Instance: n.id, Budget: 1}))(w) // by which a driver knows, whatever it knew before
		if !did.More {
			w.Error("a sweep with a budget of 1 leaves nothing of 10 tasks that are due")
		}
		turned := n.turn(protocol.Turn{Slots: 20, Start: true, Budget: 8})
		if c := len(turned.Claimed); c < 3 || c > 5 || !turned.More {
			w.Errorf("a turn with a budget of 8 claimed %d tasks, more: %v; want 4 or so, and more", c, turned.More)
		}
		w.equal("claimed then", len(turned.Claimed)+len(n.claim(20)), 10)
		w.equal("claimed at last", len(n.claim(20)), 0)
	}},
	{"a claim carries what its node has to know", func(w *world) {
		p := w.submitSpec(&plan.Spec{Name: "nightly", Tasks: []plan.TaskSpec{{
			Name: "a", Params: json.RawMessage(`{"run":"true"}`), Timeout: time.Minute, Retry: plan.Retry{Attempts: 3}, Estimate: 2 * time.Second,
		}}})
		c := w.node("n1").one()
		w.equal("claim", []any{c.Task, c.Attempt, c.Plan, c.Name, c.QueueName, c.Plugin, c.Timeout, c.Retry.Attempts, c.ByReference, c.Rescues},
			[]any{w.named(p, "a").ID, 1, p.ID, "a", "exec", "exec", time.Minute, 3, false, 0})
		w.equalJSON("params", c.Params, `{"run":"true"}`)
		if c.Token == (protocol.Token{}) {
			w.Error("a claim without a token")
		}
		if c.PlanName != "" && c.PlanName != "nightly#1" {
			w.Errorf("its plan is %q, want nightly#1", c.PlanName)
		}
	}},
	{"a claim takes a task to claimed, start to running", func(w *world) {
		p := w.submit(task("a"))
		n := w.node("n1")
		did := n.turn(protocol.Turn{Slots: 1})
		a := w.named(p, "a")
		w.equal("claimed", []any{a.Status, a.Attempt, a.Node, a.Instance, a.Started.IsZero()}, []any{plan.Claimed, 1, "n1", n.id, true})
		w.equal("lost", len(must(n.s.Start(w.ctx, []protocol.Claim{did.Claimed[0].Claim}))(w)), 0)
		a = w.named(p, "a")
		w.equal("started", []any{a.Status, a.Started.IsZero()}, []any{plan.Running, false})
	}},
	{"a turn with start takes tasks to running in one write", func(w *world) {
		p := w.submit(task("a"))
		w.node("n1").one()
		a := w.named(p, "a")
		w.equal("started", []any{a.Status, a.Started.IsZero(), a.Attempt}, []any{plan.Running, false, 1})
	}},
	{"a turn claims no more than its slots", func(w *world) {
		w.submit(task("a"), task("b"), task("c"))
		n := w.node("n1")
		w.equal("slots 0", len(n.claim(0)), 0)
		w.equal("slots 2", len(n.claim(2)), 2)
		w.equal("the rest", len(n.claim(2)), 1)
	}},
	{"a turn claims from queues of the node's plugins only", func(w *world) {
		p := w.submit(plan.TaskSpec{Name: "a", Plugin: "demo", Queue: "demo"})
		q := plan.Queue{Name: "other", Plugin: "other", Unlimited: true}
		q = must(w.s.CreateQueue(w.ctx, q))(w)
		late := plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Name: "late", Queue: q.ID}
		w.no(w.s.AddTasks(w.ctx, p.ID, []plan.Task{late}))
		n := w.node("n1")
		w.equal("of none", len(n.turn(protocol.Turn{Slots: 9, Plugins: []string{"third"}}).Claimed), 0)
		w.equal("of other", names(n.turn(protocol.Turn{Slots: 9, Plugins: []string{"third", "other"}}).Claimed), "[late]")
	}},
	{"a task ends in one write with its output, reason and exit", func(w *world) {
		p := w.submit(task("a"), task("b"))
		n := w.node("n1")
		c := n.take("a", "b")
		n.end(
			protocol.Ending{Claim: c[0].Claim, Status: plan.Succeeded, Output: json.RawMessage(`{"x":[1,2]}`)},
			protocol.Ending{Claim: c[1].Claim, Status: 7, Reason: plan.ReasonSignal, Detail: "killed", Exit: &plan.Exit{Code: -1, Signal: "SIGKILL"}},
		)
		a, b := w.named(p, "a"), w.named(p, "b")
		w.equal("a", []any{a.Status, a.Ended.IsZero(), a.Node}, []any{plan.Succeeded, false, "n1"})
		w.equalJSON("output", a.Output, `{"x":[1,2]}`)
		w.equal("b", []any{int(b.Status), b.Reason, b.Detail, *b.Exit}, []any{7, plan.ReasonSignal, "killed", plan.Exit{Code: -1, Signal: "SIGKILL"}})
		w.wantPlan(p, plan.PlanFailed)
	}},
	{"invariant 4: a claimed task's params hold its parents' outputs", func(w *world) {
		w.submit(task("a"), task("b"), plan.TaskSpec{Name: "c", Needs: []string{"b", "a"}, Params: json.RawMessage(`{"run":"x","needs":1}`)})
		n := w.node("n1")
		c := n.take("a", "b")
		n.end(succeed(c[0], `{"n":"ü\u0000 $x"}`), succeed(c[1], ""))
		got := n.one()
		w.equalJSON("params", got.Params, `{"run":"x","needs":{"a":{"n":"ü\u0000 $x"},"b":null},"args":[null,{"n":"ü\u0000 $x"}]}`)
		in := must(w.s.Inputs(w.ctx, got.Task))(w)
		w.equal("names of inputs", []string{in[0].Name, in[1].Name}, "[b a]")
		w.equalJSON("input", in[1].Output, `{"n":"ü\u0000 $x"}`)
	}},
	{"invariant 4: outputs that are too large to copy are there by reference", func(w *world) {
		p := w.submit(task("a"), task("b"), task("c", "a", "b"), task("d", "b"))
		n := w.node("n1")
		c := n.take("a", "b")
		large := fmt.Sprintf("%q", strings.Repeat("x", plan.MaxCopiedOne))
		n.end(succeed(c[0], large), succeed(c[1], `1`))
		got := n.take("c", "d")
		w.equal("by reference", []bool{got[0].ByReference, got[1].ByReference}, "[true false]")
		in := must(w.s.Inputs(w.ctx, got[0].Task))(w)
		w.equal("inputs", []any{len(in), in[0].Name, len(in[0].Output), in[1].Name, string(in[1].Output)}, []any{2, "a", len(large), "b", "1"})
		w.equal("output", len(w.named(p, "a").Output), len(large))
	}},
	{"many outputs that together are too large to copy are there by reference", func(w *world) {
		var tasks []plan.TaskSpec
		var needs []string
		for i := range 10 {
			needs = append(needs, fmt.Sprint("p", i))
			tasks = append(tasks, task(needs[i]))
		}
		w.submit(append(tasks, task("c", needs...))...)
		n := w.node("n1")
		var ended []protocol.Ending
		for _, c := range n.claim(10) {
			ended = append(ended, succeed(c, fmt.Sprintf("%q", strings.Repeat("x", 60<<10))))
		}
		n.end(ended...)
		c := n.one()
		w.equal("by reference", c.ByReference, true)
		w.equal("inputs", len(must(w.s.Inputs(w.ctx, c.Task))(w)), 10)
	}},
	{"invariant 5: an ending whose claim is not the present one is refused and changes nothing", func(w *world) {
		p := w.submit(task("a"), task("b"))
		n := w.node("n1")
		c := n.take("a", "b")
		wrong := c[0]
		wrong.Token[0]++
		attempt := c[0]
		attempt.Attempt++
		unknown := c[0]
		unknown.Task = plan.TaskID{ID: plan.NewID(time.Now())}
		did := n.turn(protocol.Turn{Ended: []protocol.Ending{succeed(wrong, "1"), fail(attempt), fail(unknown), ok(c[1])}})
		w.equal("lost", did.Lost, []plan.TaskID{c[0].Task, c[0].Task, unknown.Task})
		w.want(p, "a running", "b succeeded")
		if a := w.named(p, "a"); a.Output != nil || a.Detail != "" {
			w.Errorf("a refused ending left %s, %q", a.Output, a.Detail)
		}
		w.equal("lost again", n.turn(protocol.Turn{Ended: []protocol.Ending{fail(c[1])}}).Lost, []plan.TaskID{c[1].Task})
		w.want(p, "b succeeded")
	}},
	{"an ending that is none is refused, and the turn changes nothing", func(w *world) {
		p := w.submit(task("a"), task("b"), task("c"))
		n := w.node("n1")
		c := n.take("a", "b", "c")
		n.end(giveBack(c[2]))
		for _, status := range []plan.Status{plan.Running, plan.Claimed, -7} {
			bad := protocol.Ending{Claim: c[1].Claim, Status: status}
			if _, err := n.s.Turn(w.ctx, protocol.Turn{Instance: n.id, Plugins: []string{"exec"}, Ended: []protocol.Ending{ok(c[0]), bad}, Slots: 1}); err == nil {
				w.Errorf("a task ended as %v", status)
			}
			w.want(p, "a running", "b running", "c queued")
		}
		n.end(ok(c[0]), ok(c[1]))
	}},
	{"a call whose context has ended says so, and changes nothing", func(w *world) {
		p := w.submit(task("a"))
		n := w.node("n1")
		ctx, cancel := context.WithCancel(w.ctx)
		cancel()
		if _, err := n.s.Turn(ctx, protocol.Turn{Instance: n.id, Plugins: []string{"exec"}, Slots: 1}); !errors.Is(err, context.Canceled) {
			w.Errorf("got error %v, want %v", err, context.Canceled)
		}
		if _, err := n.s.Plan(ctx, p.ID); !errors.Is(err, context.Canceled) {
			w.Errorf("got error %v, want %v", err, context.Canceled)
		}
		w.want(p, "a queued")
	}},
	{"a task that is given back is queued, and the attempt does not count", func(w *world) {
		p := w.submit(task("a"))
		n := w.node("n1")
		first := n.one()
		n.end(giveBack(first))
		a := w.named(p, "a")
		w.equal("given back", []any{a.Status, a.Attempt, a.Node, a.Instance.IsZero()}, []any{plan.Queued, 0, "", true})
		again := n.one()
		w.equal("attempt", again.Attempt, 1)
		w.equal("the old claim is lost", n.end(ok(first)).Lost, []plan.TaskID{first.Task})
		w.want(p, "a running")
	}},
	{"a task whose attempt is lost on a living node is queued, and its log, detail and loss stay", func(w *world) {
		p := w.submit(plan.TaskSpec{Name: "a", Retry: plan.Retry{Attempts: 2}}, task("closed"))
		n := w.node("n1")
		c := n.take("a", "closed")
		must(w.s.Start(w.ctx, []protocol.Claim{c[0].Claim, c[1].Claim}))(w)
		lost := func(c protocol.ClaimedTask) protocol.Ending {
			return protocol.Ending{Claim: c.Claim, Status: plan.Queued, Reason: plan.ReasonLost, Detail: "gone"}
		}
		n.end(lost(c[0]))
		a := w.named(p, "a")
		w.equal("lost", []any{a.Status, a.Reason, a.Detail, a.Attempt, a.Rescues, a.Node}, []any{plan.Queued, plan.ReasonLost, "gone", 1, 1, ""})
		again := n.one()
		w.equal("the next claim", []any{again.Attempt, again.Rescues, again.Reason}, []any{2, 1, plan.ReasonLost})
		w.no(w.s.CancelTask(w.ctx, c[1].Task))
		n.end(ok(again), lost(c[1]))
		w.want(p, "a succeeded", "closed terminated")
	}},
	{"a task that its node could not begin is queued with the reason, and did not run", func(w *world) {
		for _, start := range []bool{false, true} {
			p := w.submit(task("a"))
			n := w.node("n1")
			c := n.turn(protocol.Turn{Slots: 1, Start: start}).Claimed[0]
			n.end(notBegun(c))
			a := w.named(p, "a")
			w.equal("given back", []any{a.Status, a.Attempt, a.Node, a.Instance.IsZero(), a.Ran, a.Detail},
				[]any{plan.Queued, 0, "", true, false, "node n1 could not begin it: no such folder"})
			again := n.one()
			w.equal("attempt", again.Attempt, 1)
			w.equal("detail of the next attempt", w.named(p, "a").Detail, a.Detail)
			n.end(ok(again))
			w.equal("detail at its end", w.named(p, "a").Detail, "")
		}
	}},
	{"invariant 2: a retry delay holds a task until it is over, and then it is queued once", func(w *world) {
		p := w.submit(task("z"), task("a", "z"))
		n := w.node("n1")
		n.end(succeed(n.one(), `"of z"`))
		c := n.one()
		must(w.s.Start(w.ctx, []protocol.Claim{c.Claim}))(w)
		began := w.named(p, "a").Started
		did := n.turn(protocol.Turn{Ended: []protocol.Ending{later(c, time.Hour)}, Slots: 1})
		if now := w.named(p, "a").Started; began.IsZero() || !now.Equal(began) {
			w.Errorf("of an attempt that began at %v the task says later that it did at %v", began, now)
		}
		if did.Delay < 59*time.Minute || did.Delay > time.Hour {
			w.Errorf("the delay is over in %v, want an hour", did.Delay)
		}
		w.want(p, "a held")
		n.sweep()
		w.want(p, "a held")
		w.pass(59 * time.Minute)
		swept := must(n.s.Sweep(w.ctx, protocol.Sweep{Instance: n.id}))(w)
		if swept.Pending <= 0 || swept.Pending > time.Minute {
			w.Errorf("the next delay is over in %v, want at most a minute", swept.Pending)
		}
		w.want(p, "a held")
		w.pass(time.Minute + time.Second)
		w.equal("queued", n.sweep(), 1)
		w.equal("queued again", n.sweep(), 0)
		c = n.one()
		w.equal("attempt", c.Attempt, 2)
		w.equalJSON("params", c.Params, `{"needs":{"z":"of z"},"args":["of z"]}`)
		n.end(ok(c))
		w.wantPlan(p, plan.PlanSucceeded)
		w.equal("tried more than once", taskNames(must(w.s.Tasks(w.ctx, store.TaskQuery{Plan: p.ID, Retried: true, Statuses: []plan.Status{plan.Succeeded}}))(w)), "[a]")
	}},
	{"tasks in trouble are those that failed, and those that are tried again, or were", func(w *world) {
		p := w.submit(task("runs"), task("good"), task("bad"), task("worse"), task("stopped"), task("lost"), task("waits"), task("ready"), task("again"), task("over"),
			task("back"), task("below", "runs"), task("skipped", "bad"))
		n := w.node("n1")
		c := n.take("runs", "good", "bad", "worse", "stopped", "lost", "waits", "ready", "again", "over", "back")
		n.end(ok(c[1]), fail(c[2]), protocol.Ending{Claim: c[3].Claim, Status: 7}, protocol.Ending{Claim: c[4].Claim, Status: plan.Terminated},
			protocol.Ending{Claim: c[5].Claim, Status: plan.Orphaned}, later(c[6], time.Hour), later(c[7], 0), later(c[8], 0), later(c[9], 0),
			protocol.Ending{Claim: c[10].Claim, Status: plan.Queued})
		n.sweep()
		second := map[string]protocol.ClaimedTask{}
		for _, c := range n.claim(4) {
			second[c.Name] = c
		}
		for _, name := range []string{"ready", "back"} {
			n.end(protocol.Ending{Claim: second[name].Claim, Status: plan.Queued})
		}
		n.end(ok(second["over"]))
		w.want(p, "runs running", "good succeeded", "waits held", "ready queued", "again running", "over succeeded", "back queued", "below held", "skipped skipped")
		want := "[bad worse stopped lost waits ready again over]"
		q := store.TaskQuery{Plan: p.ID, Troubled: true}
		w.equal("in trouble", taskNames(must(w.s.Tasks(w.ctx, q))(w)), want)
		q.Brief = true
		w.equal("read briefly", taskNames(must(w.s.Tasks(w.ctx, q))(w)), want)
		q.Statuses = []plan.Status{plan.Running, plan.Succeeded}
		w.equal("of two states", taskNames(must(w.s.Tasks(w.ctx, q))(w)), "[again over]")
		for _, t := range w.all(store.TaskQuery{Plan: p.ID}) {
			if is := rules.Troubled(t.Status, t.Attempt); is != slices.Contains([]string{"bad", "worse", "stopped", "lost", "waits", "ready", "again", "over"}, t.Name) {
				w.Errorf("rules.Troubled says %v of %s, which is %s after attempt %d", is, t.Name, t.Status, t.Attempt)
			}
		}
	}},
	{"a turn tells of the shortest delay that it began", func(w *world) {
		w.submit(task("a"), task("b"), task("c"), task("d"))
		n := w.node("n1")
		c := n.take("a", "b", "c", "d")
		did := n.end(later(c[0], time.Hour), later(c[1], 5*time.Minute), later(c[2], 0), ok(c[3]))
		if did.Delay < 4*time.Minute || did.Delay > 5*time.Minute {
			w.Errorf("the first delay is over in %v, want 5 minutes", did.Delay)
		}
	}},
	{"within a queue the greatest rank goes first, then the oldest", func(w *world) {
		w.submit(task("a"), task("b"), task("c"), task("c1", "c"), task("c2", "c1"), task("d"), task("d1", "d"), task("e"))
		n := w.node("n1")
		w.equal("order", names(n.claim(9)), "[c d a b e]")
	}},
	{"a turn of an instance that is not registered does nothing at all", func(w *world) {
		p := w.submit(task("a"), task("b"))
		n := w.node("n1")
		c := n.claim(1)[0]
		w.no(n.s.Leave(w.ctx, n.id))
		_, err := n.try(protocol.Turn{Ended: []protocol.Ending{ok(c)}, Slots: 1})
		w.is(err, plan.ErrInstanceGone)
		w.want(p, "a queued", "b queued")
		_, err = w.s.Sweep(w.ctx, protocol.Sweep{Instance: n.id})
		w.is(err, plan.ErrInstanceGone)
		_, err = w.s.Beat(w.ctx, protocol.Beat{Instance: n.id})
		w.is(err, plan.ErrInstanceGone)
	}},
	{"a turn that has a plan claims only of that plan", func(w *world) {
		w.submit(task("a"), task("b"))
		p := w.submit(task("c"), task("d"))
		n := w.node("n1")
		got := names(n.turn(protocol.Turn{Slots: 9, Plan: p.ID}).Claimed)
		slices.Sort(got)
		w.equal("claimed", got, "[c d]")
		w.equal("the others", len(n.claim(9)), 2)
	}},
	{"a node of a plan is told that it has ended, whoever ended it", func(w *world) {
		n := w.node("n1")
		others := w.nodeOn(w.reopen(nil), "n2")
		over := func(p plan.PlanID, want bool) {
			w.Helper()
			swept := must(n.s.Sweep(w.ctx, protocol.Sweep{Instance: n.id, Plan: p, Holding: slices.Collect(maps.Keys(n.holding))}))(w)
			beaten := must(n.s.Beat(w.ctx, protocol.Beat{Instance: n.id, Plan: p}))(w)
			w.equal("over, by a turn that claims nothing, a turn, a sweep and a beat",
				[]bool{n.turn(protocol.Turn{Plan: p}).Over, n.turn(protocol.Turn{Plan: p, Slots: 1}).Over, swept.Over, beaten.Over}, []bool{want, want, want, want})
		}
		unready := w.submitUnready(&plan.Spec{Name: "unready", Tasks: []plan.TaskSpec{task("a")}})
		over(unready.ID, false)
		over(plan.PlanID{}, false)

		p := w.submit(task("a"), task("b", "a"), task("c", "a"))
		did := n.turn(protocol.Turn{Plan: p.ID, Slots: 1})
		w.equal("over as it begins", did.Over, false)
		did = n.turn(protocol.Turn{Plan: p.ID, Slots: 1, Ended: []protocol.Ending{ok(did.Claimed[0])}})
		c := others.one()
		others.end(fail(c))
		over(p.ID, false)
		last := protocol.Turn{Plan: p.ID, Ended: []protocol.Ending{ok(did.Claimed[0])}}
		w.equal("over with the last ending", n.turn(last).Over, true)
		again := n.turn(last)
		w.equal("over with the last ending, whose answer was lost", []any{len(again.Lost), again.Over}, []any{1, true})
		over(p.ID, true)
		w.no(w.tryRetry(p.ID, rules.Ask{Tasks: []plan.TaskID{c.Task}}))
		w.equal("over when it was retried", n.turn(protocol.Turn{Plan: p.ID}).Over, false)
		others.end(ok(others.one()))
		over(p.ID, true)

		held := w.submit(task("a"), task("b", "a"))
		did = n.turn(protocol.Turn{Plan: held.ID, Slots: 1})
		n.end(later(did.Claimed[0], time.Hour))
		over(held.ID, false)
		w.no(others.s.CancelPlan(w.ctx, held.ID, false))
		others.sweep()
		over(held.ID, true)
		for more := true; more; {
			more = must(others.s.DeletePlan(w.ctx, held.ID, 1))(w)
			over(held.ID, true)
		}
		over(plan.PlanID{ID: plan.NewID(time.Now())}, true)
	}},
	{"invariant 6: a queue has no more tasks claimed and running than its threads", func(w *world) {
		w.queue("narrow", 2)
		w.submit(plan.TaskSpec{Name: "a", Queue: "narrow"}, plan.TaskSpec{Name: "b", Queue: "narrow"}, plan.TaskSpec{Name: "c", Queue: "narrow"})
		n, other := w.node("n1"), w.node("n2")
		c := n.claim(1)
		c = append(c, other.claim(9)...)
		w.equal("claimed", len(c), 2)
		w.equal("more", len(n.claim(9))+len(other.claim(9)), 0)
		did := n.turn(protocol.Turn{Ended: []protocol.Ending{ok(c[0])}, Slots: 9})
		w.equal("after one ended", names(did.Claimed), "[c]")
	}},
	{"what is appended to a log again, since the answer was lost, is there once", func(w *world) {
		w.submit(task("a"))
		n := w.node("n1")
		c := n.one()
		at := time.Now().UTC().Truncate(time.Millisecond)
		line := func(i int) plan.LogEntry {
			return plan.LogEntry{At: at.Add(time.Duration(i) * time.Millisecond), Attempt: 1, Stream: plan.Stdout, Text: "again\n"}
		}
		batches := [][]plan.LogEntry{
			{line(0)},
			{line(1), line(1)}, // two lines of one instant
			{line(2), line(1), line(1)},
			{line(3)},
		}
		want := 0
		for _, batch := range batches {
			for range 3 {
				w.no(n.s.AppendLog(w.ctx, c.Claim, batch))
			}
			want += len(batch)
			entries, _, err := w.s.Log(w.ctx, c.Task, 0, 100)
			w.no(err)
			w.equal("entries", len(entries), want)
		}
	}},
	{"the log is read by pages in its order", func(w *world) {
		w.submit(task("a"))
		n := w.node("n1")
		c := n.one()
		at := time.Now().UTC().Truncate(time.Millisecond)
		line := func(i int) plan.LogEntry {
			return plan.LogEntry{At: at.Add(time.Duration(i) * time.Millisecond), Attempt: 1, Stream: plan.Stdout, Text: fmt.Sprintf("line %d\n", i)}
		}
		w.no(n.s.AppendLog(w.ctx, c.Claim, []plan.LogEntry{line(0), line(1)}))
		w.no(n.s.AppendLog(w.ctx, c.Claim, []plan.LogEntry{line(2)}))
		e := ok(c)
		e.Log = []plan.LogEntry{line(3), {At: at, Attempt: 1, Stream: plan.Stderr, Text: "no newline"}}
		n.end(e)
		var got []string
		var cursor int64
		for {
			page, next, err := w.s.Log(w.ctx, c.Task, cursor, 2)
			w.no(err)
			if len(page) == 0 {
				w.equal("cursor at the end", next, cursor)
				break
			}
			for _, e := range page {
				got = append(got, fmt.Sprint(e.Stream, strings.TrimSuffix(e.Text, "\n")))
				w.equal("attempt", e.Attempt, 1)
			}
			if !page[0].At.Equal(at.Add(time.Duration(len(got)-len(page))*time.Millisecond)) && page[0].Stream == plan.Stdout {
				w.Errorf("line %d is of %v", len(got)-len(page), page[0].At)
			}
			cursor = next
		}
		w.equal("lines", got, "[1line 0 1line 1 1line 2 1line 3 2no newline]")
		w.is(n.s.AppendLog(w.ctx, c.Claim, []plan.LogEntry{line(9)}), plan.ErrClaimLost)
	}},
}
