package storetest

import (
	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/plan"
)

// skipCases are about attempts that end as skipped.
var skipCases = []testCase{
	{"a task whose attempt ends as skipped is skipped, and what needs it decides as below any skipped task", func(w *world) {
		p := w.submit(task("sync"), task("after", "sync"),
			plan.TaskSpec{Name: "either", When: plan.AllDone, Needs: []string{"sync"}}, plan.TaskSpec{Name: "quiet", When: plan.AllSkipped, Needs: []string{"sync"}})
		n := w.node("n1")
		c := n.claim(1)[0]
		e := skip(c)
		e.Exit, e.Log = &plan.Exit{Code: 75}, []plan.LogEntry{{Attempt: 1, Stream: plan.Stdout, Text: "up to date\n"}}
		n.end(e)
		w.want(p, "sync skipped", "after skipped", "either queued", "quiet queued")
		got := w.named(p, "sync")
		w.equal("detail", got.Detail, "nothing to do")
		w.equal("exit", *got.Exit, plan.Exit{Code: 75})
		w.equal("attempt", got.Attempt, 1)
		w.equal("node", got.Node, "")
		w.equal("has ended", got.Ended.IsZero() || got.Started.IsZero(), false)
		n.run(failing())
		w.wantPlan(p, plan.PlanSucceeded)
		w.equal("counts", w.plan(p.ID).Counts, plan.Counts{Succeeded: 2, Skipped: 2})
		w.refused(w.tryRetry(p.ID, w.askRetry(p, false)), "nothing to retry: nothing failed; what was skipped runs again if it is named")
		w.retry(p, false, "sync")
		w.equal("ran", n.run(failing()), "[sync after either]")
		w.want(p, "sync succeeded", "quiet skipped")
	}},
	{"a plain retry leaves what skipped itself, unless something above it runs again", func(w *world) {
		p := w.submit(task("sync"), task("bad"), task("below", "bad"))
		n := w.node("n1")
		for _, c := range n.claim(2) {
			if c.Name == "sync" {
				n.end(skip(c))
			} else {
				n.end(fail(c))
			}
		}
		w.wantPlan(p, plan.PlanFailed)
		w.retry(p, false)
		w.want(p, "sync skipped", "bad queued", "below held")
		n.end(ok(n.claim(1)[0]))
		n.end(skip(n.claim(1)[0]))
		w.want(p, "below skipped")
		w.wantPlan(p, plan.PlanSucceeded)
		w.retry(p, true, "bad")
		w.want(p, "below held")
	}},
	{"items that skipped themselves are no failure, and if all did the foreach task is skipped", func(w *world) {
		p := w.submit(each("copy", plan.Foreach{List: ordinals(3)}), task("total", "copy"), each("none", plan.Foreach{List: ordinals(2)}), task("below", "none"))
		n := w.node("n1")
		n.end()
		var ended []protocol.Ending
		for _, c := range n.claim(5) {
			if c.Name == "copy[0]" || c.Name == "copy[2]" {
				ended = append(ended, succeed(c, "7"))
			} else {
				ended = append(ended, skip(c))
			}
		}
		n.end(ended...)
		n.end()
		w.want(p, "copy succeeded", "copy[1] skipped", "total queued", "none skipped", "below skipped")
		w.equalJSON("output", w.named(p, "copy").Output, "[7,null,7]")
		w.equal("detail", w.named(p, "none").Detail, "all of its items were skipped")
		n.run(failing())
		w.wantPlan(p, plan.PlanSucceeded)
		w.equal("counts", w.plan(p.ID).Counts, plan.Counts{Succeeded: 3, Skipped: 1 + 2 + 1, Gathered: 2})
	}},
	{"an attempt of a cancelled task may end as skipped", func(w *world) {
		p := w.submit(task("sync"))
		n := w.node("n1")
		c := n.claim(1)[0]
		w.no(w.s.CancelTask(w.ctx, c.Task))
		n.end(skip(c))
		w.want(p, "sync skipped")
	}},
}
