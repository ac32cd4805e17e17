package storetest

import "github.com/seed-1177d267/sluice/internal/invariants"

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
