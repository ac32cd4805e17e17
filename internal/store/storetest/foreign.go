package storetest

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// settling is longer than a store waits for the output of what another program ended, once a sweep has noticed that.
const settling = rules.OutputWait + time.Second

// A perl is a Disbatch node and its task runner.
type perl struct {
	Foreign
	w    *world
	node plan.NodeName
}

func (w *world) perl(node plan.NodeName) *perl { return &perl{w.d.Foreign(w.T, w.s), w, node} }

// outputLate gives the output of a after its status, and never that of b; what comes after them waits for it, and not for ever.
func (p *perl) outputLate(a plan.TaskID, of plan.Plan, n *node) {
	p.w.Helper()
	p.w.no(p.Output(p.w.ctx, a, `"late"`, ""))
	n.sweep()
	p.w.want(of, "after-a queued", "after-b held")
	p.w.equalJSON("params", p.w.named(of, "after-a").Params, `{"needs":{"a":"late"},"args":["late"]}`)
	p.w.pass(settling)
	n.sweep()
	p.w.want(of, "after-b queued")
	p.w.equalJSON("params", p.w.named(of, "after-b").Params, `{"needs":{"b":null},"args":[null]}`)
}

// run claims and starts a task of the queue.
func (p *perl) run(q plan.Queue) plan.TaskID {
	p.w.Helper()
	id, some, err := p.Claim(p.w.ctx, q.ID, p.node)
	p.w.no(err)
	if !some {
		p.w.Fatalf("there is nothing in queue %q for %s to claim", q.Name, p.node)
	}
	if !must(p.Start(p.w.ctx, id, p.node))(p.w) {
		p.w.Fatalf("%s could not start task %s", p.node, id)
	}
	return id
}

// end ends a task with both writes.
func (p *perl) end(id plan.TaskID, s plan.Status, stdout string) {
	p.w.Helper()
	if !must(p.End(p.w.ctx, id, p.node, s))(p.w) {
		p.w.Fatalf("%s could not end task %s", p.node, id)
	}
	p.w.no(p.Output(p.w.ctx, id, stdout, ""))
}

// nothing fails the test if there is something to claim.
func (p *perl) nothing(q plan.Queue) {
	p.w.Helper()
	if id, some, err := p.Claim(p.w.ctx, q.ID, p.node); err != nil || some {
		p.w.Errorf("%s claimed task %s (%v), want nothing", p.node, id, err)
	}
}

// long is an output of so many bytes.
func long(bytes int) string { return `"` + strings.Repeat("x", bytes-2) + `"` }

