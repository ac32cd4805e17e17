// Package invariants reads what a store holds, and finds what contradicts the invariants of package
// store: counters that are wrong, tasks that run too early or that nothing releases, and items,
// plans and queues that are not there. The conformance suite and "sluice store check" ask here.
package invariants

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// Check returns what is wrong, each fault as a sentence that names the task, plan or queue. It
// changes nothing. It has all tasks in memory at a time, without their params and outputs.
//
// The reads of a store that others write are not of one instant, so that a fault may be none: it is
// one if a later check finds it, too. settled says that a deletion, a retry or a release that is
// half-way is a fault as well, as it is when nodes had the time to end it.
//
// A store that is a store.Checker says first what is wrong with its bookkeeping. If the store cannot be read after that, the
// error is a fault.
func Check(ctx context.Context, s store.Store, settled bool) (faults []Fault, err error) {
	c := checker{
		settled: settled, plans: map[plan.PlanID]*planCount{}, tasks: map[plan.TaskID]*plan.Task{}, queues: map[plan.QueueID]*queueCount{},
		items: map[plan.TaskID][]*plan.Task{},
	}
	if own, is := s.(store.Checker); is {
		found, sure, err := own.Check(ctx)
		if err != nil {
			return nil, err
		}
		for _, text := range found {
			c.faults = append(c.faults, Fault{text, sure})
		}
	}
	switch err := c.read(ctx, s); {
	case err == nil:
		c.run()
	case len(c.faults) == 0 || ctx.Err() != nil:
		return nil, err
	default:
		c.faults = append(c.faults, Fault{"the rest cannot be read: " + err.Error(), true})
	}
	slices.SortStableFunc(c.faults, func(a, b Fault) int { return cmp.Compare(a.Text, b.Text) })
	return slices.CompactFunc(c.faults, func(a, b Fault) bool { return a.Text == b.Text }), nil
}

// A Fault is something that contradicts an invariant.
type Fault struct {
	Text string // a sentence
	Sure bool   // it was read as of one instant
}

// planCount is a plan, and what its tasks sum up to.
type planCount struct {
	plan.Plan
	has  plan.Counts
	open int // unfinished tasks that are none of finally
}

// queueCount is a queue, and how many of its tasks there are.
type queueCount struct {
	plan.Queue
	queued, active int
}

type checker struct {
	settled bool
	plans   map[plan.PlanID]*planCount
	tasks   map[plan.TaskID]*plan.Task
	queues  map[plan.QueueID]*queueCount
	items   map[plan.TaskID][]*plan.Task // by foreach task
	faults  []Fault
}

func (c *checker) fault(format string, args ...any) {
	c.faults = append(c.faults, Fault{Text: fmt.Sprintf(format, args...)})
}

func (c *checker) read(ctx context.Context, s store.Store) error {
	q := store.PlanQuery{NoParams: true, Limit: 1000}
	for more := true; more; {
		plans, err := s.Plans(ctx, q)
		if err != nil {
			return err
		}
		for _, p := range plans {
			c.plans[p.ID], q.Before = &planCount{Plan: p}, p.ID
		}
		more = len(plans) == q.Limit
	}
	queues, err := s.Queues(ctx)
	if err == nil {
		err = s.CountQueues(ctx, queues)
	}
	if err != nil {
		return err
	}
	for _, q := range queues {
		c.queues[q.ID] = &queueCount{Queue: q}
	}
	return store.EachPage(ctx, s, store.TaskQuery{Needs: true}, func(tasks []plan.Task) error {
		for i := range tasks {
			t := &tasks[i]
			if c.tasks[t.ID] = t; !t.Of.IsZero() {
				c.items[t.Of] = append(c.items[t.Of], t)
			}
		}
		return nil
	})
}

