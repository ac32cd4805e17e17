package storetest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// approval is a task that waits for a person, at most so long.
func approval(name string, timeout time.Duration, needs ...string) plan.TaskSpec {
	return plan.TaskSpec{Name: name, Needs: needs, Approve: &plan.Approval{Question: "Switch?"}, Timeout: timeout}
}

// asks has the node ask the questions of what it can claim.
func (n *node) asks() {
	n.w.Helper()
	for _, c := range n.claim(8) {
		n.end(rules.AskApproval(&c))
	}
}

// answer is one to the question as the task is now. A server knows itself who answers, and when.
func (w *world) answer(p plan.Plan, name string, yes bool) rules.Answer {
	w.Helper()
	return rules.Answer{Approve: yes, Note: "ok", At: time.Date(2026, 11, 29, 8, 0, 0, 0, time.UTC), Asked: w.named(p, name).Started}
}

// approveCases are about tasks that wait for a person.
var approveCases = []testCase{
	{"an answer ends the task that waits for it, and what needs it decides", func(w *world) {
		p := w.submit(task("check"), approval("ask", 0, "check"), task("switch", "ask"), plan.TaskSpec{Name: "undo", When: plan.AnyFailed, Needs: []string{"ask"}})
		n := w.node("n1")
		n.end(ok(n.one()))
		n.asks()
		w.want(p, "ask held", "switch held")
		got := w.named(p, "ask")
		w.equal("awaits", got.AwaitsAnswer(), true)
		w.equal("detail", got.Detail, "Switch?")
		w.equal("ran", got.Ran, false)
		w.equal("claimed", len(n.claim(8)), 0)
		w.no(w.s.AnswerTask(w.ctx, got.ID, w.answer(p, "ask", true)))
		w.want(p, "ask succeeded", "switch queued", "undo skipped")
		got = w.named(p, "ask")
		w.equal("the note in its output", strings.Contains(string(got.Output), `"note":"ok"`) || strings.Contains(string(got.Output), `"note": "ok"`), true)
		w.equal("detail", got.Detail, "approved: ok")
		w.refused(w.s.AnswerTask(w.ctx, got.ID, w.answer(p, "ask", false)), " already: ")
		n.run(failing())
		w.wantPlan(p, plan.PlanSucceeded)
		w.equal("counts", w.plan(p.ID).Counts, plan.Counts{Succeeded: 3, Skipped: 1})
	}},
	{"a rejection fails the task, and a retry asks again", func(w *world) {
		p := w.submit(approval("ask", 0), task("switch", "ask"), plan.TaskSpec{Name: "undo", When: plan.AnyFailed, Needs: []string{"ask"}})
		n := w.node("n1")
		n.asks()
		old := w.answer(p, "ask", true)
		w.no(w.s.AnswerTask(w.ctx, w.named(p, "ask").ID, w.answer(p, "ask", false)))
		w.want(p, "ask failed", "switch skipped", "undo queued")
		w.equal("reason", w.named(p, "ask").Reason, plan.ReasonRejected)
		w.equal("detail", w.named(p, "ask").Detail, "rejected: ok")
		n.run(failing())
		w.wantPlan(p, plan.PlanFailed)
		w.pass(time.Second)
		w.retry(p, false)
		w.refused(w.s.AnswerTask(w.ctx, w.named(p, "ask").ID, old), `task "ask" does not wait for an approval: it is queued`)
		n.asks()
		w.refused(w.s.AnswerTask(w.ctx, w.named(p, "ask").ID, old), `task "ask" was asked again since: look at it, and answer again`)
		w.no(w.s.AnswerTask(w.ctx, w.named(p, "ask").ID, w.answer(p, "ask", true)))
		w.want(p, "switch queued")
	}},
	{"a question that nobody answers in time fails", func(w *world) {
		p := w.submit(approval("ask", time.Hour), task("switch", "ask"))
		n := w.node("n1")
		n.asks()
		w.pass(59 * time.Minute)
		n.sweep()
		w.equal("claimed", len(n.claim(8)), 0)
		w.pass(2 * time.Minute)
		n.sweep()
		n.asks()
		w.want(p, "ask failed", "switch skipped")
		w.equal("reason", w.named(p, "ask").Reason, plan.ReasonTimeout)
		w.equal("detail", w.named(p, "ask").Detail, "nobody answered within 1h0m0s")
		w.wantPlan(p, plan.PlanFailed)
	}},
	{"a question that waits is cancelled as a task that did not run", func(w *world) {
		p := w.submit(approval("ask", 0), approval("other", 0), task("switch", "ask"))
		n := w.node("n1")
		n.asks()
		w.no(w.s.CancelTask(w.ctx, w.named(p, "other").ID))
		w.want(p, "other cancelled")
		w.no(w.s.CancelPlan(w.ctx, p.ID, false))
		w.want(p, "ask cancelled", "switch cancelled")
		w.refused(w.s.AnswerTask(w.ctx, w.named(p, "ask").ID, w.answer(p, "ask", true)), `task "ask" is cancelled already: there is nothing to answer`)
		w.wantPlan(p, plan.PlanCancelled)
	}},
	{"of two answers and a cancellation at one instant one wins", func(w *world) {
		n := w.node("n1")
		for i := range 10 {
			p := w.submit(approval("ask", 0))
			n.asks()
			id, yes, no := w.named(p, "ask").ID, w.answer(p, "ask", true), w.answer(p, "ask", false)
			var errs [3]error
			var wg sync.WaitGroup
			wg.Go(func() { errs[0] = w.s.AnswerTask(w.ctx, id, yes) })
			wg.Go(func() { errs[1] = w.s.AnswerTask(w.ctx, id, no) })
			wg.Go(func() { errs[2] = w.s.CancelTask(w.ctx, id) })
			wg.Wait()
			won := 0
			for _, err := range errs {
				if err == nil {
					won++
				}
			}
			want := map[string]error{"succeeded": errs[0], "failed": errs[1], "cancelled": errs[2]}
			got := w.named(p, "ask")
			if err, known := want[got.State()]; won != 1 || !known || err != nil {
				w.Errorf("round %d: the task is %s, and the calls returned %v", i, got.State(), errs)
			}
		}
	}},
	{"of two answers, a cancellation and a time-out at one instant one wins", func(w *world) {
		n := w.node("n1")
		for i := range 5 {
			p := w.submit(approval("ask", time.Hour))
			n.asks()
			id, yes, no := w.named(p, "ask").ID, w.answer(p, "ask", true), w.answer(p, "ask", false)
			w.pass(61 * time.Minute)
			n.sweep()
			var errs [4]error
			var wg sync.WaitGroup
			wg.Go(func() { errs[0] = w.s.AnswerTask(w.ctx, id, yes) })
			wg.Go(func() { errs[1] = w.s.AnswerTask(w.ctx, id, no) })
			wg.Go(func() { errs[2] = w.s.CancelTask(w.ctx, id) })
			wg.Go(func() {
				var did protocol.Turned
				if did, errs[3] = n.try(protocol.Turn{Slots: 8}); errs[3] != nil {
					return
				}
				var late []protocol.Ending
				for _, c := range did.Claimed {
					late = append(late, rules.AskApproval(&c))
				}
				_, errs[3] = n.try(protocol.Turn{Ended: late})
			})
			wg.Wait()
			got, answers := w.named(p, "ask"), 0
			for _, err := range errs[:2] {
				if err == nil {
					answers++
				}
			}
			ends := map[string]bool{
				"succeeded":  errs[0] == nil && answers == 1 && errs[2] != nil,
				"failed":     errs[1] == nil && answers == 1 && errs[2] != nil || got.Reason == plan.ReasonTimeout && answers == 0, // a cancellation is a mark on what runs
				"cancelled":  errs[2] == nil && answers == 0,
				"terminated": errs[2] == nil && answers == 0,
			}
			if errs[3] != nil || !ends[got.State()] {
				w.Errorf("round %d: the task is %s (%s), and the calls returned %v", i, got.State(), got.Reason, errs)
			}
		}
	}},
	{"a node that dies as it asks loses nothing", func(w *world) {
		p := w.submit(approval("ask", time.Hour))
		n := w.node("n1")
		c := n.one()
		w.equal("attempt", c.Attempt, 1)
		other := w.node("n2")
		must(w.s.Rescue(w.ctx, n.id, -1))(w)
		again := other.one()
		w.equal("lost", fmt.Sprint(again.Attempt, again.Rescues), "2 1")
		other.end(rules.AskApproval(&again))
		w.want(p, "ask held")
		_, err := n.try(protocol.Turn{Ended: []protocol.Ending{rules.AskApproval(&c)}})
		w.equal("late", errors.Is(err, plan.ErrInstanceGone), true)
		asked := w.named(p, "ask")
		w.equal("held", asked.AwaitsAnswer(), true)
	}},
}
