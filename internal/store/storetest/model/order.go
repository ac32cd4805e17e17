package model

import (
	"container/heap"
	"slices"
	"sort"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// queue is a queue and what waits in it: a lane for each plan, and the lanes that have something to claim ordered by the task that
// each would offer first. So a claim is O(log n), for one plan as for all of them, and closing a plan takes away its lane.
type queue struct {
	plan.Queue
	unset bool // nobody gave it threads yet
	lanes map[plan.PlanID]*lane
	heads ordered[*lane]
}

func newQueue(of plan.Queue) *queue {
	q := &queue{Queue: of, lanes: map[plan.PlanID]*lane{}}
	q.heads.first = func(a, b *lane) bool { return q.first(a.all[0], b.all[0]) }
	q.heads.place = func(l *lane) *int { return &l.pos }
	return q
}

// lane holds the queued tasks of one plan, or those of none, in a queue.
type lane struct {
	ordered[*task]
	queue  *queue
	pos    int // in heads; -1: not there
	closed bool
}

func (q *queue) newLane() *lane {
	return &lane{queue: q, pos: -1, ordered: ordered[*task]{first: q.first, place: func(t *task) *int { return &t.pos }}}
}

// first reports whether a is claimed before b.
func (q *queue) first(a, b *task) bool { return rules.ClaimOrder(q.Sort, &a.Task, &b.Task) < 0 }

func (q *queue) lane(t *task) *lane {
	l, ok := q.lanes[t.Plan]
	if !ok {
		l = q.newLane()
		q.lanes[t.Plan] = l
	}
	return l
}

func (q *queue) add(t *task) {
	t.lane = q.lane(t)
	heap.Push(t.lane, t)
	t.lane.moved()
}

func (q *queue) remove(t *task) {
	l := t.lane
	heap.Remove(l, t.pos)
	l.moved()
	if l.Len() == 0 && !l.closed {
		delete(q.lanes, t.Plan)
	}
	t.lane = nil
}

// close takes a plan's lane out of what is claimed; open puts it back.
func (q *queue) close(p plan.PlanID) {
	if l, ok := q.lanes[p]; ok {
		l.closed = true
		l.moved()
	} else {
		q.lanes[p] = q.newLane()
		q.lanes[p].closed = true
	}
}

func (q *queue) open(p plan.PlanID) {
	if l, ok := q.lanes[p]; ok {
		l.closed = false
		l.moved()
	}
}

// setSort changes the order of what waits.
func (q *queue) setSort(s plan.QueueSort) {
	q.Sort = s
	for _, l := range q.lanes {
		heap.Init(l)
	}
	heap.Init(&q.heads)
}

// moved puts the lane where it belongs among the heads after its first task changed.
func (l *lane) moved() {
	switch offers := l.Len() > 0 && !l.closed; {
	case offers && l.pos < 0:
		heap.Push(&l.queue.heads, l)
	case offers:
		heap.Fix(&l.queue.heads, l.pos)
	case l.pos >= 0:
		heap.Remove(&l.queue.heads, l.pos)
	}
}

// ordered is a heap whose elements know their places in it.
type ordered[T any] struct {
	all   []T
	first func(a, b T) bool
	place func(T) *int // -1: it is not there
}

func (o *ordered[T]) Len() int           { return len(o.all) }
func (o *ordered[T]) Less(i, j int) bool { return o.first(o.all[i], o.all[j]) }
func (o *ordered[T]) Swap(i, j int) {
	o.all[i], o.all[j] = o.all[j], o.all[i]
	*o.place(o.all[i]), *o.place(o.all[j]) = i, j
}
func (o *ordered[T]) Push(x any) {
	*o.place(x.(T)) = len(o.all)
	o.all = append(o.all, x.(T))
}
func (o *ordered[T]) Pop() any {
	last := len(o.all) - 1
	x := o.all[last]
	*o.place(x) = -1
	o.all = slices.Delete(o.all, last, last+1)
	return x
}

// byDelay orders held tasks by NotBefore.
func byDelay() ordered[*task] {
	return ordered[*task]{
		first: func(a, b *task) bool { return a.NotBefore.Before(b.NotBefore) },
		place: func(t *task) *int { return &t.due },
	}
}

// delay keeps a held task in delays as long as it waits for nothing but its NotBefore.
func (d *db) delay(t *task) {
	wanted := !t.NotBefore.IsZero() && !t.gone && (t.plan == nil || t.plan.State == plan.PlanRunning) &&
		(t.Finally || rules.Decide(t.When, t.seen, t.waiting == 0) == rules.ToRun)
	switch {
	case wanted && t.delayed:
		heap.Fix(&d.delays, t.due)
	case wanted:
		t.delayed = true
		heap.Push(&d.delays, t)
	case t.delayed:
		t.delayed = false
		heap.Remove(&d.delays, t.due)
	}
}

// fifo is a queue of tasks.
type fifo struct {
	tasks []*task
	head  int
}

func (f *fifo) push(t *task) { f.tasks = append(f.tasks, t) }
func (f *fifo) empty() bool  { return f.head == len(f.tasks) }

func (f *fifo) pop() *task {
	t := f.tasks[f.head]
	f.tasks[f.head] = nil
	if f.head++; f.head > 1000 && f.head > len(f.tasks)/2 {
		f.tasks = slices.Delete(f.tasks, 0, f.head)
		f.head = 0
	}
	return t
}

// changes is the feed: an entry for each change, in order. Readers read the present state from the
// task or plan, so only the last entry of each counts. The others are dropped when they are many.
type changes struct {
	entries []entry
	seq     int64
	stale   int
}

type entry struct {
	seq  int64
	task *task
	plan *planRow // where there is no task
}

func (e entry) current() bool {
	if e.task != nil {
		return e.task.seq == e.seq && !e.task.gone
	}
	return e.plan.seq == e.seq && !e.plan.gone
}

func (c *changes) add(e entry, last *int64) {
	c.seq++
	if *last > 0 {
		c.stale++
	}
	*last, e.seq = c.seq, c.seq
	if c.entries = append(c.entries, e); c.stale > 1000 && c.stale > len(c.entries)/2 {
		c.entries = slices.DeleteFunc(c.entries, func(e entry) bool { return !e.current() })
		c.stale = 0
	}
}

// after returns the entries behind a place.
func (c *changes) after(seq int64) []entry {
	return c.entries[sort.Search(len(c.entries), func(i int) bool { return c.entries[i].seq > seq }):]
}

// touch notes that the task changed.
func (tx *tx) touch(t *task) {
	t.Modified = tx.at
	tx.changes.add(entry{task: t}, &t.seq)
}

func (tx *tx) touchPlan(p *planRow) {
	p.Modified = tx.at
	tx.changes.add(entry{plan: p}, &p.seq)
}
