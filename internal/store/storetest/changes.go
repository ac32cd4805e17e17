package storetest

import (
	"errors"
	"time"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// A feed reads changes and keeps the last of each task and plan.
type feed struct {
	w      *world
	cursor store.Cursor
	tasks  map[plan.TaskID]store.Change
	plans  map[plan.PlanID]store.Change
}

func (w *world) feed() *feed {
	w.Helper()
	return &feed{w: w, cursor: must(w.s.Latest(w.ctx))(w), tasks: map[plan.TaskID]store.Change{}, plans: map[plan.PlanID]store.Change{}}
}

// read reads pages until there is nothing new, and returns how many changes there were. Feeds may repeat the newest changes for a
// moment, so it is over when a page holds nothing that was not there before.
func (f *feed) read(limit int) (n int) {
	f.w.Helper()
	for {
		changes, next, err := f.w.s.Changes(f.w.ctx, f.cursor, limit)
		f.w.no(err)
		if len(changes) > limit {
			f.w.Fatalf("%d changes, want at most %d", len(changes), limit)
		}
		news := false
		for _, c := range changes {
			n++
			if c.Task.IsZero() {
				old, known := f.plans[c.Plan]
				news = news || !known || old.State != c.State
				f.plans[c.Plan] = c
				continue
			}
			old, known := f.tasks[c.Task]
			news = news || !known || old.Status != c.Status || old.Attempt != c.Attempt
			f.tasks[c.Task] = c
		}
		if f.cursor = next; !news {
			return n
		}
	}
}

var changeCases = []testCase{
	{"what is no cursor is refused as such", func(w *world) {
		for _, cursor := range []store.Cursor{"x", "\x81\xaa", "1.x", "-1", "-5.-5", "1.-1", "99999999999"} {
			if _, _, err := w.s.Changes(w.ctx, cursor, 1); !errors.Is(err, plan.ErrCursor) {
				w.Errorf("changes after %q: %v, want %v", cursor, err, plan.ErrCursor)
			}
		}
	}},
	{"every task and plan that changed is in the feed as it is now", func(w *world) {
		f := w.feed()
		may := task("may", "a")
		may.ContinueOnError = true
		p := w.submit(task("a"), task("b", "a"), task("c", "b"), each("copy", list(1, 2), "a"), may)
		check := func() {
			w.Helper()
			f.read(1000)
			for _, t := range w.all(store.TaskQuery{Plan: p.ID}) {
				c := f.tasks[t.ID]
				got := []any{c.Plan, c.Name, c.Of, c.Status, c.Reason, c.Allowed, c.Attempt, c.Node, c.Detail}
				w.equal("change of "+t.Name, got, []any{t.Plan, t.Name, t.Of, t.Status, t.Reason, t.Allowed(), t.Attempt, t.Node, t.Detail})
				if c.At.IsZero() {
					w.Errorf("the change of %q has no instant", t.Name)
				}
			}
			w.equal("state", f.plans[p.ID].State, w.plan(p.ID).State)
		}
		check()
		n := w.node("n1")
		c := n.one()
		check()
		n.end(ok(c))
		check()
		n.end(fail(n.holdOne("b")))
		check()
		n.end(fail(n.holdOne("may")))
		check()
		w.equal("allowed", f.tasks[w.named(p, "may").ID].Allowed, true)
		for _, c := range n.holding {
			n.end(ok(c))
		}
		check()
		w.wantPlan(p, plan.PlanFailed)
		w.retry(p, false)
		check()
		w.no(w.s.CancelPlan(w.ctx, p.ID, false))
		n.sweep()
		check()
	}},
	{"the feed can be read in small pages", func(w *world) {
		f := w.feed()
		p := w.submit(numbered(40)...)
		w.node("n1").run(ok)
		f.read(7)
		done := 0
		for _, c := range f.tasks {
			if c.Plan == p.ID && c.Status == plan.Succeeded {
				done++
			}
		}
		w.equal("succeeded", []any{done, f.plans[p.ID].State}, []any{40, plan.PlanSucceeded})
	}},
	{"the latest cursor is the present: what was before is not behind it", func(w *world) {
		before := w.submit(task("a"))
		w.node("n1").run(ok)
		w.pass(time.Minute) // feeds that overlap do so by less
		f := w.feed()
		after := w.submit(task("b"))
		f.read(100)
		if _, there := f.plans[before.ID]; there {
			w.Error("a plan that ended before is in the feed")
		}
		w.equal("plans", []any{len(f.plans), f.plans[after.ID].State}, []any{1, plan.PlanRunning})
	}},
	{"a reader that stays sees what other handles write", func(w *world) {
		f := w.feed()
		p, tasks := w.compile(&plan.Spec{Name: "nightly", Tasks: []plan.TaskSpec{task("a")}})
		other := w.reopen(nil)
		must(other.CreatePlan(w.ctx, p))(w)
		w.no(other.AddTasks(w.ctx, p.ID, tasks))
		w.no(other.Ready(w.ctx, p.ID))
		f.read(10)
		n := w.nodeOn(other, "n1")
		n.end(ok(n.one()))
		f.read(10)
		w.equal("task", f.tasks[tasks[0].ID].Status, plan.Succeeded)
		w.equal("plan", f.plans[p.ID].State, plan.PlanSucceeded)
	}},
}
