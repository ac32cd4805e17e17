package storetest

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/plan"
)

// halfwayCases are about the actions of others between two writes of a retry, or between the write
// at which its process died and the next sweep.
var halfwayCases = []testCase{
	{"what happens while a retry is made is lost neither to it nor by it", func(w *world) { w.halfway(halfway{dies: never}) }},
	{"what happens after a retry died half-way is not lost, whatever write it died before", func(w *world) { w.halfway(halfway{}) }},
	{"what happens while a retry is made that dies soon after is not lost", func(w *world) { w.halfway(halfway{dies: 1}) }},
	{"a task with many parents is not held for ever by a retry that died half-way", func(w *world) { w.halfway(halfway{many: 250}) }},
	{"a plan that had ended ends again after a retry that died half-way", func(w *world) { w.halfway(halfway{ended: true}) }},
}

const never = -1

// A halfway is a retry of a plan in which p has failed and q runs. Before its write number at something happens: a late task that needs p
// is added, and q ends.
type halfway struct {
	dies  int  // how many writes later the process dies
	many  int  // further parents of a task that waits for p and q
	ended bool // q, and the plan, have ended before

	w     *world
	at    int
	plan  plan.Plan
	n     *node
	p     plan.Task
	q     protocol.ClaimedTask
	added []plan.Task // the late one

	writes int
	met    bool  // it had so many writes
	err    error // of the retry
}

// halfway makes such a retry for each write that a retry has, or for every so many of them. Then one
// more process completes all of them.
func (w *world) halfway(like halfway) {
	var retries []*halfway
	for at := 1; len(retries) == 0 || retries[len(retries)-1].met; at += max(1, w.d.Halfway) {
		h := like
		h.w, h.at = w, at
		h.submit()
		h.retry()
		retries = append(retries, &h)
	}
	w.Logf("others acted at %d writes of a retry", len(retries)-1)
	w.check()
	w.pass(20 * time.Minute)
	n := w.node("after")
	for range 3 {
		n.sweep()
		w.check()
		n.run(ok)
	}
	for _, h := range retries {
		h.verify()
	}
	w.checkSettled()
}

// submit makes the plan. The further parents of wide are skipped when z has succeeded.
func (h *halfway) submit() {
	w := h.w
	spec := &plan.Spec{Name: "nightly", Tasks: []plan.TaskSpec{task("p"), task("q"), task("z")}}
	wide := plan.TaskSpec{Name: "wide", Needs: []string{"p", "q"}, When: plan.AllDone}
	for i := range h.many {
		wide.Needs = append(wide.Needs, spec.Add(plan.TaskSpec{Name: fmt.Sprint("s", i), Needs: []string{"z"}, When: plan.AnyFailed}).Name)
	}
	spec.Add(wide)
	spec.Add(plan.TaskSpec{Name: "both", Needs: []string{"p", "q"}, When: plan.AllDone})
	h.plan = w.submitSpec(spec)
	h.n = w.node(plan.NodeName(fmt.Sprint("n", h.at)))
	claimed := map[string]protocol.ClaimedTask{}
	for _, c := range h.n.turn(protocol.Turn{Slots: 4, Start: true, Plan: h.plan.ID}).Claimed {
		claimed[c.Name] = c
	}
	h.q = claimed["q"]
	h.n.end(fail(claimed["p"]), ok(claimed["z"]))
	w.want(h.plan, "p failed", "q running", "z succeeded", "both held", "wide held")
	if h.p = w.named(h.plan, "p"); h.ended {
		h.n.end(ok(h.q))
		h.n.run(ok)
		w.wantPlan(h.plan, plan.PlanFailed)
	}
}

// retry retries p on a handle of its own.
func (h *halfway) retry() {
	w := h.w
	ask := w.askRetry(h.plan, false, "p")
	var meanwhile sync.WaitGroup
	s := w.d.Reopen(w.T, w.s, Options{Now: w.clock.Now, Hook: func(written bool) error {
		if written {
			return nil
		}
		if h.writes++; h.writes == h.at {
			h.met = true
			if h.dies != 0 {
				done := make(chan struct{})
				meanwhile.Go(func() { h.happen(); close(done) })
				select {
				case <-done:
				case <-time.After(w.patience()):
				}
			}
		}
		if h.dies != never && h.writes >= h.at+h.dies {
			return errKilled
		}
		return nil
	}})
	_, h.err = s.Retry(w.ctx, h.plan.ID, ask)
	meanwhile.Wait()
	w.no(s.Close())
	if !h.met || h.dies == 0 {
		h.happen()
	}
	if h.err != nil && !errors.Is(h.err, errKilled) && !errors.Is(h.err, plan.ErrConflict) && !errors.Is(h.err, plan.ErrPlanActive) {
		w.Errorf("the retry before whose write %d something happened: %v", h.at, h.err)
	}
}

// patience is how long a write waits for what happens meanwhile. A store of one writer has a lock, and lets it happen behind the write.
func (w *world) patience() time.Duration {
	if w.d.OneWriter {
		return 10 * time.Millisecond
	}
	return time.Second
}

func (h *halfway) happen() {
	w := h.w
	late := plan.Task{
		ID: plan.TaskID{ID: plan.NewID(time.Now())}, Name: "late", Queue: h.p.Queue, Needs: []plan.TaskID{h.p.ID},
		Definition: plan.Definition{When: plan.AllDone},
	}
	switch err := w.s.AddTasks(w.ctx, h.plan.ID, []plan.Task{late}); {
	case err == nil:
		h.added = append(h.added, late)
	case !h.ended || !errors.Is(err, plan.ErrPlanEnded):
		w.Errorf("add a task before write %d: %v", h.at, err)
	}
	if h.ended {
		return
	}
	if did, err := h.n.try(protocol.Turn{Ended: []protocol.Ending{ok(h.q)}}); err != nil || len(did.Lost) > 0 {
		w.Errorf("end q before write %d: lost %v, %v", h.at, did.Lost, err)
	}
}

// verify looks whether the plan has ended, as one that was retried or as one that was not.
func (h *halfway) verify() {
	w := h.w
	w.Helper()
	p := w.named(h.plan, "p")
	want := plan.PlanFailed
	if p.Status == plan.Succeeded {
		want = plan.PlanSucceeded
	}
	if got := w.plan(h.plan.ID); got.State != want || got.Ended.IsZero() || !got.Counts.Settled() {
		w.Errorf("something happened before write %d, the retry said %v, and p %s: the plan is %v with %+v, want %v",
			h.at, h.err, p.State(), got.State, got.Counts, want)
	}
	if h.err == nil != (want == plan.PlanSucceeded) && !errors.Is(h.err, errKilled) {
		w.Errorf("something happened before write %d, the retry said %v, and p %s", h.at, h.err, p.State())
	}
	w.want(h.plan, "q succeeded", "both succeeded", "wide succeeded")
	for _, t := range h.added {
		if got := w.task(t.ID); got.Status != plan.Succeeded {
			w.Errorf("something happened before write %d: task %q is %s, want succeeded", h.at, t.Name, got.State())
		}
	}
}
