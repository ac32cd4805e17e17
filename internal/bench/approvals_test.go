package bench

import (
	"fmt"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/approve"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/submit"
	"github.com/seed-1177d267/sluice/plan"
)

// asking is a plan with n questions, below each of which a task waits.
func asking(n int) *plan.Spec {
	s := plan.New("asking")
	for i := range n {
		ask := fmt.Sprint("ask", i)
		s.Add(plan.TaskSpec{Name: ask, Approve: &plan.Approval{Question: "so?"}})
		s.Add(plan.TaskSpec{Name: fmt.Sprint("go", i), Plugin: "demo", Needs: []string{ask}})
	}
	return s
}

// approvals compares the time from an approval to the start of the task that waits for it, on a node in another
// process, with the time from a submission to the start of its task.
func approvals(m *measurement) {
	n := size(200, 20)
	m.repeat(func() {
		db := m.open()
		defer db.close()
		p := must(submit.Submit(m.Context(), db, asking(n), false))
		node := m.start("", sluice, "worker", "--allow", "demo", "--threads", "4", "--store", db.uri)
		defer node.stop()
		var asked []plan.Task
		for len(asked) < n {
			time.Sleep(20 * time.Millisecond)
			asked = must(approve.Waiting(m.Context(), db, p.ID))
		}
		started := func(at time.Time, of store.TaskQuery) time.Duration {
			for of.Limit = 1; ; time.Sleep(time.Millisecond) {
				if found := must(db.Tasks(m.Context(), of)); found[0].Status.Finished() {
					return found[0].Started.Sub(at)
				}
			}
		}
		var approved, submitted []time.Duration
		one := plan.New("one")
		one.Add(plan.TaskSpec{Name: "go", Plugin: "demo"})
		for i := range asked {
			t := &asked[i]
			at := time.Now()
			check(approve.Answer(m.Context(), db, t, rules.Answer{Approve: true, Asked: t.Started}))
			approved = append(approved, started(at, store.TaskQuery{Plan: p.ID, Name: "go" + t.Name[len("ask"):]}))
			time.Sleep(time.Duration(i%10) * time.Millisecond)
			at = time.Now()
			submitted = append(submitted, started(at, store.TaskQuery{Plan: must(submit.Submit(m.Context(), db, one, false)).ID}))
			time.Sleep(time.Duration(i%10) * time.Millisecond)
		}
		m.pair("start-p50", "ms", milliseconds(median(approved)), "submissions", milliseconds(median(submitted)))
		m.pair("start-p99", "ms", milliseconds(quantile(approved, 0.99)), "submissions", milliseconds(quantile(submitted, 0.99)))
		m.note("%d approvals and as many submissions of one task, in turn", n)
	})
}

// pending compares turns, polls and sweeps beside 1,000 open questions with those beside none.
func pending(m *measurement) {
	n, turns := 1000, size(300, 50)
	full, empty := m.asked(), m.asked()
	defer full.close()
	defer empty.close()
	must(submit.Submit(m.Context(), full, asking(n), false))
	must(submit.Submit(m.Context(), empty, asking(1), false)) // with the same queues
	for _, a := range []*asked{full, empty} {
		a.answerNone()
	}
	m.fullAndEmpty(full, empty, turns, "beside one question", fmt.Sprintf("%d open questions", n))
}

// answerNone has all questions asked.
func (a *asked) answerNone() {
	var ended []protocol.Ending
	for {
		did := must(a.Turn(a.ctx, protocol.Turn{Instance: a.me, Ended: ended, Slots: 100, Start: true, Plugins: []string{plan.ApprovalPlugin}}))
		if ended = nil; len(did.Claimed) == 0 && !did.More {
			return
		}
		for i := range did.Claimed {
			ended = append(ended, rules.AskApproval(&did.Claimed[i]))
		}
	}
}
