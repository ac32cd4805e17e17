package storetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// alone is a plan of one task that says overlap: skip.
func alone() *plan.Spec {
	return &plan.Spec{Name: "nightly", Overlap: plan.OverlapSkip, Tasks: []plan.TaskSpec{task("a")}}
}

// wantOverlap makes sure that the error is a plan.ErrOverlap.
func (w *world) wantOverlap(what string, err error) {
	w.Helper()
	if !errors.Is(err, plan.ErrOverlap) {
		w.Errorf("%s: %v, want an ErrOverlap", what, err)
	}
}

var overlapCases = []testCase{
	{"a plan with overlap: skip is not made while another run of its name has not ended", func(w *world) {
		p := plan.Plan{Name: "nightly", Overlap: plan.OverlapSkip, ID: plan.PlanID{ID: plan.NewID(time.Now())}}
		first := must(w.s.CreatePlan(w.ctx, p))(w)
		w.equal("overlap", []plan.Overlap{first.Overlap, w.plan(first.ID).Overlap}, []plan.Overlap{plan.OverlapSkip, plan.OverlapSkip})
		again := must(w.s.CreatePlan(w.ctx, p))(w)
		w.equal("the same plan again", again.ID, first.ID)
		next := plan.Plan{Name: "nightly", Overlap: plan.OverlapSkip}
		_, err := w.s.CreatePlan(w.ctx, next)
		w.wantOverlap("beside one that is submitted", err)
		w.no(w.s.Ready(w.ctx, first.ID)) // without tasks it ends
		second := must(w.s.CreatePlan(w.ctx, next))(w)
		w.equal("runs", []int{first.Run, second.Run}, []int{1, 2})
		w.no(w.s.CancelPlan(w.ctx, second.ID, false))
		w.node("n1").sweep()
		w.wantPlan(second, plan.PlanCancelled)
		must(w.s.CreatePlan(w.ctx, plan.Plan{Name: "weekly", Overlap: plan.OverlapSkip}))(w)
		third := must(w.s.CreatePlan(w.ctx, plan.Plan{Name: "nightly"}))(w)
		fourth := must(w.s.CreatePlan(w.ctx, plan.Plan{Name: "nightly", Overlap: plan.OverlapAllow}))(w)
		w.equal("runs", []int{third.Run, fourth.Run}, []int{3, 4})
		_, err = w.s.CreatePlan(w.ctx, next)
		w.wantOverlap("beside two that allow overlap", err)
		w.equal("plans", len(must(w.s.Plans(w.ctx, store.PlanQuery{Name: "nightly"}))(w)), 4)
	}},
	{"a submission that was left counts as a run until it is abandoned", func(w *world) {
		left := must(w.s.CreatePlan(w.ctx, plan.Plan{Name: "nightly", Overlap: plan.OverlapSkip}))(w)
		w.pass(30 * time.Minute)
		n := w.node("n1")
		n.sweep()
		_, err := w.s.CreatePlan(w.ctx, plan.Plan{Name: "nightly", Overlap: plan.OverlapSkip})
		w.wantOverlap("after half an hour", err)
		w.pass(time.Hour)
		w.node("n2").sweep()
		w.wantPlan(left, plan.PlanAbandoned)
		must(w.s.CreatePlan(w.ctx, plan.Plan{Name: "nightly", Overlap: plan.OverlapSkip}))(w)
	}},
	{"a retry that opens a plan with overlap: skip is refused like a new run", func(w *world) {
		first := w.submitSpec(alone())
		n := w.node("n1")
		n.run(failing("a"))
		w.wantPlan(first, plan.PlanFailed)
		w.retry(first, false) // nothing else has not ended
		n.run(failing("a"))
		second := w.submitSpec(alone())
		for _, check := range []bool{true, false} {
			ask := w.askRetry(first, false)
			ask.Check = check
			_, err := w.s.Retry(w.ctx, first.ID, ask)
			w.wantOverlap(fmt.Sprint("check: ", check), err)
		}
		w.wantPlan(first, plan.PlanFailed)
		w.want(first, "a failed")
		c := n.claim(1)[0]
		_, err := w.s.CreatePlan(w.ctx, plan.Plan{Name: "nightly", Overlap: plan.OverlapSkip})
		w.wantOverlap("beside a task that runs", err)
		n.end(ok(c))
		w.wantPlan(second, plan.PlanSucceeded)
		w.retry(first, false)
		_, err = w.s.CreatePlan(w.ctx, plan.Plan{Name: "nightly", Overlap: plan.OverlapSkip})
		w.wantOverlap("beside a retry", err)
		n.run(ok)
		w.wantPlan(first, plan.PlanSucceeded)
	}},
	{"of runs with overlap: skip that start at one instant one starts", func(w *world) {
		failed := w.submitSpec(alone())
		n := w.node("n1")
		n.run(failing("a"))
		const starters = 6
		for range 3 {
			ask := w.askRetry(failed, false)
			errs := make([]error, starters)
			started := make([]plan.PlanID, starters)
			var wg sync.WaitGroup
			for i := range starters {
				s := w.reopen(nil)
				wg.Go(func() {
					if i == 0 {
						started[i] = failed.ID
						_, errs[i] = s.Retry(w.ctx, failed.ID, ask)
						return
					}
					p, err := s.CreatePlan(w.ctx, plan.Plan{Name: "nightly", Overlap: plan.OverlapSkip, ID: plan.PlanID{ID: plan.NewID(time.Now())}})
					started[i], errs[i] = p.ID, err
				})
			}
			wg.Wait()
			var won []plan.PlanID
			for i, err := range errs {
				if err == nil {
					won = append(won, started[i])
				} else if !errors.Is(err, plan.ErrOverlap) && !errors.Is(err, plan.ErrConflict) {
					w.Errorf("starter %d: %v", i, err)
				}
			}
			open := slices.DeleteFunc(must(w.s.Plans(w.ctx, store.PlanQuery{Name: "nightly"}))(w), func(p plan.Plan) bool { return p.State.Ended() })
			if len(won) != 1 || len(open) != 1 || open[0].ID != won[0] {
				w.Fatalf("%d starters were told that they started, and %d runs have not ended: %v", len(won), len(open), errs)
			}
			if open[0].ID != failed.ID {
				w.no(w.s.CancelPlan(w.ctx, open[0].ID, false))
			}
			n.run(failing("a"))
			n.sweep()
		}
	}},
}
