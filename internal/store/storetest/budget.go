package storetest

import (
	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// budgetOf returns a foreach task over so many items of which some may fail.
func budgetOf(name string, items int, most string, needs ...string) plan.TaskSpec {
	t := each(name, plan.Foreach{List: ordinals(items)}, needs...)
	t.MaxFailures = most
	return t
}

// budgetCases are about items that may fail.
var budgetCases = []testCase{
	{"failures within max_failures are allowed: the task succeeds, and what is below the items decides", func(w *world) {
		p := w.submitSpec(&plan.Spec{Name: "nightly", OnFailure: plan.Stop, Tasks: []plan.TaskSpec{
			budgetOf("copy", 10, "25%"), along("check", "", "copy"), along("undo", plan.AnyFailed, "copy"), task("total", "copy", "check"),
		}})
		n := w.node("n1")
		n.run(failing("copy[3]", "copy[7]"))
		w.want(p, "copy succeeded", "copy[3] failed", "check succeeded", "check[3] skipped", "check[4] succeeded", "undo succeeded", "undo[3] succeeded", "undo[4] skipped", "total succeeded")
		w.equal("detail", w.named(p, "copy").Detail, "with 2 failures")
		w.equalJSON("output", w.named(p, "copy").Output, "[0,2,4,null,8,10,12,null,16,18]")
		w.wantPlan(p, plan.PlanSucceeded)
		w.equal("counts", w.plan(p.ID).Counts, plan.Counts{Succeeded: 8 + 8 + 2 + 1, Allowed: 2, Skipped: 2 + 8, Gathered: 3})
		item := w.named(p, "copy[3]")
		w.equal("allowed", item.Allowed(), true)
		w.refused(w.tryRetry(p.ID, w.askRetry(p, false)), "nothing to retry: nothing failed but what the plan allows, which runs again if it is named")
		w.retry(p, false, "copy")
		w.want(p, "copy held", "copy[3] queued", "copy[7] queued", "check[3] held", "undo[3] held")
		w.equal("ran", n.run(failing()), "[copy[3] copy[7] check[3] check[7]]")
		w.equal("detail", w.named(p, "copy").Detail, "")
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"beyond max_failures the task fails, and starts no more items", func(w *world) {
		p := w.submit(budgetOf("copy", 8, "1"), along("check", "", "copy"), task("total", "copy"))
		n := w.node("n1")
		n.end()
		c := n.claim(4)
		n.end(fail(c[0]))
		w.want(p, "copy held", "copy[5] queued")
		n.end(fail(c[1]))
		n.end()
		w.want(p, "copy held", "copy[2] running", "copy[3] running", "copy[4] skipped", "copy[5] skipped", "copy[6] skipped", "copy[7] skipped", "check[5] skipped")
		w.equal("to be stopped", w.named(p, "copy[2]").Cancel, false)
		n.end(ok(c[2]), ok(c[3]))
		n.run(failing())
		w.want(p, "copy failed", "check skipped", "check[2] succeeded", "total skipped")
		w.equal("detail", w.named(p, "copy").Detail, "2 of 8 items failed, and 1 may")
		w.wantPlan(p, plan.PlanFailed)
		w.equal("counts", w.plan(p.ID).Counts, plan.Counts{Succeeded: 4, Failed: 1, Allowed: 2, Skipped: 4 + 6 + 1, Gathered: 1})
		w.retry(p, false)
		w.equal("ran", len(n.run(failing("copy[0]"))), 6+5+1)
		w.want(p, "copy succeeded", "copy[0] failed", "copy[5] succeeded", "check succeeded", "total succeeded")
		w.equal("detail", w.named(p, "copy").Detail, "with 1 failure")
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"max_failures of 0 stops at the first failure, and closes a plan that stops", func(w *world) {
		p := w.submitSpec(&plan.Spec{Name: "nightly", OnFailure: plan.Stop, Tasks: []plan.TaskSpec{budgetOf("copy", 3, "0"), task("other"), task("after", "other")}})
		n := w.node("n1")
		n.end()
		for _, c := range n.claim(2) {
			if c.Name == "copy[0]" {
				n.end(fail(c))
			} else {
				n.end(giveBack(c))
			}
		}
		n.end()
		w.want(p, "copy failed", "copy[0] failed", "copy[1] skipped", "copy[2] skipped", "after skipped")
		w.equal("detail", w.named(p, "copy").Detail, "1 of 3 items failed")
		n.run(failing())
		w.wantPlan(p, plan.PlanFailed)
	}},
	{"an item that waits for its next attempt is stopped once too many others failed", func(w *world) {
		p := w.submit(budgetOf("copy", 3, "0"))
		n := w.node("n1")
		n.end()
		c := n.claim(3)
		n.end(later(c[0], delay))
		n.end(fail(c[1]))
		n.end()
		w.want(p, "copy held", "copy[0] terminated", "copy[1] failed", "copy[2] running")
		n.end(ok(c[2]))
		w.want(p, "copy failed")
		w.equal("detail", w.named(p, "copy").Detail, "2 of 3 items failed")
		w.wantPlan(p, plan.PlanFailed)
	}},
	{"so is an item that waits since the same turn", func(w *world) {
		p := w.submit(budgetOf("copy", 3, "0"))
		n := w.node("n1")
		n.end()
		c := n.claim(3)
		n.end(fail(c[1]), later(c[0], delay), giveBack(c[2]))
		n.end()
		w.want(p, "copy failed", "copy[0] terminated", "copy[1] failed", "copy[2] terminated")
		w.wantPlan(p, plan.PlanFailed)
	}},
	{"the failures of many items are counted within the budgets of turns", func(w *world) {
		const items = 700
		p := w.submit(budgetOf("copy", items, "10%"), task("after", "copy"))
		n := w.node("n1")
		ran := 0
		for range 2000 {
			did := n.turn(protocol.Turn{Slots: 20, Start: true, Budget: 300})
			var ends []protocol.Ending
			for _, c := range did.Claimed {
				if ran++; c.Index%2 == 0 {
					ends = append(ends, fail(c))
				} else {
					ends = append(ends, ok(c))
				}
			}
			n.turn(protocol.Turn{Ended: ends, Budget: 300})
			if w.plan(p.ID).State.Ended() {
				break
			}
		}
		w.wantPlan(p, plan.PlanFailed)
		c := w.plan(p.ID).Counts
		if c.Allowed <= items/10 || c.Allowed > items/4 || ran > items/2 {
			w.Errorf("%d items ran and %d failed of %d, of which %d may", ran, c.Allowed, items, items/10)
		}
		w.equal("the others", []any{c.Failed, c.Succeeded + c.Allowed + c.Skipped}, []any{1, items + 1})
	}},
	{"a retry of one item takes those that did not start because too many failed", func(w *world) {
		p := w.submit(budgetOf("copy", 4, "0"), along("check", "", "copy"), task("total", "check"))
		n := w.node("n1")
		n.end()
		first := n.claim(1)[0]
		n.end(fail(first))
		n.run(failing())
		w.want(p, "copy failed", "copy[1] skipped", "check skipped", "total skipped")
		w.equal("detail", w.named(p, "copy[1]").Detail, rules.ByBudget)
		w.retry(p, false, first.Name)
		w.equal("ran", len(n.run(failing())), 4+4+1)
		w.want(p, "copy succeeded", "check succeeded", "total succeeded")
		w.wantPlan(p, plan.PlanSucceeded)
	}},
}