var foreignCases = []testCase{
	{"another program runs tasks of a plan, with their parents' outputs among their params", func(w *world) {
		q := w.queue("exec", 0)
		p := w.submit(task("a"), plan.TaskSpec{Name: "b", Needs: []string{"a"}, Params: json.RawMessage(`{"user":"x"}`)}, task("c", "b"), task("d", "c"))
		n, other := w.node("n1"), w.perl("perl1")
		n.end(succeed(n.one(), `{"n":1}`))
		b := other.run(q)
		w.equal("claimed", b, w.named(p, "b").ID)
		w.equalJSON("params", must(other.Params(w.ctx, b))(w), `{"user":"x","needs":{"a":{"n":1}},"args":[{"n":1}]}`)
		w.want(p, "b running")
		other.end(b, plan.Succeeded, `{"out":2}`)
		n.sweep()
		w.want(p, "b succeeded", "c queued")
		w.equalJSON("output", w.named(p, "b").Output, `{"out":2}`)
		c := other.run(q)
		w.equalJSON("params", must(other.Params(w.ctx, c))(w), `{"needs":{"b":{"out":2}},"args":[{"out":2}]}`)
		other.end(c, plan.Succeeded, "plain text\n")
		n.sweep()
		w.equalJSON("params", n.one().Params, `{"needs":{"c":"plain text\n"},"args":["plain text\n"]}`)
		n.end(ok(oneOf(n)))
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"what is held is not there for other programs", func(w *world) {
		q := w.queue("exec", 0)
		w.submitUnready(&plan.Spec{Name: "unready", Tasks: []plan.TaskSpec{task("a")}})
		p := w.submit(task("a"), task("b", "a"), each("copy", plan.Foreach{List: ordinals(3)}, "b"))
		n, other := w.node("n1"), w.perl("perl1")
		n.end(later(n.one(), time.Hour))
		other.nothing(q)
		w.no(w.s.CancelPlan(w.ctx, p.ID, false))
		n.sweep()
		other.nothing(q)
		w.wantPlan(p, plan.PlanCancelled)
	}},
	{"a task that another program inserted is changed while it waits, and run by that program then", func(w *world) {
		q := w.queue("exec", 0)
		n, other := w.node("n1"), w.perl("perl1")
		id := must(other.Insert(w.ctx, q.ID, json.RawMessage(`{"user":"x"}`), true))(w)
		at := w.in(time.Hour)
		w.heldUntil(w.set(id, rules.TaskChange{NotBefore: at, Params: json.RawMessage(`{"user":"y"}`), Attempts: 2}), at)
		other.nothing(q)
		n.sweep()
		w.equal("claimed", len(n.claim(1)), 0)
		w.equal("status", w.set(id, rules.TaskChange{NotBefore: new(time.Time)}).Status, plan.Queued)
		child := w.newTask(q, "child", id) // for which a node notes the end
		w.add(plan.PlanID{}, child)
		w.equal("claimed", other.run(q), id)
		w.equalJSON("params", must(other.Params(w.ctx, id))(w), `{"user":"y"}`)
		w.is(w.s.SetTask(w.ctx, id, rules.TaskChange{Attempts: 3}), plan.ErrConflict)
		other.end(id, plan.Succeeded, "7")
		n.sweep()
		w.equal("ran", n.run(ok), "[child]")
	}},
	{"a status that comes before its output counts when the output is there, or after ten seconds", func(w *world) {
		q := w.queue("exec", 0)
		p := w.submit(task("a"), task("b"), task("after-a", "a"), task("after-b", "b"))
		n, other := w.node("n1"), w.perl("perl1")
		a, b := other.run(q), other.run(q)
		w.equal("status first", []bool{must(other.End(w.ctx, a, "perl1", plan.Succeeded))(w), must(other.End(w.ctx, b, "perl1", plan.Succeeded))(w)}, "[true true]")
		n.sweep()
		w.want(p, "after-a held", "after-b held")
		w.wantPlan(p, plan.PlanRunning)
		other.outputLate(a, p, n)
	}},
	{"ten seconds count from when a node first saw the end, however long the task ran", func(w *world) {
		q := w.queue("exec", 0)
		p := w.submit(task("a"), task("b"), task("after-a", "a"), task("after-b", "b"))
		n, other := w.node("n1"), w.perl("perl1")
		a, b := other.run(q), other.run(q)
		w.pass(time.Hour)
		for _, id := range []plan.TaskID{a, b} {
			w.equal("status first", must(other.End(w.ctx, id, "perl1", plan.Succeeded))(w), true)
		}
		n.sweep()
		w.pass(settling / 4) // a driver that reads its server's clock has the other three quarters to come here
		n.sweep()
		w.want(p, "a succeeded", "b succeeded", "after-a held", "after-b held")
		w.wantPlan(p, plan.PlanRunning)
		other.outputLate(a, p, n)
	}},
	{"what another program ran began with its claim, and ended when a node first saw its end", func(w *world) {
		q := w.queue("exec", 0)
		p := w.submit(task("late"), task("whole"), task("never"))
		n, other := w.node("n1"), w.perl("perl1")
		late, whole, never := other.run(q), other.run(q), other.run(q)
		w.pass(time.Hour)
		for _, id := range []plan.TaskID{late, never} {
			w.equal("status first", must(other.End(w.ctx, id, "perl1", plan.Succeeded))(w), true)
		}
		other.end(whole, plan.Succeeded, "1")
		n.sweep()
		w.pass(5 * time.Second)
		w.no(other.Output(w.ctx, late, "1", ""))
		n.sweep()
		w.pass(settling)
		n.sweep()
		w.wantPlan(p, plan.PlanSucceeded)
		seen := w.named(p, "whole").Ended
		for _, name := range []string{"late", "whole", "never"} {
			t := w.named(p, name)
			if d := t.Ended.Sub(seen); d < -time.Second || d > time.Second {
				w.Errorf("%s ended %v after the one whose output was in at once, want within a second", name, d)
			}
			took := t.Ended.Sub(t.Started)
			switch {
			case name == "never": // its program writes no complete, and may write its own times
				w.equal(name+": began at a known time", t.Started.IsZero(), true)
			case took < time.Hour-time.Second || took > time.Hour+time.Minute:
				w.Errorf("%s took %v, from %v to %v; want an hour", name, took, t.Started, t.Ended)
			}
		}
	}},
	{"what another program printed goes to its children, also of a node that comes to these first", func(w *world) {
		q := w.queue("exec", 0)
		p := w.submit(task("a"), task("b"), task("c", "a", "b"))
		n, other := w.node("n1"), w.perl("perl1")
		a := other.run(q)
		b := n.one()
		other.end(a, plan.Succeeded, `"theirs"`)
		n.end(succeed(b, `"ours"`))
		n.sweep()
		w.want(p, "c queued")
		w.equalJSON("params", w.named(p, "c").Params, `{"needs":{"a":"theirs","b":"ours"},"args":["theirs","ours"]}`)
	}},
	{"of more than 250 parents, too, what another program ended is waited for until its output is in", func(w *world) {
		q := w.queue("exec", 0)
		tasks, last := []plan.TaskSpec{}, task("last")
		for i := range 260 {
			last.Needs = append(last.Needs, fmt.Sprint("t", i))
			tasks = append(tasks, task(fmt.Sprint("t", i)))
		}
		p := w.submit(append(tasks, last)...)
		n, other := w.node("n1"), w.perl("perl1")
		a := other.run(q)
		claims := n.claim(300)
		other.end(a, plan.Succeeded, `"theirs"`)
		var endings []protocol.Ending
		for _, c := range claims {
			endings = append(endings, succeed(c, `"ours"`))
		}
		n.end(endings...)
		n.sweep()
		w.want(p, "last queued")
		var params struct{ Args []string }
		w.no(json.Unmarshal(w.named(p, "last").Params, &params))
		w.equal("outputs", []any{len(params.Args), params.Args[0], params.Args[259]}, []any{260, "theirs", "ours"})
	}},
	{"a plan has not ended before the output of what another program ended last is in", func(w *world) {
		q := w.queue("exec", 0)
		p := w.submit(task("a"), task("b"))
		n, other := w.node("n1"), w.perl("perl1")
		a := other.run(q)
		b := n.one()
		other.end(a, plan.Succeeded, `"theirs"`)
		n.end(ok(b))
		w.wantPlan(p, plan.PlanRunning)
		n.sweep()
		w.wantPlan(p, plan.PlanSucceeded)
		w.equalJSON("output", w.named(p, "a").Output, `"theirs"`)
	}},
	{"what another program ends as failed fails its plan", func(w *world) {
		q := w.queue("exec", 0)
		p := w.submit(task("a"), task("b", "a"), plan.TaskSpec{Name: "anyway", Needs: []string{"a"}, When: plan.AnyFailed})
		n, other := w.node("n1"), w.perl("perl1")
		other.end(other.run(q), plan.Failed, "no")
		n.sweep()
		w.want(p, "a failed", "b skipped", "anyway queued")
		other.end(other.run(q), plan.Succeeded, "")
		n.sweep()
		w.wantPlan(p, plan.PlanFailed)
	}},
	{"another program runs the items of a foreach task", func(w *world) {
		q := w.queue("exec", 0)
		p := w.submit(each("copy", list("x", "y")), task("after", "copy"))
		n, other := w.node("n1"), w.perl("perl1")
		n.end()
		for i := range 2 {
			id := other.run(q)
			w.equalJSON("params", must(other.Params(w.ctx, id))(w), fmt.Sprintf(`{"item":%q}`, "xy"[i:i+1]))
			other.end(id, plan.Succeeded, fmt.Sprint(i))
		}
		n.sweep()
		w.want(p, "copy succeeded", "after queued")
		w.equalJSON("output", w.named(p, "copy").Output, `[0,1]`)
	}},
	{"a foreach over files is never another program's to claim, however often it comes back", func(w *world) {
		q := w.queue("narrow", 3)
		files := in("narrow", "copy", "a")
		files.Foreach = &plan.Foreach{Lines: "list"}
		p := w.submit(in("narrow", "a"), files, in("narrow", "after", "copy"))
		n, other := w.node("n1"), w.perl("perl1")
		w.no(other.Register(w.ctx, "perl1"))
		other.end(other.run(q), plan.Succeeded, "")
		n.sweep()
		theirs := func(how string) {
			w.Helper()
			w.want(p, "copy queued")
			if id, some, err := other.Claim(w.ctx, q.ID, "perl1"); err != nil || some {
				w.Fatalf("%s it was claimed: %s, %v", how, id, err)
			}
		}
		theirs("as it was queued")
		n.end(giveBack(n.one()))
		theirs("as it was given back")
		n.end(later(n.one(), 0))
		theirs("as it was to be tried again")
		n.end(later(n.one(), time.Minute))
		w.pass(2 * time.Minute)
		n.sweep()
		theirs("after a delay")
		m := w.node("n2")
		m.one()
		w.equal("taken by a rescue", must(w.s.Rescue(w.ctx, m.id, -1))(w), 1)
		theirs("as its node died")
		n.end(fail(n.one()))
		w.retry(p, false)
		n.sweep()
		theirs("as it was retried")
		c := n.one()
		n.end(protocol.Ending{Claim: c.Claim, Status: plan.Held, Expand: true, Items: []json.RawMessage{json.RawMessage(`"x"`)}})
		other.end(other.run(q), plan.Succeeded, "7") // its items are anybody's
		n.sweep()
		other.end(other.run(q), plan.Succeeded, "")
		n.sweep()
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"in a queue that other programs serve params hold whole outputs, as far as a task has room for them", func(w *world) {
		q := w.queue("narrow", 9)
		items, many := in("narrow", "items", "a"), in("narrow", "many", "b")
		items.Foreach = &plan.Foreach{List: ordinals(2)}
		many.Foreach = &plan.Foreach{List: ordinals(400)}
		p := w.submit(in("narrow", "a"), in("narrow", "b"), in("narrow", "child", "a"), in("narrow", "both", "a", "b"), items, many)
		n, other := w.node("n1"), w.perl("perl1")
		w.no(other.Register(w.ctx, "perl1"))
		c := n.take("a", "b")
		large, larger := long(100<<10), long(7<<20/2)
		n.end(succeed(c[0], large), succeed(c[1], larger))
		n.sweep()
		w.want(p, "child queued", "items[0] queued", "items[1] queued", "both queued", "many failed")
		if why := w.named(p, "many").Detail; !strings.Contains(why, "the params of its 400 items have") || !strings.Contains(why, "at most") {
			w.Errorf("many failed with %q", why)
		}
		for range 4 {
			id := other.run(q)
			params := must(other.Params(w.ctx, id))(w)
			want, args := `{"a":`+large+`}`, `[`+large+`]`
			if w.task(id).Name == "both" {
				want, args = `{"a":`+large+`,"b":`+larger+`}`, `[`+large+`,`+larger+`]`
			}
			w.equalJSON("needs", lookup(w, params, "needs"), want)
			w.equalJSON("args", lookup(w, params, "args"), args)
			other.end(id, plan.Succeeded, "1")
		}
		n.sweep()
		w.wantPlan(p, plan.PlanFailed)
	}},
	{"in a queue that other programs serve a task fails whose params have no room for its parents' outputs", func(w *world) {
		w.queue("narrow", 9)
		p := w.submit(in("narrow", "a"), in("narrow", "b"), in("narrow", "child", "a", "b"))
		n, other := w.node("n1"), w.perl("perl1")
		w.no(other.Register(w.ctx, "perl1"))
		c := n.take("a", "b")
		n.end(succeed(c[0], long(7<<20/2)), succeed(c[1], long(7<<20/2)))
		n.sweep()
		w.want(p, "child failed")
		if t := w.named(p, "child"); t.Reason != plan.ReasonInput || !strings.Contains(t.Detail, "is given at most 12582912: let them write files and return the paths") {
			w.Errorf("it failed (%v) with %q", t.Reason, t.Detail)
		}
	}},
	{"what is read by reference is not another program's to claim", func(w *world) {
		q := w.queue("exec", 0)
		items := each("items", list(1), "a")
		p := w.submit(task("a"), task("b", "a"), items)
		n, other := w.node("n1"), w.perl("perl1")
		n.end(succeed(n.one(), long(100<<10)))
		w.want(p, "b queued", "items[0] queued")
		other.nothing(q) // as if its threads were set, and its first node registered, after that
		for _, c := range n.take("b", "items[0]") {
			w.equal("by reference", c.ByReference, true)
			n.end(giveBack(c))
		}
		other.nothing(q)
		m := w.node("n2")
		m.take("b", "items[0]")
		w.equal("taken by a rescue", must(w.s.Rescue(w.ctx, m.id, -1))(w), 2)
		other.nothing(q)
		for _, c := range n.take("b", "items[0]") {
			n.end(fail(c))
		}
		w.retry(p, false, "b", "items[0]")
		n.sweep()
		w.want(p, "b queued", "items[0] queued")
		other.nothing(q)
		n.run(ok)
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"who takes a task for another program to run gets whole outputs into its params, or it fails", func(w *world) {
		w.queue("exec", 0)
		p := w.submit(task("a"), task("b"), task("child", "a"), each("items", list("x"), "a"), task("both", "a", "b"))
		n, other := w.node("n1"), w.perl("n1")
		c := n.take("a", "b")
		large := long(7 << 20 / 2)
		n.end(succeed(c[0], large), succeed(c[1], large))
		claimed := n.turn(protocol.Turn{Slots: 9}).Claimed
		w.equal("claimed", len(claimed), 3)
		for _, c := range claimed {
			w.equal("by reference", c.ByReference, true)
			r := w.runner("n1")
			got, err := r.tryTake(c.Task, false)
			if c.Name == "both" {
				if w.is(err, plan.ErrConflict); !strings.Contains(fmt.Sprint(err), "at most 12582912") {
					w.Errorf("it was not taken: %v", err)
				}
				continue
			}
			w.no(err)
			w.equal(c.Name+": by reference", got.ByReference, false)
			params := must(other.Params(w.ctx, c.Task))(w)
			w.equalJSON("params", params, string(got.Params))
			w.equalJSON("needs", lookup(w, params, "needs"), `{"a":`+large+`}`)
			w.equal("started", must(other.Start(w.ctx, c.Task, "n1"))(w), true)
			other.end(c.Task, plan.Succeeded, "1")
		}
		n.sweep()
		w.want(p, "child succeeded", "items succeeded", "both failed")
		w.wantPlan(p, plan.PlanFailed)
	}},
	{"what an attempt printed is not what the next one prints that prints nothing", func(w *world) {
		q := w.queue("exec", 0)
		for how, back := range map[string]func(p plan.Plan, n, r *node, c protocol.ClaimedTask){
			"lost": func(_ plan.Plan, _, r *node, _ protocol.ClaimedTask) {
				w.equal("taken by a rescue", must(w.s.Rescue(w.ctx, r.id, -1))(w), 1)
			},
			"given back":        func(_ plan.Plan, _, r *node, c protocol.ClaimedTask) { r.end(giveBack(c)) },
			"to be tried again": func(_ plan.Plan, _, r *node, c protocol.ClaimedTask) { r.end(later(c, 0)) },
			"retried by a person": func(p plan.Plan, n, r *node, c protocol.ClaimedTask) {
				r.end(fail(c))
				w.retry(p, false)
				n.sweep()
			},
		} {
			p := w.submit(task("a"), task("b", "a"))
			n, other := w.node("n1"), w.perl("perl1")
			id, _, err := other.Claim(w.ctx, q.ID, "perl1")
			w.no(err)
			r := w.runner("perl1")
			c := r.takeOver(id, false)
			w.no(other.Output(w.ctx, id, `"first"`, "first\n"))
			back(p, n, r, c)
			w.want(p, "a queued")
			w.equal(how+": claimed again", other.run(q), id)
			w.equal(how+": ended", must(other.End(w.ctx, id, "perl1", plan.Succeeded))(w), true)
			n.sweep()
			w.want(p, "b held") // what it prints may come yet
			w.pass(settling)
			n.sweep()
			w.want(p, "b queued")
			w.equalJSON(how+": output", w.task(id).Output, "null")
			n.end(ok(n.one()))
			w.wantPlan(p, plan.PlanSucceeded)
		}
	}},
	{"tasks that other programs queue are claimed, whether their node is null or -1", func(w *world) {
		q := w.queue("exec", 0)
		n, other := w.node("n1"), w.perl("perl1")
		first := must(other.Insert(w.ctx, q.ID, json.RawMessage(`{"commands":"a"}`), false))(w)
		second := must(other.Insert(w.ctx, q.ID, json.RawMessage(`{"commands":"b"}`), true))(w)
		c := n.claim(9)
		w.equal("claimed", len(c), 2)
		for _, c := range c {
			want := `{"commands":"a"}`
			if c.Task == second {
				want = `{"commands":"b"}`
			}
			w.equalJSON("params", c.Params, want)
		}
		n.end(ok(c[0]), fail(c[1]))
		w.equal("finished", w.task(first).Status.Finished() && w.task(second).Status.Finished(), true)
	}},
	{"a task may need one that another program queued", func(w *world) {
		q := w.queue("exec", 0)
		n, other := w.node("n1"), w.perl("perl1")
		parent := must(other.Insert(w.ctx, q.ID, json.RawMessage(`{}`), false))(w)
		child := w.newTask(q, "child", parent)
		w.add(plan.PlanID{}, child)
		w.equal("child", w.task(child.ID).Status, plan.Held)
		other.end(other.run(q), plan.Succeeded, `7`)
		n.sweep()
		c := n.one()
		w.equal("claimed", c.Task, child.ID)
		w.equalJSON("args", lookup(w, c.Params, "args"), `[7]`)
	}},
	{"a task may need one that another program has queued and ended", func(w *world) {
		q := w.queue("exec", 0)
		n, other := w.node("n1"), w.perl("perl1")
		parent := must(other.Insert(w.ctx, q.ID, json.RawMessage(`{}`), false))(w)
		other.end(other.run(q), plan.Succeeded, `7`)
		child := w.newTask(q, "child", parent)
		w.add(plan.PlanID{}, child)
		n.sweep()
		c := n.one()
		w.equal("claimed", c.Task, child.ID)
		w.equalJSON("args", lookup(w, c.Params, "args"), `[7]`)
	}},
}
