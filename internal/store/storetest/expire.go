package storetest

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// keeping makes a queue that keeps its finished tasks of no plan so long.
func (w *world) keeping(name string, k plan.Keep) plan.Queue {
	w.Helper()
	q := w.queue(name, 0)
	q.Keep = k
	w.no(w.s.SetQueue(w.ctx, q))
	return q
}

// there returns the names of the tasks of no plan, sorted.
func (w *world) there() (names []string) {
	w.Helper()
	for _, t := range w.all(store.TaskQuery{NoPlan: true}) {
		names = append(names, t.Name)
	}
	slices.Sort(names)
	return names
}

// ends runs a task of no plan: bad ones fail.
func ends(c protocol.ClaimedTask) protocol.Ending {
	e := succeed(c, `"of `+c.Name+`"`)
	if strings.HasPrefix(c.Name, "bad") {
		e = fail(c)
	}
	e.Log = []plan.LogEntry{{At: time.Now(), Attempt: 1, Stream: plan.Stdout, Text: "x\n"}}
	return e
}

var expireCases = []testCase{
	{"finished tasks of no plan stay as long as their queue says, by how they ended", func(w *world) {
		q, silent, n := w.keeping("q", plan.Keep{Succeeded: plan.Duration(time.Hour), Failed: plan.Duration(3 * time.Hour), Cancelled: -1}), w.queue("silent", 0), w.node("n1")
		good, bad, stopped := w.newTask(q, "good"), w.newTask(q, "bad"), w.newTask(q, "cancelled")
		later, slow := w.newTask(q, "later"), w.newTask(q, "slow")
		later.NotBefore = w.clock.Now().Add(1e6 * time.Hour)
		p := w.ended(plan.Spec{Name: "kept", Keep: -1}, 1)
		w.add(plan.PlanID{}, stopped)
		w.no(w.s.CancelTask(w.ctx, stopped.ID))
		w.add(plan.PlanID{}, slow)
		running := n.one()
		w.add(plan.PlanID{}, good, bad, later, w.newTask(silent, "silent"))
		n.run(ends)
		w.equal("at once", w.expired(), protocol.Expired{})
		w.pass(2 * time.Hour)
		w.equal("after two hours", w.expired(), protocol.Expired{Tasks: 1})
		w.equal("left", w.there(), "[bad cancelled later silent slow]")
		_, err := w.s.Task(w.ctx, good.ID)
		w.is(err, plan.ErrNotFound)
		entries, _, err := w.s.Log(w.ctx, good.ID, 0, 10)
		if err != nil {
			w.is(err, plan.ErrNotFound)
		}
		w.equal("log entries left", len(entries), 0)
		w.pass(2 * time.Hour)
		w.equal("after four", w.expired(), protocol.Expired{Tasks: 1})
		w.pass(10_000 * time.Hour)
		want := "[cancelled later silent slow]"
		if w.d.Keep > 0 {
			want = "[cancelled later slow]"
		}
		w.expired()
		w.equal("left in the end", w.there(), want)
		w.equal("tasks of plans", w.plan(p.ID).Counts.Total(), 1)

		// The setting counts for what is there.
		q.Keep = plan.Keep{Cancelled: plan.Duration(time.Minute)}
		w.no(w.s.SetQueue(w.ctx, q))
		w.equal("once cancelled tasks are kept for a minute", w.expired(), protocol.Expired{Tasks: 1})
		n.end(ok(running))
		w.no(w.s.CancelTask(w.ctx, later.ID))
	}},
	{"a task stays as long as one that needs it", func(w *world) {
		q, n := w.keeping("q", plan.Keep{Succeeded: plan.Duration(time.Hour), Failed: plan.Duration(10 * time.Hour)}), w.node("n1")
		a := w.newTask(q, "a")
		bad := w.newTask(q, "bad", a.ID)
		w.add(plan.PlanID{}, a, bad)
		n.run(ends)
		w.pass(2 * time.Hour)
		w.equal("while the task that needs it is there", w.expired(), protocol.Expired{})

		w.no(w.tryRetry(plan.PlanID{}, rules.Ask{Tasks: []plan.TaskID{bad.ID}}))
		var in []plan.Input
		n.run(func(c protocol.ClaimedTask) protocol.Ending {
			if c.Task == bad.ID {
				in = must(n.s.Inputs(w.ctx, c.Task))(w)
				return fail(c)
			}
			return ends(c)
		})
		if len(in) != 1 || string(in[0].Output) != `"of a"` {
			w.Errorf("a task that is retried after its parent's time has the inputs %+v", in)
		}
		w.pass(20 * time.Hour)
		w.equal("once both are over", w.expired().Tasks, 2)
		w.equal("left in the end", w.there(), "[]")
	}},
	{"a task that is added beside the deletion of what it needs keeps that, or finds it gone", func(w *world) {
		q, n, other := w.keeping("q", plan.Keep{Succeeded: plan.Duration(time.Hour)}), w.node("n1"), w.reopen(nil)
		for range 6 {
			parent := w.newTask(q, "parent")
			w.add(plan.PlanID{}, parent)
			n.end(ok(n.one()))
			w.pass(2 * time.Hour)
			x := w.newTask(q, "x", parent.ID)
			var added, deleted error
			var wg sync.WaitGroup
			wg.Go(func() { added = other.AddTasks(w.ctx, plan.PlanID{}, []plan.Task{x}) })
			wg.Go(func() { _, deleted = w.s.Expire(w.ctx, 100) })
			wg.Wait()
			w.no(deleted)
			_, err := w.s.Task(w.ctx, parent.ID)
			if added == nil {
				w.no(err)
				w.equal("what was added", w.task(x.ID).Status, plan.Queued)
				n.end(ok(n.one()))
				continue
			}
			w.is(added, plan.ErrNotFound)
			if _, err := w.s.Task(w.ctx, x.ID); !errors.Is(err, plan.ErrNotFound) {
				w.Errorf("what was refused is there: %v", err)
			}
		}
	}},
}
