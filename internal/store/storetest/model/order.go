package model

import (
	"slices"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// queue is a queue and what waits in it.
type queue struct {
	plan.Queue
	unset bool                    // nobody gave it threads yet
	lanes map[plan.PlanID][]*task // the queued tasks of each plan, and those of none, in the order in which they are claimed
}

func newQueue(of plan.Queue) *queue { return &queue{Queue: of, lanes: map[plan.PlanID][]*task{}} }

func (q *queue) order(a, b *task) int { return rules.ClaimOrder(q.Sort, &a.Task, &b.Task) }

func (q *queue) add(t *task) {
	at, _ := slices.BinarySearchFunc(q.lanes[t.Plan], t, q.order)
	q.lanes[t.Plan] = slices.Insert(q.lanes[t.Plan], at, t)
}

func (q *queue) remove(t *task) {
	at, _ := slices.BinarySearchFunc(q.lanes[t.Plan], t, q.order)
	if q.lanes[t.Plan] = slices.Delete(q.lanes[t.Plan], at, at+1); len(q.lanes[t.Plan]) == 0 {
		delete(q.lanes, t.Plan)
	}
}

// heads returns the first task of each lane, in the order of the queue. Closed plans have none.
func (q *queue) heads() (first []*task) {
	for _, lane := range q.lanes {
		if p := lane[0].plan; p == nil || p.Closing == plan.Open {
			first = append(first, lane[0])
		}
	}
	slices.SortFunc(first, q.order)
	return first
}

// setSort changes the order of what waits.
func (q *queue) setSort(s plan.QueueSort) {
	q.Sort = s
	for _, lane := range q.lanes {
		slices.SortFunc(lane, q.order)
	}
}

// delay keeps a held task in delays as long as it waits for nothing but its NotBefore.
func (d *db) delay(t *task) {
	if !t.NotBefore.IsZero() && !t.gone && (t.plan == nil || t.plan.State == plan.PlanRunning) &&
		(t.Finally || rules.Decide(t.When, t.seen, t.waiting == 0) == rules.ToRun) {
		d.delays[t] = true
	} else {
		delete(d.delays, t)
	}
}

// An entry of the feed is one change. Readers read the present state from the task or plan, so only the last entry of each counts.
type entry struct {
	seq  int64 // its place in the feed, from 1
	task *task
	plan *planRow // where there is no task
}

func (e entry) current() bool {
	if e.task != nil {
		return e.task.seq == e.seq && !e.task.gone
	}
	return e.plan.seq == e.seq && !e.plan.gone
}

// touch notes that the task changed.
func (tx *tx) touch(t *task) {
	t.Modified, t.seq = tx.at, int64(len(tx.changes)+1)
	tx.changes = append(tx.changes, entry{seq: t.seq, task: t})
}

func (tx *tx) touchPlan(p *planRow) {
	p.Modified, p.seq = tx.at, int64(len(tx.changes)+1)
	tx.changes = append(tx.changes, entry{seq: p.seq, plan: p})
}
