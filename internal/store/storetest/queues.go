package storetest

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// in puts a task into a queue.
func in(queue, name string, needs ...string) plan.TaskSpec {
	return plan.TaskSpec{Name: name, Queue: queue, Needs: needs}
}

// queueNamed returns the queue of that name with its counts.
func (w *world) queueNamed(name string) plan.Queue {
	w.Helper()
	queues := must(w.s.Queues(w.ctx))(w)
	k := slices.IndexFunc(queues, func(q plan.Queue) bool { return q.Name == name })
	if k < 0 {
		w.Fatalf("there is no queue %q", name)
	}
	w.no(w.s.CountQueues(w.ctx, queues[k:k+1]))
	return queues[k]
}

var queueCases = []testCase{
	{"a queue is kept as it was given, and its name is taken", func(w *world) {
		q := plan.Queue{ID: plan.QueueID{ID: plan.NewID(time.Now())}, Name: "wide", Plugin: "demo", Threads: 7, Sort: plan.SortLIFO}
		made := must(w.s.CreateQueue(w.ctx, q))(w)
		w.equal("made", fmt.Sprintf("%+v", made), fmt.Sprintf("%+v", q))
		_, err := w.s.CreateQueue(w.ctx, plan.Queue{ID: plan.QueueID{ID: plan.NewID(time.Now())}, Name: "wide", Plugin: "exec"})
		w.is(err, plan.ErrExists)
		there := must(w.s.EnsureQueue(w.ctx, plan.Queue{Name: "wide", Plugin: "exec", Threads: 1}))(w)
		w.equal("ensured", []any{there.ID, there.Plugin, there.Threads, there.Sort}, []any{q.ID, "demo", 7, plan.SortLIFO})
		other := must(w.s.EnsureQueue(w.ctx, plan.Queue{Name: "other", Plugin: "exec", Unlimited: true}))(w)
		if other.ID.IsZero() || !other.Unlimited {
			w.Errorf("a queue that was missing is %+v", other)
		}
		var all []string
		for _, q := range must(w.s.Queues(w.ctx))(w) {
			all = append(all, q.Name)
		}
		w.equal("queues by name", all, "[other wide]")
	}},
	{"a claim costs what it takes, however high the queue's limit is", func(w *world) {
		w.queue("wide", 1<<26)
		w.submit(in("wide", "a"), in("wide", "b"), in("wide", "c"))
		n := w.node("n1")
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		claimed := n.turn(plan.Turn{Slots: 2}).Claimed
		runtime.ReadMemStats(&after)
		w.equal("claimed", len(claimed), 2)
		if used := after.TotalAlloc - before.TotalAlloc; used > 64<<20 {
			w.Errorf("a claim of two tasks took %d MiB of memory", used>>20)
		}
	}},
	{"queues count what waits and what runs", func(w *world) {
		w.queue("narrow", 2)
		p := w.submit(in("narrow", "a"), in("narrow", "b"), in("narrow", "c"), in("narrow", "d", "a"), task("e"))
		counts := func(queued, active int) {
			w.Helper()
			q := w.queueNamed("narrow")
			w.equal("queued and active", []int{q.Queued, q.Active}, []int{queued, active})
		}
		counts(3, 0)
		n := w.node("n1")
		n.turn(plan.Turn{Slots: 9})
		counts(1, 2)
		n.end(ok(n.holding[w.named(p, "a").ID]))
		counts(2, 1)
		n.end(giveBack(n.holding[w.named(p, "b").ID]))
		counts(3, 0)
		w.no(w.s.CancelTask(w.ctx, w.named(p, "c").ID))
		counts(2, 0)
		n.run(ok)
		counts(0, 0)
	}},
	{"invariant 6: threads that are given back, rescued, delayed and cancelled are free again", func(w *world) {
		w.queue("narrow", 1)
		p := w.submit(in("narrow", "a"), in("narrow", "b"), in("narrow", "c"), in("narrow", "d"), in("narrow", "e"))
		n := w.node("n1")
		n.end(later(n.one(), time.Hour))
		n.end(fail(n.one()))
		must(w.s.Rescue(w.ctx, n.id, -1))(w)
		n = w.node("n1")
		n.one()
		must(w.s.Rescue(w.ctx, n.id, -1))(w)
		n = w.node("n1")
		n.one()
		clear(n.holding)
		n.sweep() // the claim was not held
		c := n.one()
		w.no(w.s.CancelTask(w.ctx, c.Task))
		n.end(giveBack(c))
		w.equal("the rest", len(n.run(ok)), 2)
		w.equal("active", w.queueNamed("narrow").Active, 0)
		w.equal("counts", w.plan(p.ID).Counts.Held, 1)
	}},
	{"invariant 6: the instances of a node have no more tasks claimed and running together than its limit", func(w *world) {
		w.no(w.s.SetMaxThreads(w.ctx, "n1", 3))
		a, b, other := w.node("n1"), w.nodeOn(w.reopen(nil), "n1"), w.node("n2")
		set := func(most int) {
			w.no(w.s.SetMaxThreads(w.ctx, "n1", most))
			for _, n := range []*node{a, b} {
				must(n.s.Beat(w.ctx, plan.Beat{Instance: n.id}))(w)
			}
		}
		w.queue("narrow", 2)
		w.queue("wide", 0)
		var tasks []plan.TaskSpec
		for i := range 20 {
			tasks = append(tasks, in("narrow", fmt.Sprint("n", i)), in("wide", fmt.Sprint("w", i)))
		}
		p := w.submit(tasks...)
		claims := func(want int, n *node, slots int, ended ...plan.Ending) {
			w.Helper()
			w.equal("claimed", len(n.turn(plan.Turn{Slots: slots, Ended: ended, Start: true}).Claimed), want)
		}
		claims(2, a, 2)
		claims(1, b, 9)
		claims(0, a, 9)
		claims(0, b, 9)
		claims(5, other, 5)
		a.end(ok(oneOf(a)))
		claims(1, b, 9)
		claims(0, a, 9)
		claims(1, a, 9, giveBack(oneOf(a)))
		claims(1, b, 9, later(oneOf(b), time.Hour))
		claims(1, b, 9, fail(oneOf(b)))
		claims(0, a, 9)

		set(1) // a has 1 task and b has 2
		claims(0, b, 9, ok(oneOf(b)))
		must(w.s.Rescue(w.ctx, b.id, -1))(w)
		b = w.nodeOn(b.s, "n1")
		claims(0, b, 9)
		must(w.s.Rescue(w.ctx, a.id, -1))(w)
		claims(1, b, 9)
		a = w.nodeOn(a.s, "n1")
		claims(0, a, 9)
		set(0)
		claims(0, b, 9, ok(oneOf(b)))
		claims(0, a, 9)
		set(4)
		claims(4, a, 9)
		set(-1)
		claims(6, b, 6)
		set(4)
		claims(0, a, 9)
		w.equal("running", w.plan(p.ID).Counts.Running, 5+4+6)
	}},
	{"threads can be raised, lowered, closed to 0 and lifted", func(w *world) {
		q := w.queue("narrow", 1)
		tasks := make([]plan.TaskSpec, 10)
		for i := range tasks {
			tasks[i] = in("narrow", fmt.Sprint("t", i))
		}
		w.submit(tasks...)
		n := w.node("n1")
		w.equal("with 1", len(n.claim(9)), 1)
		set := func(threads int, unlimited bool) {
			q.Threads, q.Unlimited = threads, unlimited
			w.no(w.s.SetQueue(w.ctx, q))
		}
		set(3, false)
		w.equal("with 3", len(n.claim(9)), 2)
		set(1, false)
		ended := 0
		for _, c := range n.holding {
			w.equal("with 1 again", len(n.turn(plan.Turn{Ended: []plan.Ending{ok(c)}, Slots: 9}).Claimed), ended/2)
			if ended++; ended == 3 {
				break
			}
		}
		set(0, false)
		n.end(ok(oneOf(n)))
		w.equal("with 0", len(n.claim(9)), 0)
		set(0, true)
		w.equal("unlimited", len(n.claim(99)), 6)
		w.equal("queue", w.queueNamed("narrow").Unlimited, true)
	}},
	{"fifo is oldest first whatever the rank, lifo is newest first, and the order can be changed", func(w *world) {
		q := w.queue("ordered", 0)
		p := must(w.s.CreatePlan(w.ctx, plan.Plan{Name: "nightly"}))(w)
		var tasks []plan.Task
		for i, rank := range []int64{1, 5, 3, 9, 2, 7} {
			t := w.newTask(q, fmt.Sprint("t", i))
			t.Rank = rank
			tasks = append(tasks, t)
		}
		w.add(p.ID, tasks...)
		w.no(w.s.Ready(w.ctx, p.ID))
		n := w.node("n1")
		for _, step := range []struct {
			sort plan.QueueSort
			want string
		}{{plan.SortDefault, "t3"}, {plan.SortLIFO, "t5"}, {plan.SortFIFO, "t0"}, {plan.SortLIFO, "t4"}, {plan.SortDefault, "t1"}, {plan.SortFIFO, "t2"}} {
			q.Sort = step.sort
			w.no(w.s.SetQueue(w.ctx, q))
			w.equal("sort "+string(step.sort), names(n.claim(1)), "["+step.want+"]")
		}
	}},
	{"what is queued later goes by its rank and its age, not by when it was queued", func(w *world) {
		w.queue("narrow", 1)
		p := w.submit(in("narrow", "first"), in("narrow", "x", "first"), in("narrow", "last"))
		n := w.node("n1")
		c := n.one()
		w.equal("first", c.Name, "first")
		did := n.turn(plan.Turn{Ended: []plan.Ending{ok(c)}, Slots: 1})
		w.equal("then", names(did.Claimed), "[x]")
		n.end(ok(did.Claimed[0]))
		n.run(ok)
		w.wantPlan(p, plan.PlanSucceeded)
	}},
	{"what a turn queues and what was queued before are claimed in one order", func(w *world) {
		for _, c := range []struct {
			sort plan.QueueSort
			want string
		}{{plan.SortDefault, "[c f][d e][b]"}, {plan.SortFIFO, "[b c][d e][f]"}, {plan.SortLIFO, "[e f][c d][b]"}} {
			q := w.queue(strings.TrimSpace("ordered "+string(c.sort)), 0)
			p := must(w.s.CreatePlan(w.ctx, plan.Plan{Name: "nightly"}))(w)
			a := w.newTask(q, "a")
			a.Rank = 9
			w.add(p.ID, a)
			for _, of := range []struct {
				name  string
				rank  int64
				needs []plan.TaskID
			}{{"b", 1, nil}, {"c", 7, []plan.TaskID{a.ID}}, {"d", 3, nil}, {"e", 4, []plan.TaskID{a.ID}}, {"f", 5, []plan.TaskID{a.ID}}} {
				t := w.newTask(q, of.name)
				t.Rank, t.Needs = of.rank, of.needs
				w.add(p.ID, t)
			}
			w.no(w.s.Ready(w.ctx, p.ID))
			n := w.node("n1")
			ended := []plan.Ending{ok(n.claim(1)[0])}
			q.Sort = c.sort
			w.no(w.s.SetQueue(w.ctx, q))
			got := ""
			for range 3 {
				did := n.turn(plan.Turn{Ended: ended, Slots: 2})
				got += fmt.Sprint(slices.Sorted(slices.Values(names(did.Claimed))))
				ended = nil
				for _, c := range did.Claimed {
					ended = append(ended, ok(c))
				}
			}
			w.equal("sort "+string(c.sort), got, c.want)
			n.end(ended...)
			w.wantPlan(p, plan.PlanSucceeded)
		}
	}},
	{"queues with work take turns, so that none starves", func(w *world) {
		for _, q := range []string{"a", "b", "c"} {
			w.queue(q, 0)
			for i := range 20 {
				w.add(plan.PlanID{}, w.newTask(w.queueNamed(q), fmt.Sprint(q, i)))
			}
		}
		n := w.node("n1")
		count := map[string]int{}
		for range 9 {
			for _, c := range n.claim(1) {
				count[c.QueueName]++
			}
		}
		for _, c := range n.claim(9) {
			count[c.QueueName]++
		}
		for _, q := range []string{"a", "b", "c"} {
			if count[q] < 4 || count[q] > 8 {
				w.Errorf("of 18 claims queue %q had %d: %v", q, count[q], count)
			}
		}
	}},
	{"a queue that is full leaves its slots to the others", func(w *world) {
		w.queue("narrow", 1)
		w.queue("wide", 0)
		for i := range 5 {
			w.add(plan.PlanID{}, w.newTask(w.queueNamed("narrow"), fmt.Sprint("n", i)), w.newTask(w.queueNamed("wide"), fmt.Sprint("w", i)))
		}
		n := w.node("n1")
		w.equal("claimed", len(n.claim(6)), 6)
		w.equal("narrow", w.queueNamed("narrow").Active, 1)
	}},
	{"a plan that its own node runs is claimed by it alone among many others, and by general nodes too", func(w *world) {
		var tasks []plan.TaskSpec
		for i := range 300 {
			tasks = append(tasks, task(fmt.Sprint("t", i)))
		}
		w.submit(tasks...)
		own := w.submitSpec(&plan.Spec{Name: "own", Tasks: []plan.TaskSpec{task("x"), task("y", "x"), task("z")}})
		w.no(w.s.Adopt(w.ctx, own.ID))
		w.no(w.s.Adopt(w.ctx, own.ID))
		w.equal("own", w.plan(own.ID).Own, true)
		n := w.node("n1")
		did := n.turn(plan.Turn{Slots: 9, Plan: own.ID, Start: true})
		w.equal("claimed", names(did.Claimed), "[x z]")
		n.end(ok(did.Claimed[0]))
		general := w.node("n2")
		w.equal("all by a general node", len(general.claim(400)), 301)
		w.want(own, "y running")
	}},
	{"a plan of its own node is claimed by it from its submission on", func(w *world) {
		p, tasks := w.compile(&plan.Spec{Name: "own", Tasks: []plan.TaskSpec{task("x"), task("y", "x")}})
		p.Own = true
		must(w.s.CreatePlan(w.ctx, p))(w)
		w.add(p.ID, tasks...)
		w.no(w.s.Ready(w.ctx, p.ID))
		w.submit(task("other"))
		n := w.node("n1")
		did := n.turn(plan.Turn{Slots: 9, Plan: p.ID})
		w.equal("claimed", names(did.Claimed), "[x]")
		did = n.turn(plan.Turn{Slots: 9, Plan: p.ID, Ended: []plan.Ending{ok(did.Claimed[0])}})
		w.equal("claimed", names(did.Claimed), "[y]")
		n.end(ok(did.Claimed[0]))
		w.wantPlan(p, plan.PlanSucceeded)
		w.equal("claimed when it has ended", len(n.turn(plan.Turn{Slots: 9, Plan: p.ID}).Claimed), 0)
		w.equal("tasks", len(w.all(store.TaskQuery{Plan: p.ID})), 2)
	}},
}

// oneOf returns one of the claims that a node holds.
func oneOf(n *node) plan.ClaimedTask {
	n.w.Helper()
	for _, c := range n.holding {
		return c
	}
	n.w.Fatal("the node holds nothing")
	panic("unreachable")
}
