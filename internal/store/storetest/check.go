package storetest

import (
	"github.com/seed-1177d267/sluice/internal/invariants"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// check reads everything that the store holds and reports what contradicts the invariants. It runs at the end of every case, and
// wherever something died.
func (w *world) check() {
	w.Helper()
	w.checked(false)
}

// checkSettled is check where nothing is left to do but what nodes, delays and people have to: nobody is held without a reason.
func (w *world) checkSettled() {
	w.Helper()
	w.checked(true)
}

// checkEnded is checkSettled where everything has ended, and what succeeded took effect. It returns the plans.
func (w *world) checkEnded(effects map[plan.TaskID]int) []plan.Plan {
	w.Helper()
	w.checkSettled()
	for _, t := range w.all(store.TaskQuery{}) {
		switch {
		case !t.Status.Finished():
			w.Errorf("task %q is %s for ever", t.Name, t.State())
		case t.Status == plan.Succeeded && t.Foreach == nil && effects[t.ID] == 0:
			w.Errorf("task %q succeeded, and nobody ran it", t.Name)
		}
	}
	plans := must(w.s.Plans(w.ctx, store.PlanQuery{Limit: 1000}))(w)
	for _, p := range plans {
		if !p.State.Ended() {
			w.Errorf("plan %s is %v for ever: %+v", p.Title(), p.State, p.Counts)
		}
	}
	return plans
}

func (w *world) checked(settled bool) {
	w.Helper()
	for _, fault := range must(invariants.Check(w.ctx, w.s, settled))(w) {
		w.Errorf("%s", fault.Text)
	}
	queues := must(w.s.Queues(w.ctx))(w)
	w.no(w.s.CountQueues(w.ctx, queues))
	for _, q := range queues { // the suite lowers no limit below what is active
		if !q.Unlimited && q.Active > q.Threads {
			w.Errorf("invariant 6: queue %q has %d tasks claimed and running, its threads are %d", q.Name, q.Active, q.Threads)
		}
	}
}
