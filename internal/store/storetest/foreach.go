package storetest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

var foreachCases = []testCase{
	{"a foreach task has an item for each element, and its output is the list of theirs", func(w *world) {
		p := w.submit(plan.TaskSpec{
			Name: "copy", Foreach: &plan.Foreach{List: json.RawMessage(`["x",{"user":"ü"},null]`)}, Params: json.RawMessage(`{"run":"c","item":0}`),
			Retry: plan.Retry{Attempts: 4}, Timeout: time.Minute, OnLost: plan.OnLostFail,
		}, task("after", "copy"))
		n := w.node("n1")
		n.end()
		w.want(p, "copy held", "copy[0] queued", "copy[1] queued", "copy[2] queued", "after held")
		copied := w.named(p, "copy")
		w.equal("copy", []any{copied.Items, copied.Expanded, copied.Expanding}, []any{3, true, false})
		c := n.take("copy[0]", "copy[1]", "copy[2]")
		began := w.named(p, "copy").Started
		w.equal("copy began, and not after its items", []any{began.IsZero(), began.After(w.named(p, "copy[0]").Started)}, []any{false, false})
		for i, item := range []string{`"x"`, `{"user":"ü"}`, `null`} {
			w.equalJSON("params", c[i].Params, `{"run":"c","item":`+item+`}`)
			w.equal("inherited", []any{c[i].Index, c[i].Retry.Attempts, c[i].Timeout, c[i].OnLost, c[i].Foreach == nil, c[i].ByReference},
				[]any{i, 4, time.Minute, plan.OnLostFail, true, false})
		}
		item := w.named(p, "copy[1]")
		w.equal("item", []any{item.Of, item.Index, item.ID}, []any{copied.ID, 1, rules.ItemID(copied.ID, 1)})
		n.end(succeed(c[2], `"third"`), succeed(c[0], `{"first":1}`))
		w.want(p, "copy held")
		n.end(ok(c[1]))
		after := n.one()
		w.equalJSON("params", after.Params, `{"needs":{"copy":[{"first":1},null,"third"]},"args":[[{"first":1},null,"third"]]}`)
		w.equalJSON("output", w.named(p, "copy").Output, `[{"first":1},null,"third"]`)
		n.end(ok(after))
		w.wantPlan(p, plan.PlanSucceeded)
		w.equal("tasks", w.plan(p.ID).Counts.Succeeded, 4)
	}},
	{"a foreach task whose items end in a turn ends after the children of the turn's other tasks are looked at, and closes the plan then", func(w *world) {
		p := w.submitSpec(&plan.Spec{Name: "nightly", OnFailure: plan.Stop, Tasks: []plan.TaskSpec{
			each("copy", list(1, 2)), task("a"), task("below", "a"), task("slow"), task("after", "slow"),
		}})
		n := w.node("n1")
		claimed := n.turn(protocol.Turn{Slots: 4}).Claimed
		w.equal("claimed", len(claimed), 4)
		w.no(w.s.CancelTask(w.ctx, w.named(p, "copy").ID))
		w.no(w.s.CancelTask(w.ctx, w.named(p, "a").ID))
		by := map[string]protocol.ClaimedTask{}
		for _, c := range claimed {
			t := w.task(c.Task)
			by[t.Key()] = c
		}
		n.end(ok(by["copy[0]"]), giveBack(by["copy[1]"]), giveBack(by["a"]))
		n.sweep()
		w.want(p, "copy terminated", "a cancelled", "below skipped", "slow claimed", "after skipped")
		w.equal("details", []string{w.named(p, "below").Detail, w.named(p, "after").Detail}, []string{"", rules.ByFailure})
	}},
	{"a foreach task without items succeeds with an empty list", func(w *world) {
		p := w.submit(each("copy", list()), task("after", "copy"))
		n := w.node("n1")
		n.end()
		w.want(p, "copy succeeded", "after queued")
		w.equalJSON("params", n.one().Params, `{"needs":{"copy":[]},"args":[[]]}`)
		w.equal("items", []any{w.named(p, "copy").Items, len(w.all(store.TaskQuery{Of: w.named(p, "copy").ID}))}, "[0 0]")
		w.equal("detail", w.named(p, "copy").Detail, "no items: its list is empty")
	}},
	{"one item, and a thousand", func(w *world) {
		for _, items := range []int{1, 1000} {
			p := w.submit(each("copy", plan.Foreach{List: ordinals(items)}), task("after", "copy"))
			n := w.node("n1")
			n.end()
			w.equal("ran", len(n.run(withOutput)), items+1)
			want := make([]int, items)
			for i := range want {
				want[i] = 2 * i
			}
			out, _ := json.Marshal(want) // numbers
			w.equalJSON("output", w.named(p, "copy").Output, string(out))
			w.wantPlan(p, plan.PlanSucceeded)
		}
	}},
	{"a foreach over the outputs of another's items", func(w *world) {
		p := w.submit(each("first", list(1, 2, 3)), each("second", plan.Foreach{Value: "needs.first"}, "first"), task("after", "first", "second"))
		n := w.node("n1")
		n.end()
		n.run(func(c protocol.ClaimedTask) protocol.Ending {
			if c.Name == "second[2]" {
				w.equalJSON("params", c.Params, `{"needs":{"first":null},"args":[null],"item":4}`)
			}
			return withOutput(c)
		})
		w.equalJSON("params", w.named(p, "after").Params, `{"needs":{"first":[0,2,4],"second":[0,2,4]},"args":[[0,2,4],[0,2,4]]}`)
		w.wantPlan(p, plan.PlanSucceeded)
		w.equal("tasks", w.plan(p.ID).Counts.Succeeded, 7)
	}},
	{"the items of a parent's output are made when the parent has finished, with its outputs, but for the list itself, among their params", func(w *world) {
		p := w.submit(task("list"), task("host"), each("copy", plan.Foreach{Value: "needs.list.mailboxes"}, "list", "host"), task("after", "copy"))
		n := w.node("n1")
		c := n.take("list", "host")
		n.end(succeed(c[0], `{"mailboxes":["a","b"],"of":"mx1"}`))
		w.want(p, "copy held")
		n.end(succeed(c[1], `"mx"`))
		items := n.take("copy[0]", "copy[1]")
		w.equalJSON("params", items[1].Params,
			`{"needs":{"list":{"of":"mx1"},"host":"mx"},"args":[{"of":"mx1"},"mx"],"item":"b"}`)
		w.equal("by reference", items[1].ByReference, false)
		n.end(ok(items[0]), ok(items[1]))
		n.run(ok)
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"items of parents with large outputs have these by reference", func(w *world) {
		w.submit(task("list"), each("copy", plan.Foreach{Value: "needs.list.names"}, "list"))
		n := w.node("n1")
		out := fmt.Sprintf(`{"names":["a","b"],"more":%q}`, strings.Repeat("x", 2*plan.MaxCopiedItem))
		n.end(succeed(n.one(), out))
		c := n.take("copy[0]", "copy[1]")
		w.equal("by reference", c[1].ByReference, true)
		w.equalJSON("params", c[1].Params, `{"item":"b"}`)
		in := must(w.s.Inputs(w.ctx, c[1].Task))(w)
		w.equal("inputs", []any{len(in), in[0].Name}, "[1 list]")
		w.equalJSON("input", in[0].Output, strings.Replace(out, `"names":["a","b"],`, "", 1))
	}},
	{"items of a list that is put together get nothing of it", func(w *world) {
		w.submit(each("copy", list(0, 1, 2)), task("host"), each("again", plan.Foreach{Value: "needs.copy.1"}, "copy", "host"))
		n := w.node("n1")
		n.end()
		var ended []protocol.Ending
		for _, c := range n.claim(9) {
			ended = append(ended, succeed(c, fmt.Sprintf("[%d, %q]", c.Index, strings.Repeat("x", plan.MaxCopiedOne/2))))
		}
		n.end(ended...)
		c := n.claim(9)
		w.equal("items", len(c), 2)
		w.equal("by reference", c[0].ByReference, true)
		in := must(w.s.Inputs(w.ctx, c[0].Task))(w)
		w.equal("inputs", []any{in[0].Name, len(in[0].Output) < 5, in[1].Name, len(in[1].Output) > plan.MaxCopiedOne/2}, "[copy true host true]")
	}},
	{"what is not a list that can be made into items fails the task with its reason", func(w *world) {
		for _, c := range []struct{ name, value, output string }{
			{"not a list", "needs.list", `{"a":1}`},
			{"null", "needs.list", ``},
			{"no such field", "needs.list.mailboxes", `{"boxes":[]}`},
			{"too many items", "needs.list", string(ordinals(plan.MaxItems + 1))},
		} {
			p := w.submit(task("list"), each("copy", plan.Foreach{Value: c.value}, "list"), task("after", "copy"))
			n := w.node("n1")
			n.end(succeed(n.one(), c.output))
			w.want(p, "copy failed", "after skipped")
			copied := w.named(p, "copy")
			if copied.Reason != plan.ReasonInput || copied.Detail == "" {
				w.Errorf("%s: the reason is %q, %q", c.name, copied.Reason, copied.Detail)
			}
			w.wantPlan(p, plan.PlanFailed)
		}
	}},
	{"a foreach over files is claimed by a node, which makes the items", func(w *world) {
		p := w.submit(task("z"), each("copy", plan.Foreach{Lines: "/tmp/list"}, "z"), task("after", "copy"))
		n := w.node("n1")
		n.end(succeed(n.one(), `1`))
		c := n.one()
		w.equal("claim", []any{c.Name, c.Foreach.Lines}, "[copy /tmp/list]")
		n.end(expand(c, `"a"`, `"b"`))
		w.want(p, "copy held", "copy[0] queued", "copy[1] queued")
		w.equal("lost", n.end(expand(c, `"a"`)).Lost, []plan.TaskID{c.Task})
		w.equalJSON("params", n.holdOne("copy[1]").Params, `{"needs":{"z":1},"args":[1],"item":"b"}`)
		for _, c := range n.holding {
			n.end(withOutput(c))
		}
		n.run(withOutput)
		w.equalJSON("output", w.named(p, "copy").Output, `[0,2]`)
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"a foreach over files without any succeeds with an empty list", func(w *world) {
		p := w.submit(each("copy", plan.Foreach{Glob: "*.none"}), task("after", "copy"))
		n := w.node("n1")
		e := expand(n.one())
		e.Detail = e.Task.String()
		n.end(e)
		w.want(p, "copy succeeded", "after queued")
		w.equalJSON("output", w.named(p, "copy").Output, `[]`)
		w.equal("detail", w.named(p, "copy").Detail, e.Detail)
	}},
	{"a node that makes too many items fails the task", func(w *world) {
		p := w.submit(each("copy", plan.Foreach{Glob: "*"}))
		n := w.node("n1")
		e := expand(n.one())
		e.Items = slices.Repeat([]json.RawMessage{json.RawMessage(`1`)}, plan.MaxItems+1)
		n.end(e)
		w.want(p, "copy failed")
		w.equal("reason", w.named(p, "copy").Reason, plan.ReasonInput)
		w.wantPlan(p, plan.PlanFailed)
	}},
	{"a foreach over files whose node cannot read them fails, and may be tried again", func(w *world) {
		p := w.submit(each("copy", plan.Foreach{Lines: "/tmp/list"}))
		n := w.node("n1")
		n.end(later(n.one(), time.Minute))
		w.pass(2 * time.Minute)
		n.sweep()
		c := n.one()
		w.equal("attempt", c.Attempt, 2)
		n.end(fail(c))
		w.want(p, "copy failed")
		w.wantPlan(p, plan.PlanFailed)
	}},
	{"items that fail fail their task, which still has the outputs of the others", func(w *world) {
		p := w.submit(each("copy", list(0, 1, 2)), plan.TaskSpec{Name: "after", Needs: []string{"copy"}, When: plan.AllDone}, task("good", "copy"))
		n := w.node("n1")
		n.run(failing("copy[1]"))
		copied := w.named(p, "copy")
		w.equal("copy", []any{copied.State(), copied.Reason, copied.Detail}, "[failed items 1 of 3 items failed]")
		w.equal("counts", w.plan(p.ID).Counts, plan.Counts{Succeeded: 3, Failed: 1, Skipped: 1, Gathered: 1})
		w.equalJSON("output", copied.Output, `[0,null,4]`)
		w.want(p, "after succeeded", "good skipped", "copy[0] succeeded")
		w.equalJSON("params", w.named(p, "after").Params, `{"needs":{"copy":[0,null,4]},"args":[[0,null,4]]}`)
		w.wantPlan(p, plan.PlanFailed)
	}},
	{"with continue-on-error items may fail", func(w *world) {
		copied := each("copy", list(0, 1, 2))
		copied.ContinueOnError = true
		p := w.submit(copied, task("after", "copy"))
		w.node("n1").run(failing("copy[1]"))
		w.want(p, "copy succeeded", "copy[1] failed", "after succeeded")
		w.equalJSON("output", w.named(p, "copy").Output, `[0,null,4]`)
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"an item that a person cancels cancels its task", func(w *world) {
		p := w.submit(each("copy", list(0, 1)), task("after", "copy"))
		n := w.node("n1")
		n.end()
		w.no(w.s.CancelTask(w.ctx, w.named(p, "copy[1]").ID))
		n.run(ok)
		w.want(p, "copy[0] succeeded", "copy[1] cancelled", "copy cancelled", "after skipped")
		w.wantPlan(p, plan.PlanCancelled)
	}},
	{"a foreach task is counted as long as it has no items, and then they are", func(w *world) {
		may := task("may")
		may.ContinueOnError = true
		p := w.submit(task("bad"), each("skipped", list(0), "bad"), each("none", list()), each("copy", list(0, 1)), may)
		n := w.node("n1")
		n.sweep()
		w.equal("before", w.plan(p.ID).Counts, plan.Counts{Held: 1, Queued: 4, Succeeded: 1, Gathering: 1})
		n.run(failing("bad", "may", "copy[1]"))
		w.wantPlan(p, plan.PlanFailed)
		w.equal("at the end", w.plan(p.ID).Counts, plan.Counts{Succeeded: 2, Failed: 2, Allowed: 1, Skipped: 1, Gathered: 1})
		w.retry(p, false)
		w.equal("retried", w.plan(p.ID).Counts, plan.Counts{Held: 1, Queued: 2, Succeeded: 2, Allowed: 1, Gathering: 1})
		n.run(ok)
		w.wantPlan(p, plan.PlanSucceeded)
		w.equal("at the second end", w.plan(p.ID).Counts, plan.Counts{Succeeded: 5, Allowed: 1, Gathered: 2})
	}},
	{"a foreach task that is skipped makes no items", func(w *world) {
		p := w.submit(task("a"), each("copy", list(0, 1), "a"))
		n := w.node("n1")
		n.end(fail(n.one()))
		w.want(p, "copy skipped")
		w.equal("tasks", w.plan(p.ID).Counts.Total(), 2)
	}},
	{"items go through delays, rescues and retries like other tasks", func(w *world) {
		p := w.submit(each("copy", list(0, 1)))
		n := w.node("n1")
		c := n.take("copy[0]", "copy[1]")
		n.end(later(c[0], time.Minute))
		must(w.s.Rescue(w.ctx, n.id, -1))(w)
		other := w.node("n2")
		other.end(withOutput(other.holdOne("copy[1]")))
		w.pass(2 * time.Minute)
		other.sweep()
		other.end(withOutput(other.holdOne("copy[0]")))
		w.equalJSON("output", w.named(p, "copy").Output, `[0,2]`)
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"a list of outputs that is too long to be kept is put together when it is asked for", func(w *world) {
		p := w.submit(each("copy", list(0, 1, 2, 3)), task("after", "copy"), each("again", plan.Foreach{Value: "needs.copy"}, "copy"))
		n := w.node("n1")
		n.end()
		long := func(i int) string { return fmt.Sprintf("%q", fmt.Sprint(i, strings.Repeat("x", 30<<10))) }
		var ended []protocol.Ending
		for _, c := range n.claim(9) {
			ended = append(ended, succeed(c, long(c.Index)))
		}
		n.end(ended...)
		want := fmt.Sprintf("[%s,%s,%s,%s]", long(0), long(1), long(2), long(3))
		w.equalJSON("output", w.named(p, "copy").Output, want)
		c := n.claim(9)
		k := slices.IndexFunc(c, func(c protocol.ClaimedTask) bool { return c.Name == "after" })
		w.equal("by reference", c[k].ByReference, true)
		in := must(w.s.Inputs(w.ctx, c[k].Task))(w)
		w.equal("input", in[0].Name, "copy")
		w.equalJSON("input", in[0].Output, want)
		w.equal("items of the list", w.named(p, "again").Items, 4)
	}},
	{"an expansion that is larger than a turn's budget goes on in later turns, of whatever instance", func(w *world) {
		items := 250
		p := w.submitUnready(&plan.Spec{Name: "nightly", Tasks: []plan.TaskSpec{
			task("a"), each("copy", plan.Foreach{List: ordinals(items)}, "a"), task("after", "copy"),
		}})
		w.no(w.s.Ready(w.ctx, p.ID))
		n, other := w.node("n1"), w.node("n2")
		did := n.turn(protocol.Turn{Ended: []protocol.Ending{ok(n.one())}, Budget: 100})
		if now := w.plan(p.ID).Counts.Total(); now > 103 {
			w.Errorf("a turn with a budget of 100 inserted %d items", now-3)
		}
		for turns := 0; did.More; turns++ {
			if turns > 20 {
				w.Fatal("an expansion of 250 items has not ended after 20 turns of 100")
			}
			held := w.plan(p.ID).Counts.Held
			did = other.turn(protocol.Turn{Budget: 100})
			if now := w.plan(p.ID).Counts.Held; now > held+100 || did.Queued > 100 {
				w.Errorf("a turn with a budget of 100 inserted %d tasks and queued %d", now-held, did.Queued)
			}
		}
		w.equal("queued", w.plan(p.ID).Counts.Queued, items)
		n.run(withOutput)
		var out []int
		w.no(json.Unmarshal(w.named(p, "copy").Output, &out))
		w.equal("output", []any{len(out), out[items-1]}, []any{items, 2 * (items - 1)})
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"items that are still to be made are not taken for cancelled ones when others are cancelled", func(w *world) {
		const items, budget = 300, 253 // with which the first of a second 250 are in, wherever these are taken together
		p := w.submit(task("a"), each("copy", plan.Foreach{List: ordinals(items)}, "a"))
		n := w.node("n1")
		n.turn(protocol.Turn{Ended: []protocol.Ending{ok(n.one())}, Budget: budget})
		in := w.all(store.TaskQuery{Of: w.named(p, "copy").ID})
		if len(in) == 0 || len(in) == items {
			w.Fatalf("%d items are in, want some", len(in))
		}
		cancelled := 0
		for _, t := range in {
			if t.Index >= min(len(in)-1, 250) {
				w.no(w.s.CancelTask(w.ctx, t.ID))
				cancelled++
			}
		}
		n.sweep()
		claimed := n.claim(items)
		w.equal("claimed", len(claimed), items-cancelled)
		var ended []protocol.Ending
		var last protocol.ClaimedTask
		for _, c := range claimed {
			if c.Index == items-1 {
				last = c
			} else {
				ended = append(ended, ok(c))
			}
		}
		n.end(ended...)
		w.want(p, "copy held")
		n.end(ok(last))
		w.want(p, "copy cancelled")
		w.wantPlan(p, plan.PlanCancelled)
	}},
	{"a plan that is cancelled while items are made leaves none behind, and a retry makes them all", func(w *world) {
		p := w.submit(task("a"), each("copy", plan.Foreach{List: ordinals(250)}, "a"))
		n := w.node("n1")
		n.turn(protocol.Turn{Ended: []protocol.Ending{ok(n.one())}, Budget: 100})
		w.no(w.s.CancelPlan(w.ctx, p.ID, false))
		n.sweep()
		w.wantPlan(p, plan.PlanCancelled)
		w.want(p, "copy cancelled")
		w.equal("queued", w.plan(p.ID).Counts.Queued, 0)
		w.retry(p, false)
		n.sweep()
		w.equal("ran", len(n.run(withOutput)), 250)
		w.want(p, "copy succeeded")
		w.wantPlan(p, plan.PlanSucceeded)
		w.equal("tasks", w.plan(p.ID).Counts.Total(), 251)
	}},
	{"items are listed by index", func(w *world) {
		p := w.submit(each("copy", plan.Foreach{List: ordinals(30)}), task("b"))
		w.node("n1").end()
		items := w.all(store.TaskQuery{Of: w.named(p, "copy").ID})
		w.equal("items", len(items), 30)
		for i, t := range items {
			if t.Index != i {
				w.Fatalf("item %d comes in place %d", t.Index, i)
			}
		}
		w.equal("without items", len(w.all(store.TaskQuery{Plan: p.ID, NoItems: true})), 2)
	}},
	{"items over groups get the outputs as they are, whoever asked before", func(w *world) {
		p := w.submit(plan.TaskSpec{Name: "a", Plugin: "disco"}, each("stage", plan.Foreach{Value: "needs.a", Group: "split"}, "a"))
		n := w.node("n1")
		for try, host := range []string{"one", "two"} {
			output := fmt.Sprintf(`[[0,"disco://%s/x",1],[1,"disco://%s/y",1],[2,"raw://%s",0]]`, host, host, strings.Repeat("z", plan.MaxCopiedItem))
			n.end(succeed(n.one(), output))
			items := n.claim(3)
			w.equal("items", len(items), 3)
			for _, c := range items {
				w.equal("by reference", c.ByReference, true)
				in := must(w.s.Inputs(w.ctx, c.Task))(w)
				w.equal("inputs", len(in), 1)
				w.equal("the output", string(in[0].Output), output)
				n.end(fail(c))
			}
			if try == 0 {
				w.no(w.tryRetry(p.ID, rules.Ask{Tasks: []plan.TaskID{w.named(p, "a").ID}, Downstream: true}))
			}
		}
	}},
	{"a large foreach makes each item once and gathers them in order", func(w *world) {
		items := w.d.items()
		p := w.submit(task("a"), each("copy", plan.Foreach{Value: "needs.a"}, "a"), task("after", "copy"))
		n := w.node("n1")
		m := w.meter()
		ended := []protocol.Ending{succeed(n.one(), string(ordinals(items)))}
		for more := true; more || len(ended) > 0; {
			did := m.turn(n, protocol.Turn{Ended: ended, Slots: 500, Start: true})
			more, ended = did.More, nil
			for _, c := range did.Claimed {
				ended = append(ended, withOutput(c))
			}
		}
		m.report(fmt.Sprintf("foreach over %d items", items))
		w.wantPlan(p, plan.PlanSucceeded)
		w.equal("tasks", w.plan(p.ID).Counts.Succeeded, items+2)
		var out []int
		w.no(json.Unmarshal(w.named(p, "copy").Output, &out))
		for i, v := range out {
			if v != 2*i {
				w.Fatalf("output %d is %d, want %d", i, v, 2*i)
			}
		}
		w.equal("outputs", len(out), items)
	}},
}
