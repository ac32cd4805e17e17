package storetest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// along returns a task that goes along with others.
func along(name string, when plan.When, heads ...string) plan.TaskSpec {
	return plan.TaskSpec{Name: name, When: when, Foreach: &plan.Foreach{Each: heads}}
}

// alongCases are about foreach tasks that go along with others.
var alongCases = []testCase{
	{"a plan ends with a task that waited earlier in the turn that ended it", func(w *world) { // history 380475020 on MongoDB
		b, c := along("b", "", "a"), along("c", plan.AnySkipped, "a")
		c.Needs = append(c.Needs, "b")
		p := w.submit(each("a", plan.Foreach{Lines: "/tmp/list"}), b, c)
		w.equal("ran", w.node("n1").run(func(c protocol.ClaimedTask) protocol.Ending {
			if c.Name == "a" {
				return expand(c, "1")
			}
			return ok(c)
		}), "[a a[0] b[0]]")
		w.want(p, "a succeeded", "a[0] succeeded", "b succeeded", "b[0] succeeded", "c skipped", "c[0] skipped")
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"an item of a task that goes along with another one starts as soon as the item with its index has ended", func(w *world) {
		p := w.submit(each("copy", list("a", "b", "c")), along("check", "", "copy"), along("mark", "", "check"), task("total", "mark"))
		n := w.node("n1")
		n.end()
		w.want(p, "copy held", "copy[0] queued", "copy[1] queued", "copy[2] queued", "check held", "check[0] held", "check[1] held", "check[2] held",
			"mark held", "mark[0] held", "mark[1] held", "mark[2] held", "total held")
		copies := n.take("copy[0]", "copy[1]", "copy[2]")
		n.end(succeed(copies[1], `{"bytes":7}`))
		check := n.one()
		w.equal("claimed", check.Name, "check[1]")
		w.equalJSON("params", check.Params, `{"needs":{"copy":{"bytes":7}},"args":[{"bytes":7}],"item":"b"}`)
		item := w.named(p, "check[1]")
		w.equal("the item", []any{item.Of, item.Index, item.Needs}, []any{w.named(p, "check").ID, 1, []plan.TaskID{w.named(p, "copy[1]").ID}})
		w.equal("parents", fmt.Sprint(must(w.s.Parents(w.ctx, item.ID))(w)), "[{copy succeeded}]")
		n.end(ok(check), succeed(copies[0], "1"))
		w.want(p, "copy held", "check held", "check[0] queued", "check[1] succeeded", "mark[0] held", "mark[1] queued", "total held")
		n.end(ok(copies[2]))
		w.want(p, "copy succeeded", "check held")
		n.run(withOutput)
		w.equalJSON("output", w.named(p, "mark").Output, "[0,2,4]")
		w.wantPlan(p, plan.PlanSucceeded)
		w.equal("counts", w.plan(p.ID).Counts, plan.Counts{Succeeded: 10, Gathered: 3})
	}},
	{"the rule of a task that goes along is asked for each item, and what is skipped by it is no failure", func(w *world) {
		p := w.submit(each("copy", list(0, 1, 2)), along("check", "", "copy"), along("undo", plan.AnyFailed, "copy", "check"), task("total", "check"), task("after", "undo"))
		n := w.node("n1")
		n.run(failing("copy[1]"))
		w.want(p, "copy failed", "copy[0] succeeded", "copy[1] failed", "copy[2] succeeded",
			"check skipped", "check[0] succeeded", "check[1] skipped", "check[2] succeeded",
			"undo succeeded", "undo[0] skipped", "undo[1] succeeded", "undo[2] skipped", "total skipped", "after succeeded")
		w.equal("details", []string{w.named(p, "check").Detail, w.named(p, "total").Detail}, []string{"some of its items were skipped", ""})
		w.wantPlan(p, plan.PlanFailed)
	}},
	{"if all items of a task that goes along are skipped, it is skipped", func(w *world) {
		p := w.submit(each("copy", list(0, 1)), along("undo", plan.AnyFailed, "copy"), task("after", "undo"))
		n := w.node("n1")
		n.run(failing())
		w.want(p, "copy succeeded", "undo skipped", "undo[0] skipped", "undo[1] skipped", "after skipped")
		w.equal("detail", w.named(p, "undo").Detail, "all of its items were skipped")
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"what a task needs beside those that it goes along with is a barrier, and each item is given its output", func(w *world) {
		check := along("check", "", "copy")
		check.Needs = []string{"key"}
		p := w.submit(each("copy", list(5, 6)), task("key"), check)
		n := w.node("n1")
		n.end()
		key := n.holdOne("key")
		for _, c := range held(n) {
			if c.Name != "key" {
				n.end(withOutput(c))
			}
		}
		w.want(p, "copy succeeded", "check held")
		w.equal("items", len(w.all(store.TaskQuery{Of: w.named(p, "check").ID})), 0)
		n.end(succeed(key, `"k"`))
		for _, c := range n.take("check[0]", "check[1]") {
			w.equalJSON("params", c.Params, fmt.Sprintf(`{"needs":{"copy":%d,"key":"k"},"args":[%[1]d,"k"],"item":%d}`, 2*c.Index, 5+c.Index))
			n.end(ok(c))
		}
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"a barrier that failed skips a task that goes along, without making its items, unless its rule wants failures", func(w *world) {
		check, undo := along("check", "", "copy"), along("undo", plan.AnyFailed, "copy")
		check.Needs, undo.Needs = []string{"key"}, []string{"key"}
		p := w.submit(each("copy", list(5, 6)), task("key"), check, undo)
		n := w.node("n1")
		n.run(failing("key"))
		w.want(p, "key failed", "copy succeeded", "check skipped", "undo succeeded", "undo[0] succeeded", "undo[1] succeeded")
		w.equal("items of check", w.named(p, "check").Items, 0)
		w.wantPlan(p, plan.PlanFailed)
	}},
	{"a task that goes along with one that has no items has none, and asks its rule as any task does", func(w *world) {
		p := w.submit(each("copy", list()), along("check", "", "copy"), task("list"), each("lost", plan.Foreach{Value: "needs.list"}, "list"),
			along("then", "", "lost"), along("always", plan.AllDone, "lost"), task("after", "check"))
		n := w.node("n1")
		n.run(failing("list"))
		w.want(p, "copy succeeded", "check succeeded", "list failed", "lost skipped", "then skipped", "always succeeded", "after succeeded")
		w.equal("detail", w.named(p, "check").Detail, "no items: what it goes along with has none")
	}},
	{"large outputs of an item reach the item below by reference", func(w *world) {
		p := w.submit(each("copy", list(0)), along("check", "", "copy"))
		n := w.node("n1")
		n.end()
		out := fmt.Sprintf("%q", strings.Repeat("x", plan.MaxCopiedOne+1))
		n.end(succeed(n.one(), out))
		c := n.one()
		w.equal("claimed", []any{c.Name, c.ByReference}, []any{"check[0]", true})
		in := must(w.s.Inputs(w.ctx, c.Task))(w)
		w.equal("inputs", []any{len(in), in[0].Name}, "[1 copy]")
		w.equalJSON("input", in[0].Output, out)
		n.end(ok(c))
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"a retry of an item takes what is below it of that item alone", func(w *world) {
		p := w.submit(each("copy", list(0, 1, 2)), along("check", "", "copy"), along("undo", plan.AnyFailed, "copy"), task("total", "check"))
		n := w.node("n1")
		n.run(failing("copy[1]", "copy[2]"))
		w.want(p, "copy failed", "check skipped", "undo succeeded", "total skipped")
		w.retry(p, false, "copy[1]")
		w.want(p, "copy held", "copy[0] succeeded", "copy[1] queued", "copy[2] failed", "check held", "check[0] succeeded", "check[1] held", "check[2] skipped",
			"undo held", "undo[0] skipped", "undo[1] held", "undo[2] succeeded", "total held")
		w.equal("ran", n.run(failing()), "[copy[1] check[1]]")
		w.want(p, "copy failed", "check skipped", "check[1] succeeded", "check[2] skipped", "undo[1] skipped", "undo succeeded", "total skipped")
		w.equal("ran", func() []string { w.retry(p, false); return n.run(failing()) }(), "[copy[2] check[2] total]")
		w.want(p, "copy succeeded", "check succeeded", "undo skipped", "total succeeded")
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"a retry of an item below leaves the item above", func(w *world) {
		p := w.submit(each("copy", list(0, 1)), along("check", "", "copy"), task("total", "check"))
		n := w.node("n1")
		n.run(failing("check[1]"))
		w.want(p, "copy succeeded", "check failed", "total skipped")
		w.retry(p, false)
		w.want(p, "copy succeeded", "check held", "check[0] succeeded", "check[1] queued", "total held")
		w.equal("ran", n.run(failing()), "[check[1] total]")
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"if the items of a task are made again, so are those of what goes along with it", func(w *world) {
		p := w.submit(task("list"), each("copy", plan.Foreach{Value: "needs.list"}, "list"), along("check", "", "copy"), along("mark", plan.AllDone, "check"))
		n := w.node("n1")
		n.end(succeed(n.one(), "[1,2,3]"))
		n.run(failing("copy[0]"))
		w.want(p, "copy failed", "check skipped", "mark succeeded")
		w.retry(p, true, "list")
		w.want(p, "list queued", "copy held", "check held", "mark held")
		w.equal("tasks", len(w.all(store.TaskQuery{Plan: p.ID})), 4)
		n.end(succeed(n.one(), "[4,5]"))
		w.equal("ran", len(n.run(failing())), 6)
		w.want(p, "copy succeeded", "check succeeded", "mark succeeded", "mark[1] succeeded")
		w.equalJSON("params", w.named(p, "mark[1]").Params, `{"needs":{"check":2},"args":[2],"item":5}`)
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"tasks that go along end with their plan, and with a task that a person cancels", func(w *world) {
		p := w.submit(each("copy", list(0, 1)), along("check", "", "copy"), along("undo", plan.AnyFailed, "copy"))
		n := w.node("n1")
		n.end()
		w.no(w.s.CancelTask(w.ctx, w.named(p, "check").ID))
		n.sweep()
		w.want(p, "copy held", "check cancelled", "check[0] cancelled", "check[1] cancelled", "undo held")
		c := n.take("copy[0]", "copy[1]")
		w.no(w.s.CancelPlan(w.ctx, p.ID, false))
		n.end(ok(c[0]), ok(c[1]))
		n.sweep()
		w.want(p, "copy succeeded", "undo[0] cancelled", "undo[1] cancelled", "undo cancelled")
		w.wantPlan(p, plan.PlanCancelled)
	}},
	{"many items of tasks that go along are made and told within the budgets of turns", func(w *world) {
		const items = 300
		p := w.submit(each("copy", plan.Foreach{List: ordinals(items)}), along("check", "", "copy"), along("mark", "", "check"), task("total", "mark"))
		n := w.node("n1")
		for range 2000 {
			did := n.turn(protocol.Turn{Slots: 50, Start: true, Budget: 37})
			var ends []protocol.Ending
			for _, c := range did.Claimed {
				ends = append(ends, withOutput(c))
			}
			slices.Reverse(ends)
			n.turn(protocol.Turn{Ended: ends, Budget: 37})
			if w.plan(p.ID).State.Ended() {
				break
			}
		}
		w.wantPlan(p, plan.PlanSucceeded)
		w.equal("counts", w.plan(p.ID).Counts, plan.Counts{Succeeded: 3*items + 1, Gathered: 3})
		w.equal("an item", w.named(p, "mark[299]").ID, rules.ItemID(w.named(p, "mark").ID, 299))
	}},
	{"a task that goes along is decided after a retry of a task above its other parents", func(w *world) {
		after := along("after", "", "copy")
		after.Needs = []string{"undo", "other"}
		p := w.submit(each("copy", list(0, 1)), task("first"), plan.TaskSpec{Name: "undo", When: plan.AnyFailed, Needs: []string{"first"}}, task("other"), after)
		n := w.node("n1")
		n.end()
		by := map[string]protocol.ClaimedTask{}
		for _, c := range n.claim(4) {
			by[c.Name] = c
		}
		w.no(w.s.CancelTask(w.ctx, w.named(p, "copy").ID))
		n.end(later(by["copy[0]"], delay), ok(by["copy[1]"]))
		w.no(w.s.CancelPlan(w.ctx, p.ID, false))
		n.end(giveBack(by["other"]), giveBack(by["first"]))
		n.sweep()
		w.wantPlan(p, plan.PlanCancelled)
		w.retry(p, true, "first")
		n.end()
		n.run(failing())
		w.want(p, "first succeeded", "undo skipped", "after skipped")
		w.wantPlan(p, plan.PlanFailed)
	}},
	{"a retry of a plan that a person cancelled goes on with the items that go along", func(w *world) {
		then := along("then", "", "check")
		then.Needs = []string{"copy"}
		p := w.submit(each("copy", list(0, 1)), along("check", "", "copy"), then)
		n := w.node("n1")
		n.end()
		c := n.claim(2)
		w.no(w.s.CancelPlan(w.ctx, p.ID, false))
		n.end(ok(c[0]), ok(c[1]))
		w.wantPlan(p, plan.PlanCancelled)
		w.retry(p, false)
		w.want(p, "copy succeeded", "check held", "check[0] queued", "then held", "then[0] held", "then[1] held")
		w.equal("ran", n.run(failing()), "[check[0] check[1] then[0] then[1]]")
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"a head without items counts for each item of a task that goes along with another one too", func(w *world) {
		check := along("check", "", "copy")
		check.Needs = []string{"key"}
		p := w.submit(each("copy", list(0, 1)), task("key"), check, along("undo", plan.AnyFailed, "copy", "check"), along("then", "", "copy", "check"))
		n := w.node("n1")
		n.run(failing("copy[1]", "key"))
		w.want(p, "copy failed", "key failed", "check skipped", "undo succeeded", "undo[0] skipped", "undo[1] succeeded", "then skipped")
		w.equal("needs", w.named(p, "undo[1]").Needs, []plan.TaskID{w.named(p, "copy[1]").ID, w.named(p, "check").ID})
		w.wantPlan(p, plan.PlanFailed)
	}},
}
