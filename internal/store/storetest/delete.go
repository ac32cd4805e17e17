package storetest

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// expire deletes what is kept no longer, a little at a time, and returns how many plans that were.
func (w *world) expire() (plans int) {
	w.Helper()
	return w.expired().Plans
}

// expired is expire that also counts tasks of no plan.
func (w *world) expired() (all protocol.Expired) {
	w.Helper()
	for all.More = true; all.More; {
		before := len(w.all(store.TaskQuery{}))
		did := must(w.s.Expire(w.ctx, 15))(w)
		if gone := before - len(w.all(store.TaskQuery{})); gone > 15 {
			w.Fatalf("a call with a budget of 15 deleted %d tasks", gone)
		}
		all = protocol.Expired{Plans: all.Plans + did.Plans, Tasks: all.Tasks + did.Tasks, More: did.More}
	}
	return all
}

// prune deletes plans that ended longer ago than keep, and returns how many that were.
func (w *world) prune(keep time.Duration) (plans int) {
	w.Helper()
	for more := true; more; {
		n, m, err := w.s.Prune(w.ctx, keep, 100)
		w.no(err)
		plans, more = plans+n, m
	}
	return plans
}

var deleteCases = []testCase{
	{"a plan is deleted with its tasks and logs, and nothing else", func(w *world) {
		kept, p := w.ended(plan.Spec{Name: "kept"}, 3), w.ended(plan.Spec{Name: "gone"}, 3)
		first := w.named(p, "t0").ID
		w.equal("more, with the default budget", must(w.s.DeletePlan(w.ctx, p.ID, 0))(w), false)
		w.gone(p, first)
		entries, _, err := w.s.Log(w.ctx, w.named(kept, "t0").ID, 0, 10)
		w.no(err)
		w.equal("kept", []int{w.plan(kept.ID).Counts.Total(), len(entries)}, "[3 1]")
	}},
	{"a deletion goes on where it stopped, by itself or by prune", func(w *world) {
		for _, byPrune := range []bool{false, true} {
			p := w.ended(plan.Spec{Name: "gone", Keep: -1}, 30)
			first := w.named(p, "t0").ID
			w.equal("more", must(w.s.DeletePlan(w.ctx, p.ID, 10))(w), true)
			for more := true; more; {
				if byPrune {
					_, m, err := w.s.Prune(w.ctx, 0, 10)
					w.no(err)
					more = m
				} else {
					more = must(w.s.DeletePlan(w.ctx, p.ID, 10))(w)
				}
			}
			w.gone(p, first)
		}
	}},
	{"no run of a name comes again when its plans are deleted", func(w *world) {
		var runs []plan.Plan
		for range 3 {
			runs = append(runs, w.ended(plan.Spec{Name: "nightly"}, 1))
		}
		for _, p := range []plan.Plan{runs[2], runs[0]} {
			for more := true; more; {
				more = must(w.s.DeletePlan(w.ctx, p.ID, 100))(w)
			}
		}
		w.equal("after the latest was deleted", w.ended(plan.Spec{Name: "nightly"}, 1).Run, 4)
		w.pass(2 * time.Hour)
		w.prune(time.Hour)
		w.equal("plans left", len(must(w.s.Plans(w.ctx, store.PlanQuery{Name: "nightly"}))(w)), 0)
		w.equal("after all were", w.submit(task("a")).Run, 5)
		w.equal("of another name", w.submitSpec(&plan.Spec{Name: "weekly", Tasks: []plan.TaskSpec{task("a")}}).Run, 1)
	}},
	{"a plan that has not ended is not deleted", func(w *world) {
		p := w.submit(task("a"))
		unready := w.submitUnready(&plan.Spec{Name: "unready", Tasks: []plan.TaskSpec{task("a")}})
		for _, id := range []plan.PlanID{p.ID, unready.ID} {
			_, err := w.s.DeletePlan(w.ctx, id, 100)
			w.is(err, plan.ErrPlanActive)
		}
		w.want(p, "a queued")
	}},
	{"prune deletes plans that ended longer ago than they are kept", func(w *world) {
		old := w.ended(plan.Spec{Name: "old"}, 2)
		short := w.ended(plan.Spec{Name: "short", Keep: time.Hour}, 2)
		long := w.ended(plan.Spec{Name: "long", Keep: 1000 * time.Hour}, 2)
		forever := w.ended(plan.Spec{Name: "forever", Keep: -1}, 2)
		running := w.submit(task("a"))
		w.equal("at once", w.prune(24*time.Hour), 0)
		w.pass(2 * time.Hour)
		w.equal("after two hours", w.prune(24*time.Hour), 1)
		w.pass(30 * time.Hour)
		w.equal("without a limit", w.prune(0), 0)
		w.equal("after 32 hours", w.prune(24*time.Hour), 1)
		w.equal("again", w.prune(24*time.Hour), 0)
		for _, p := range []plan.Plan{old, short} {
			_, err := w.s.Plan(w.ctx, p.ID)
			w.is(err, plan.ErrNotFound)
		}
		w.equal("kept", []int{w.plan(long.ID).Counts.Total(), w.plan(forever.ID).Counts.Total(), w.plan(running.ID).Counts.Total()}, "[2 2 1]")
	}},
	{"what is kept no longer goes by itself", func(w *world) {
		old := w.ended(plan.Spec{Name: "old"}, 2)
		short := w.ended(plan.Spec{Name: "short", Keep: time.Hour}, 30)
		forever := w.ended(plan.Spec{Name: "forever", Keep: -1}, 2)
		half := w.ended(plan.Spec{Name: "half", Keep: -1}, 30)
		running := w.submitSpec(&plan.Spec{Name: "running", Keep: time.Hour, Tasks: []plan.TaskSpec{task("a")}})
		w.equal("at once", w.expire(), 0)
		w.equal("a deletion that stops half-way", must(w.s.DeletePlan(w.ctx, half.ID, 10))(w), true)
		w.equal("and is ended", w.expire(), 1)
		w.pass(2 * time.Hour)
		w.equal("after two hours", w.expire(), 1)
		want := 0
		if w.d.Keep > 0 {
			w.pass(w.d.Keep - 3*time.Hour)
			w.equal("before the default is over", w.expire(), 0)
			want = 1
		}
		w.pass(1000 * time.Hour)
		w.equal("after it is, if it is ever", w.expire(), want)
		_, err := w.s.Plan(w.ctx, old.ID)
		w.equal("whether the old plan is gone", errors.Is(err, plan.ErrNotFound), w.d.Keep > 0)
		for _, p := range []plan.Plan{short, half} {
			_, err := w.s.Plan(w.ctx, p.ID)
			w.is(err, plan.ErrNotFound)
		}
		w.equal("kept", []int{w.plan(forever.ID).Counts.Total(), w.plan(running.ID).Counts.Total()}, "[2 1]")
	}},
	{"a plan that is retried is kept after its new end as after the first one", func(w *world) {
		p := w.submitSpec(&plan.Spec{Name: "again", Keep: time.Hour, Tasks: []plan.TaskSpec{task("a")}})
		n := w.node("n1")
		n.run(failing("a"))
		w.pass(30 * time.Minute)
		w.retry(p, false, "a")
		w.pass(2 * time.Hour)
		w.equal("while it runs", w.expire(), 0)
		n.run(ok)
		w.wantPlan(p, plan.PlanSucceeded)
		w.pass(30 * time.Minute)
		w.equal("half an hour after", w.expire(), 0)
		w.pass(40 * time.Minute)
		w.equal("more than an hour after", w.expire(), 1)
	}},
	{"any number of nodes delete what is kept no longer", func(w *world) {
		plans := 6
		for range plans {
			w.ended(plan.Spec{Name: "old", Keep: time.Minute}, 12)
		}
		w.pass(time.Hour)
		var wg sync.WaitGroup
		var gone atomic.Int64
		for range 3 {
			s := w.reopen(nil)
			wg.Go(func() {
				for more := true; more; {
					did, err := s.Expire(w.ctx, 5)
					if err != nil {
						w.Errorf("expire beside others: %v", err)
						return
					}
					gone.Add(int64(did.Plans))
					more = did.More
				}
			})
		}
		wg.Wait()
		w.expire() // each may have left the last one to another
		w.equal("tasks left", len(w.all(store.TaskQuery{})), 0)
		if gone.Load() == 0 {
			w.Error("nobody says that plans went")
		}
	}},
	{"prune keeps to its budget", func(w *world) {
		for range 4 {
			w.ended(plan.Spec{Name: "old"}, 20)
		}
		w.pass(48 * time.Hour)
		left := func() (n int) { return len(w.all(store.TaskQuery{})) }
		plans := 0
		for more := true; more; {
			before := left()
			n, m, err := w.s.Prune(w.ctx, time.Hour, 15)
			w.no(err)
			plans, more = plans+n, m
			if gone := before - left(); gone > 15 || gone == 0 && more && n == 0 {
				w.Fatalf("a prune with a budget of 15 deleted %d tasks, more: %v", gone, more)
			}
		}
		w.equal("plans", []int{plans, left()}, "[4 0]")
	}},
	{"a plan whose deletion has begun cannot be retried", func(w *world) {
		for _, size := range []int{0, 30} {
			p, tasks := w.compile(&plan.Spec{Name: "gone", Tasks: numbered(30)})
			p.Size = size
			p = must(w.s.CreatePlan(w.ctx, p))(w)
			w.add(p.ID, tasks...)
			w.no(w.s.Ready(w.ctx, p.ID))
			n := w.node("n1")
			n.run(ok)
			w.wantPlan(p, plan.PlanSucceeded)
			w.equal("more", must(w.s.DeletePlan(w.ctx, p.ID, 10))(w), true)
			left := w.all(store.TaskQuery{Plan: p.ID})[0]
			w.is(w.tryRetry(p.ID, rules.Ask{Tasks: []plan.TaskID{left.ID}}), plan.ErrNotFound)
			w.equal("what is left of it", w.task(left.ID).Status, plan.Succeeded)
			w.equal("ran", len(n.run(ok)), 0)
			for more := true; more; {
				more = must(w.s.DeletePlan(w.ctx, p.ID, 10))(w)
			}
			w.gone(p, left.ID)
		}
	}},
}