func (c *checker) run() {
	for _, t := range c.tasks {
		if wrong := c.task(t); wrong != "" {
			c.fault("task %q (%s, %s): %s", t.Name, t.ID, t.State(), wrong)
		}
	}
	for _, t := range c.tasks {
		if wrong := c.foreach(t); wrong != "" {
			c.fault("foreach task %q (%s, %s): %s", t.Name, t.ID, t.State(), wrong)
		}
		if c.settled && t.Status == plan.Held && !c.waits(t) {
			c.fault("invariant 3: task %q (%s) is held, and nothing is left that would release it", t.Name, t.ID)
		}
	}
	for _, p := range c.plans {
		switch {
		case p.Counts != p.has:
			c.fault("the counts of plan %s: %s", p.Title(), rules.Differ(p.Counts, p.has))
		case p.State.Ended() && !p.has.Settled() && p.State != plan.PlanAbandoned && (c.settled || p.has.Unfinished() > p.has.Held):
			// Without settled: a retry that is half-way has held tasks before the plan runs again.
			c.fault("plan %s is %v with unfinished tasks: %+v", p.Title(), p.State, p.has)
		case c.settled && p.State == plan.PlanRunning && p.has.Settled():
			c.fault("plan %s still runs with nothing to run: %+v", p.Title(), p.has)
		}
	}
	for _, q := range c.queues {
		if q.Queued != q.queued || q.Active != q.active {
			c.fault("queue %q says that it has %d queued and %d active, but has %d and %d", q.Name, q.Queued, q.Active, q.queued, q.active)
		}
	}
}

// task checks one task, and counts it.
func (c *checker) task(t *plan.Task) string {
	busy := t.Status == plan.Queued || t.Status.Active()
	switch q, ok := c.queues[t.Queue]; {
	case !ok && (t.Plan.IsZero() || t.Status.Finished()): // a queue may be deleted under these: rules.CheckDeleteQueue
	case !ok:
		return fmt.Sprintf("it is in queue %s, which is not there", t.Queue)
	case t.Status == plan.Queued:
		q.queued++
	case busy:
		q.active++
	}
	if !t.Plan.IsZero() {
		p, ok := c.plans[t.Plan]
		switch {
		case ok:
		case !busy && !c.settled:
			return "" // a deletion that is half-way
		default:
			return fmt.Sprintf("it is of plan %s, which is not there", t.Plan)
		}
		rules.Count(&p.has, rules.CountedOf(t), 1)
		if !t.Finally && !t.Status.Finished() {
			p.open++
		}
		switch {
		case busy && p.State != plan.PlanRunning:
			return fmt.Sprintf("invariant 1: its plan is %v", p.State)
		case t.Finally && (busy || c.settled && t.Status != plan.Held && !rules.KeptFinally(t, p.Retried)) && rules.HoldsFinally(p.State, p.Ending):
			return "invariant 1: it is one of finally, and its plan has not ended otherwise"
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
	case !t.Status.Finished() && !t.Ended.IsZero() && (busy || c.settled): // a retry that is half-way has it still
		return fmt.Sprintf("it ended at %v", t.Ended)
	case busy && t.Foreach != nil && !t.Foreach.OnNode():
		return "it has items to make, and not to run itself"
	}
	return ""
}

// foreach checks that a foreach task has each of its items once.
func (c *checker) foreach(t *plan.Task) string {
	// A retry adds items before it tells their foreach task, and may die between.
	items := slices.DeleteFunc(slices.Clone(c.items[t.ID]), func(i *plan.Task) bool { return i.Index >= t.Items && i.Detail == rules.ByAdded })
	if p, ok := c.plans[t.Plan]; !c.settled && (!ok || p.State.Ended()) {
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
	dropping := !c.settled && t.Status == plan.Held && !t.Expanding && !t.Expanded
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
	if p, ok := c.plans[t.Plan]; ok && t.Finally && rules.HoldsFinally(p.State, p.Ending) {
		return p.open > 0
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
	if t.Finally { // its parents only order it
		return !all
	}
	return rules.Decide(t.When, seen, all) == rules.ToWait
}
