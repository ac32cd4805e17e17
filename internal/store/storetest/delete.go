package storetest

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
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

// kept wants a plan to stay, whoever is to delete it, since a task of no plan needs some of it.
func (w *world) kept(p plan.Plan, by plan.Task) {
	w.Helper()
	what := fmt.Sprintf("what a task that is %v needs: ", w.task(by.ID).Status)
	_, err := w.s.DeletePlan(w.ctx, p.ID, 100)
	w.is(err, plan.ErrPlanActive)
	if err != nil && (!strings.Contains(err.Error(), p.Title()) || !strings.Contains(err.Error(), by.ID.String())) {
		w.Errorf("%sthe error is %q, which does not name %s and %s", what, err, p.Title(), by.ID)
	}
	w.equal(what+"pruned", w.prune(time.Minute), 0)
	w.equal(what+"expired", w.expire(), 0)
	w.equal(what+"tasks left", w.plan(p.ID).Counts.Total(), p.Counts.Total())
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
	{"a plan stays until each task of no plan that needs some of it has finished", func(w *world) {
		q, n := w.queue("exec", 0), w.node("n1")
		for _, c := range []struct {
			name   string
			tasks  int
			output string // of each of the plan's tasks
			delete func(p plan.Plan)
		}{
			{"inputs that are copied", 2, `"of t"`, func(p plan.Plan) { w.equal("more", must(w.s.DeletePlan(w.ctx, p.ID, 100))(w), false) }},
			{"inputs that are read by reference", 2, `"` + strings.Repeat("x", plan.MaxCopiedOne) + `"`, func(plan.Plan) {
				w.equal("expired", w.expire(), 1)
			}},
			{"many inputs", 300, "", func(plan.Plan) { w.equal("pruned", w.prune(time.Minute), 1) }},
		} {
			spec := plan.Spec{Name: "needed", Keep: time.Minute}
			for i := range c.tasks {
				spec.Add(task(fmt.Sprint("t", i)))
			}
			p := w.submitSpec(&spec)
			n.run(func(t protocol.ClaimedTask) protocol.Ending { return succeed(t, c.output) })
			p = w.plan(p.ID)
			var parents []plan.TaskID
			for _, t := range w.all(store.TaskQuery{Plan: p.ID}) {
				parents = append(parents, t.ID)
			}
			slow := w.newTask(q, "slow")
			quick, x := w.newTask(q, "quick", parents[0]), w.newTask(q, "x", append(parents, slow.ID)...)
			w.add(plan.PlanID{}, slow, quick, x)
			taken := n.take("slow", "quick")
			n.end(ok(taken[1]))
			w.pass(time.Hour)

			stays := func(status plan.Status) {
				w.Helper()
				w.equal(c.name+": status", w.task(x.ID).Status, status)
				w.kept(p, x)
			}
			stays(plan.Held)
			n.end(ok(taken[0]))
			stays(plan.Queued)
			claim := n.turn(protocol.Turn{Slots: 1}).Claimed[0]
			stays(plan.Claimed)
			w.equal("lost", len(must(n.s.Start(w.ctx, []protocol.Claim{claim.Claim}))(w)), 0)
			stays(plan.Running)
			in := must(n.s.Inputs(w.ctx, x.ID))(w)
			w.equal(c.name+": inputs", len(in), c.tasks+1)
			w.equalJSON(c.name+": the first input", in[0].Output, cmp.Or(c.output, "null"))
			n.end(later(claim, time.Hour))
			stays(plan.Held)
			w.pass(2 * time.Hour)
			n.sweep()
			n.end(ok(n.one()))

			before := w.task(x.ID)
			c.delete(p)
			w.gone(p, parents[0])
			after := w.task(x.ID)
			w.equal(c.name+": status after", after.Status, plan.Succeeded)
			w.equal(c.name+": needs after", after.Needs, x.Needs)
			w.equalJSON(c.name+": params after", after.Params, cmp.Or(string(before.Params), "null"))
			w.equal(c.name+": whether inputs were copied", strings.Contains(string(after.Params), `"args"`), len(c.output) <= plan.MaxCopiedOne)
		}
	}},
	{"plans that stay stand in nobody's way", func(w *world) {
		q := w.queue("exec", 0)
		w.add(plan.PlanID{}, w.newTask(q, "slow"))
		slow := w.node("n1").one()
		for range 4 {
			p := w.ended(plan.Spec{Name: "needed", Keep: time.Minute}, 1)
			w.add(plan.PlanID{}, w.newTask(q, "x", w.named(p, "t0").ID, slow.Task))
		}
		last := w.ended(plan.Spec{Name: "last", Keep: time.Minute}, 1)
		first := w.named(last, "t0").ID
		w.pass(time.Hour)
		for more := true; more; {
			more = must(w.s.Expire(w.ctx, 3))(w).More
		}
		w.gone(last, first)
		w.equal("plans left", len(must(w.s.Plans(w.ctx, store.PlanQuery{Name: "needed"}))(w)), 4)
	}},
	{"a deletion that has begun goes on, and what is left of the plan is needed by nobody more", func(w *world) {
		p := w.ended(plan.Spec{Name: "gone", Keep: -1}, 30)
		first := w.named(p, "t0").ID
		q, n := w.queue("exec", 0), w.node("n2")
		x := w.newTask(q, "x", first, w.named(p, "t29").ID)
		w.add(plan.PlanID{}, x)
		n.run(ok)
		w.equal("more", must(w.s.DeletePlan(w.ctx, p.ID, 10))(w), true)
		late := w.newTask(q, "late", w.all(store.TaskQuery{Plan: p.ID})[0].ID)
		err := w.s.AddTasks(w.ctx, plan.PlanID{}, []plan.Task{w.newTask(q, "fine"), late})
		w.is(err, plan.ErrNotFound)
		if err != nil && !strings.Contains(err.Error(), "late") {
			w.Errorf("the error is %q, which does not name the task", err)
		}
		w.equal("added", len(w.all(store.TaskQuery{NoPlan: true})), 1)
		again := []rules.Retried{{ID: x.ID, Status: plan.Succeeded}}
		w.refused(w.s.Retry(w.ctx, plan.PlanID{}, again, nil, nil), "needs some of a plan that is being deleted")
		w.equal("what is not retried", w.task(x.ID).Status, plan.Succeeded)
		w.equal("expired", w.expire(), 1)
		w.gone(p, first)
		w.no(w.s.Retry(w.ctx, plan.PlanID{}, again, nil, nil))
		alone := w.task(x.ID)
		w.equal("what is retried without its parents", alone.State(), "skipped")
	}},
	{"a plan whose deletion has begun cannot be retried", func(w *world) {
		for _, size := range []int{0, 30} {
			spec := plan.Spec{Name: "gone"}
			for i := range 30 {
				spec.Add(task(fmt.Sprint("t", i)))
			}
			p, tasks := w.compile(&spec)
			p.Size = size
			p = must(w.s.CreatePlan(w.ctx, p))(w)
			w.add(p.ID, tasks...)
			w.no(w.s.Ready(w.ctx, p.ID))
			n := w.node("n1")
			n.run(ok)
			w.wantPlan(p, plan.PlanSucceeded)
			w.equal("more", must(w.s.DeletePlan(w.ctx, p.ID, 10))(w), true)
			left := w.all(store.TaskQuery{Plan: p.ID})[0]
			w.is(w.s.Retry(w.ctx, p.ID, []rules.Retried{{ID: left.ID, Status: left.Status}}, nil, nil), plan.ErrNotFound)
			w.equal("what is left of it", w.task(left.ID).Status, plan.Succeeded)
			w.equal("ran", len(n.run(ok)), 0)
			for more := true; more; {
				more = must(w.s.DeletePlan(w.ctx, p.ID, 10))(w)
			}
			w.gone(p, left.ID)
		}
	}},
	{"a task that is added beside a deletion keeps the plan, or finds it gone", func(w *world) {
		q, other := w.queue("exec", 0), w.reopen(nil)
		for range 8 {
			p := w.ended(plan.Spec{Name: "wanted", Keep: -1}, 3)
			first := w.named(p, "t0").ID
			x := w.newTask(q, "x", first)
			var added, deleted error
			var wg sync.WaitGroup
			wg.Go(func() { added = other.AddTasks(w.ctx, plan.PlanID{}, []plan.Task{x}) })
			wg.Go(func() {
				for more := true; more && deleted == nil; {
					more, deleted = w.s.DeletePlan(w.ctx, p.ID, 2)
				}
			})
			wg.Wait()
			if added != nil {
				w.is(added, plan.ErrNotFound)
				w.no(deleted)
				w.gone(p, first)
				_, err := w.s.Task(w.ctx, x.ID)
				w.is(err, plan.ErrNotFound)
				continue
			}
			w.is(deleted, plan.ErrPlanActive)
			w.equal("tasks left", w.plan(p.ID).Counts.Total(), 3)
			w.equal("what was added", w.task(x.ID).Status, plan.Queued)
			w.node("n2").run(ok)
		}
	}},
	{"a task whose parents are deleted counts them as cancelled", func(w *world) {
		q, n := w.queue("exec", 0), w.node("n1")
		for _, parents := range []int{1, 300} {
			spec := plan.Spec{Name: "nightly"}
			for i := range parents {
				spec.Add(task(fmt.Sprint("t", i)))
			}
			var needs []plan.TaskID
			for _, t := range w.all(store.TaskQuery{Plan: w.submitUnready(&spec).ID}) {
				needs = append(needs, t.ID)
			}
			strict, anyway := w.newTask(q, "strict", needs...), w.newTask(q, "anyway", needs...)
			anyway.When = plan.AllDone
			w.add(plan.PlanID{}, strict, anyway)
			w.pass(2 * time.Hour)
			n.sweep() // the submission is abandoned and its tasks deleted
			n.sweep()
			w.equal("state", []any{w.task(strict.ID).Status, w.task(strict.ID).Reason}, []any{plan.Cancelled, plan.ReasonSkipped})
			c := n.one()
			w.equal("claimed", c.Name, "anyway")
			w.equal("args", string(lookup(w, c.Params, "args")), "[null"+strings.Repeat(",null", parents-1)+"]")
			n.end(ok(c))
		}
	}},
}
