package storetest

import (
	"fmt"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// check reads everything that the store holds and reports what contradicts the invariants. It runs at the end of every case, and
// wherever something died.
func (w *world) check() {
	w.Helper()
	w.newChecker().run(false)
}

// checkSettled is check where nothing is left to do but what nodes, delays and people have to: nobody is held without a reason.
func (w *world) checkSettled() {
	w.Helper()
	w.newChecker().run(true)
}

type checker struct {
	*world
	plans  map[plan.PlanID]*plan.Plan
	tasks  map[plan.TaskID]*plan.Task
	queues map[plan.QueueID]*plan.Queue
	items  map[plan.TaskID][]*plan.Task
	counts map[plan.PlanID]*plan.Counts
	count  map[plan.QueueID]*struct{ queued, active int }
}

func (w *world) newChecker() *checker {
	w.Helper()
	c := &checker{
		world: w, plans: map[plan.PlanID]*plan.Plan{}, tasks: map[plan.TaskID]*plan.Task{}, queues: map[plan.QueueID]*plan.Queue{},
		items: map[plan.TaskID][]*plan.Task{}, counts: map[plan.PlanID]*plan.Counts{},
		count: map[plan.QueueID]*struct{ queued, active int }{},
	}
	for _, p := range must(w.s.Plans(w.ctx, store.PlanQuery{Limit: 1_000_000}))(w) {
		c.plans[p.ID], c.counts[p.ID] = &p, &plan.Counts{}
	}
	queues := must(w.s.Queues(w.ctx))(w)
	w.no(w.s.CountQueues(w.ctx, queues))
	for _, q := range queues {
		c.queues[q.ID], c.count[q.ID] = &q, &struct{ queued, active int }{}
	}
	for _, t := range w.all(store.TaskQuery{Needs: true}) {
		c.tasks[t.ID] = &t
		if !t.Of.IsZero() {
			c.items[t.Of] = append(c.items[t.Of], &t)
		}
	}
	return c
}

func (c *checker) run(settled bool) {
	c.Helper()
	for _, t := range c.tasks {
		if wrong := c.task(t, settled); wrong != "" {
			c.Errorf("task %q (%s, %s): %s", t.Name, t.ID, t.State(), wrong)
		}
		if wrong := c.foreach(t, settled); wrong != "" {
			c.Errorf("foreach task %q (%s, %s): %s", t.Name, t.ID, t.State(), wrong)
		}
		if settled && t.Status == plan.Held && !c.waits(t) {
			c.Errorf("invariant 3: task %q (%s) is held, and nothing is left that would release it", t.Name, t.ID)
		}
	}
	for _, p := range c.plans {
		switch counts := c.counts[p.ID]; {
		case p.Counts != *counts:
			c.Errorf("plan %s says that it has %+v, but has %+v", p.Title(), p.Counts, *counts)
		case p.State.Ended() && !counts.Settled() && p.State != plan.PlanAbandoned && (settled || counts.Unfinished() > counts.Held):
			// Without settled: a retry that is half-way has held tasks before the plan runs again.
			c.Errorf("plan %s is %v with unfinished tasks: %+v", p.Title(), p.State, *counts)
		case settled && p.State == plan.PlanRunning && counts.Settled():
			c.Errorf("plan %s still runs with nothing to run: %+v", p.Title(), *counts)
		}
	}
	for id, q := range c.queues {
		n := c.count[id]
		if q.Queued != n.queued || q.Active != n.active {
			c.Errorf("queue %q says that it has %d queued and %d active, but has %d and %d", q.Name, q.Queued, q.Active, n.queued, n.active)
		}
		if !q.Unlimited && n.active > q.Threads {
			c.Errorf("invariant 6: queue %q has %d tasks claimed and running, its threads are %d", q.Name, n.active, q.Threads)
		}
	}
}

// task checks one task, and counts it.
func (c *checker) task(t *plan.Task, settled bool) string {
	q, ok := c.count[t.Queue]
	if !ok {
		return fmt.Sprintf("it is in queue %s, which is not there", t.Queue)
	}
	busy := t.Status == plan.Queued || t.Status.Active()
	if t.Status == plan.Queued {
		q.queued++
	} else if busy {
		q.active++
	}
	if !t.Plan.IsZero() {
		p, ok := c.plans[t.Plan]
		switch {
		case ok:
		case !busy && !settled:
			return "" // a deletion that is half-way
		default:
			return fmt.Sprintf("it is of plan %s, which is not there", t.Plan)
		}
		rules.Count(c.counts[t.Plan], rules.CountedOf(t), 1)
		if busy && p.State != plan.PlanRunning {
			return fmt.Sprintf("invariant 1: its plan is %v", p.State)
		}
	}
	for _, id := range t.Needs {
		if parent, ok := c.tasks[id]; ok && busy && !parent.Status.Finished() {
			return fmt.Sprintf("invariant 1: its parent %q is %s", parent.Name, parent.State())
		}
	}
	switch {
	case t.Status == plan.Queued && (t.Node != "" || !t.Instance.IsZero()):
		return fmt.Sprintf("it is nobody's, and node %q's", t.Node)
	case t.Status.Active() && t.Attempt < 1:
		return fmt.Sprintf("it is claimed, and its attempt is %d", t.Attempt)
	case t.Status.Finished() && t.Ended.IsZero():
		return "nobody knows when it ended"
	case !t.Status.Finished() && !t.Ended.IsZero() && (busy || settled): // a retry that is half-way has it still
		return fmt.Sprintf("it ended at %v", t.Ended)
	case busy && t.Foreach != nil && !t.Foreach.OnNode():
		return "it has items to make, and not to run itself"
	}
	return ""
}

// foreach checks that a foreach task has each of its items once.
func (c *checker) foreach(t *plan.Task, settled bool) string {
	items := c.items[t.ID]
	if p, ok := c.plans[t.Plan]; !settled && (!ok || p.State.Ended()) {
		return "" // a deletion that is half-way
	}
	if t.Foreach == nil && len(items) > 0 {
		return fmt.Sprintf("it has %d items", len(items))
	}
	if t.Expanded && len(items) != t.Items {
		return fmt.Sprintf("it has %d items, want %d", len(items), t.Items)
	}
	// If a foreach task neither makes items nor has made them, an unfinished retry deletes its
	// earlier items.
	dropping := !settled && t.Status == plan.Held && !t.Expanding && !t.Expanded
	for _, i := range items {
		switch {
		case dropping && (i.Status == plan.Held || i.Status.Finished()):
		case i.ID != rules.ItemID(t.ID, i.Index) || i.Name != rules.ItemName(t.Name, i.Index) || i.Plan != t.Plan:
			return fmt.Sprintf("its item %q, number %d, is not what it says", i.Name, i.Index)
		case i.Index < 0 || i.Index >= t.Items:
			return fmt.Sprintf("it has an item number %d of %d", i.Index, t.Items)
		case i.Status != plan.Held && i.Status != plan.Cancelled && !t.Expanded:
			return fmt.Sprintf("its item %q is %s before all are in", i.Name, i.State())
		case !i.Status.Finished() && t.Status.Finished() && t.Status != plan.Cancelled:
			return fmt.Sprintf("its item %q is %s", i.Name, i.State())
		}
	}
	return ""
}

// waits reports whether there is something that a held task waits for.
func (c *checker) waits(t *plan.Task) bool {
	if p, ok := c.plans[t.Plan]; ok && p.State == plan.PlanSubmitting && p.Closing == plan.Open {
		return true
	}
	if !t.NotBefore.IsZero() {
		return true
	}
	for _, i := range c.items[t.ID] {
		if !i.Status.Finished() {
			return true
		}
	}
	var seen rules.Outcome
	all := true
	for _, id := range t.Needs {
		parent, ok := c.tasks[id]
		switch {
		case !ok:
			seen |= rules.OutcomeCancelled
		case parent.Status.Finished():
			seen |= rules.OutcomeOfTask(parent)
		default:
			all = false
		}
	}
	return rules.Decide(t.When, seen, all) == rules.ToWait
}
