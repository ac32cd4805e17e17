package sqlite

import (
	"bytes"
	"slices"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// The remaining work follows from the states of tasks and plans. Jobs, joins, counters and places
// make it cheap to find. An audit finds it without them, a part of the store with each sweep. It
// reads concurrently with the writers, and the sweep's transaction repairs the faults.

const auditKey = "audit" // a row of meta: when an audit was begun last

// auditSize is how much an audit looks at with one sweep.
type auditSize struct {
	tasks int // of plans, that it passes by
	held  int // tasks that it looks at
	edges int // to their parents
	wrong int // faults of each kind that it takes notice of
}

var defaultAuditSize = auditSize{tasks: 20_000, held: 1000, edges: 20_000, wrong: 1000}

// auditing is where an audit of this handle goes on.
type auditing struct {
	on   bool
	plan int64   // with this plan, or a later one,
	past []byte  // behind this task of it
	left []int64 // held tasks that are to be mended first
}

// faults are what an audit found.
type faults struct {
	most   auditSize
	begins bool // an audit,
	last   int64
	next   auditing

	counts map[plan.PlanID]plan.Counts // of plans: what is missing in them
	queues map[int64][2]int            // what is missing in the counts of what is queued and active
	jobs   []int64                     // seqs of jobs that are none
	noted  []job                       // jobs that nobody noted
	places []int64                     // tasks that are queued in a wrong place
	held   []int64                     // held tasks whose hold or join is wrong, or that wait for nothing
}

func (f *faults) len() int {
	return len(f.counts) + len(f.queues) + len(f.jobs) + len(f.noted) + len(f.places) + len(f.held)
}

// auditQueues counts what is queued and active.
func (c *conn) auditQueues(f *faults) {
	for r := c.query("SELECT queue, count(*) FROM tasks " + inReady + " GROUP BY lane, queue"); r.next(); {
		q := f.queues[r.int(0)]
		q[0] += int(r.int(1))
		f.queues[r.int(0)] = q
	}
	for r := c.query("SELECT queue FROM tasks " + inMine); r.next(); {
		q := f.queues[r.int(0)]
		q[1]++
		f.queues[r.int(0)] = q
	}
	for r := c.query("SELECT n, queued, active FROM queues"); r.next(); {
		q := f.queues[r.int(0)]
		if q[0], q[1] = q[0]-int(r.int(1)), q[1]-int(r.int(2)); q == [2]int{} {
			delete(f.queues, r.int(0))
		} else {
			f.queues[r.int(0)] = q
		}
	}
}

// place is, in SQL, whether a queued task t of a queue q and a plan p is where it belongs.
const placed = "t.lane = CASE WHEN p.own THEN t.plan ELSE 0 END AND t.prio = CASE q.sort WHEN '' THEN -t.rank ELSE 0 END"

// queuedTasks are those that are claimed next, with what is to be wrong with them: a job that is left is about to put it right.
const queuedTasks = `SELECT t.n, NOT (` + placed + `) AND NOT (coalesce(p.own, 0) AND EXISTS (SELECT 1 FROM jobs WHERE kind = 6 AND ref = t.plan)), t.plan, t.of, p.closing <> '', ` + stopsItems + `
	FROM tasks AS t INDEXED BY tasks_ready CROSS JOIN queues AS q ON q.n = t.queue LEFT JOIN plans AS p ON p.n = t.plan LEFT JOIN tasks AS o ON o.n = t.of AND t.of <> 0
	WHERE t.` + isReady + ` AND coalesce(p.retry, 0) = 0 LIMIT ? + 0`

// auditQueued looks at what is queued: whether it is in its place, and is to be there at all.
func (c *conn) auditQueued(f *faults) {
	var todo []job
	for r := c.query(queuedTasks, f.most.tasks); r.next(); {
		if r.bool(1) && len(f.places) < f.most.wrong {
			f.places = append(f.places, r.int(0))
		}
		if r.bool(4) {
			todo = append(todo, job{kind: jobClose, ref: r.int(2)})
		}
		if r.bool(5) {
			todo = append(todo, job{kind: jobDrop, ref: r.int(3)})
		}
	}
	for _, j := range todo {
		c.note(f, j.kind, j.ref)
	}
}

// note has a job noted if it is not.
func (c *conn) note(f *faults, kind, ref int64) {
	j := job{kind: kind, ref: ref}
	if !slices.ContainsFunc(f.noted, func(o job) bool { return o.kind == kind && o.ref == ref }) && !c.noted(kind, ref) {
		f.noted = append(f.noted, j)
	}
}

func (c *conn) noted(kind, ref int64) bool {
	return c.query("SELECT 1 FROM jobs WHERE kind = ? AND ref = ?", kind, ref).one()
}

// auditJobs finds releases of what has not finished, and tasks of abandoned plans that nobody deletes.
func (c *conn) auditJobs(f *faults) {
	f.jobs = c.query(`SELECT j.seq FROM jobs AS j LEFT JOIN tasks AS t ON t.n = j.ref WHERE j.kind = ? AND coalesce(t.outcome, 0) = 0
		LIMIT ? + 0`, jobRelease, f.most.wrong).numbers()
	for _, n := range c.query(`SELECT n FROM plans INDEXED BY plans_abandoned WHERE state = -6 AND leaving = 0
		AND EXISTS (SELECT 1 FROM tasks INDEXED BY tasks_plan WHERE tasks.plan = plans.n) LIMIT ? + 0`, f.most.wrong).numbers() {
		c.note(f, jobForget, n)
	}
}

// heldApart are the held tasks of no plan, by what they are said to wait for.
var heldApart = []string{inApart, inRoot + " AND plan = 0", inDelay + " AND plan = 0"}

// auditApart looks at the held tasks of no plan, unless a retry is being made that some may wait for.
func (c *conn) auditApart(f *faults) {
	if c.query("SELECT 1 FROM retries LIMIT 1").one() {
		return
	}
	for _, from := range heldApart {
		var held []taskRow
		for r := c.query("SELECT "+taskColumns+" FROM tasks AS t "+from+" LIMIT ? + 0", f.most.held); r.next(); {
			held = append(held, r.task())
		}
		c.auditTasks(f, nil, held)
	}
}

// openPlans are the plans that have not ended, and of which no retry is being made.
const openPlans = "SELECT " + planColumns + " FROM plans INDEXED BY plans_open WHERE ended = 0 AND leaving = 0 AND retry = 0 AND n >= ? ORDER BY n LIMIT 100"

// auditPlans looks at the plans that have not ended, until that is enough for one sweep.
func (c *conn) auditPlans(f *faults, at auditing) {
	var plans []*planRow
	for r := c.query(openPlans, at.plan); r.next(); {
		plans = append(plans, r.plan())
	}
	passed := 0
	for _, p := range plans {
		if passed >= f.most.tasks || len(f.held) >= f.most.wrong {
			f.next = auditing{on: true, plan: p.n}
			return
		}
		past := []byte{}
		if p.n == at.plan && at.past != nil {
			past = at.past
		} else {
			passed += c.auditCounts(f, p)
		}
		if past = c.auditHeld(f, p, past); past != nil {
			f.next = auditing{on: true, plan: p.n, past: past}
			return
		}
	}
	if len(plans) == 100 {
		f.next = auditing{on: true, plan: plans[99].n + 1}
	}
}

// auditCounts counts the tasks of a plan, and returns how many there are. A large plan is counted while none of its tasks is queued or claimed:
// else its end, for which the counts are there, is far.
func (c *conn) auditCounts(f *faults, p *planRow) (total int) {
	if r := c.query("SELECT count(*) FROM tasks INDEXED BY tasks_plan WHERE plan = ?", p.n); r.one() {
		total = int(r.int(0))
	}
	if total > f.most.tasks && (c.query("SELECT 1 FROM tasks "+inMine+" AND plan = ? LIMIT 1", p.n).one() ||
		c.query("SELECT 1 FROM tasks "+inReady+" AND plan = ? LIMIT 1", p.n).one()) {
		return total
	}
	var are plan.Counts
	for r := c.query("SELECT status, reason, flags & ?, count(*) FROM tasks INDEXED BY tasks_plan WHERE plan = ? GROUP BY 1, 2, 3", flagContinue|flagItems, p.n); r.next(); {
		t := taskRow{status: plan.Status(r.int(0)), reason: plan.Reason(r.text(1)), flags: r.int(2)}
		rules.Count(&are, t.counted(), int(r.int(3)))
	}
	if missing := are.Plus(p.Counts, -1); missing != (plan.Counts{}) || are.Settled() && (p.State == plan.PlanRunning || p.Closing != plan.Open) {
		f.counts[p.ID] = missing
	}
	return total
}

const (
	partOf = "SELECT id FROM tasks INDEXED BY tasks_plan WHERE plan = ? AND id > ? ORDER BY id LIMIT 1 OFFSET ? + 0"
	heldOf = "SELECT " + taskColumns + `, b.parents FROM tasks AS t INDEXED BY tasks_plan CROSS JOIN bodies AS b ON b.n = t.n
		WHERE t.plan = ? AND t.id > ? AND t.id <= ? AND t.` + isHeld + ` ORDER BY t.id LIMIT ? + 0`
)

// lastID is behind all ids.
var lastID = bytes.Repeat([]byte{0xff}, 16)

// auditHeld looks at held tasks of a plan behind one, and returns behind which one to go on; nil: that was all.
func (c *conn) auditHeld(f *faults, p *planRow, past []byte) []byte {
	var next []byte
	until := lastID
	if r := c.query(partOf, p.n, past, f.most.tasks); r.one() {
		until = r.bytes(0)
		next = until
	}
	var held []taskRow
	edges := 0
	r := c.query(heldOf, p.n, past, until, f.most.held)
	for edges < f.most.edges && r.next() {
		held = append(held, r.task())
		edges += int(r.int(taskWidth))
	}
	r.close()
	if len(held) == f.most.held || edges >= f.most.edges {
		next = held[len(held)-1].id.ID[:]
	}
	c.auditTasks(f, p, held)
	return next
}

// auditTasks finds those of some held tasks of a plan, or of none, with which something is wrong.
func (c *conn) auditTasks(f *faults, p *planRow, held []taskRow) {
	if p != nil && p.Closing != plan.Open {
		all := len(held)
		if held = slices.DeleteFunc(held, func(r taskRow) bool { return !r.is(flagExpanded) }); len(held) < all {
			c.note(f, jobClose, p.n)
		}
	}
	if len(held) == 0 {
		return
	}
	k := c.knownOf(held)
	for i := range held {
		r := &held[i]
		if of := k.of[r.of]; of != nil && rules.StopsItems(of.status, of.cancel) {
			c.note(f, jobDrop, r.of)
		} else if len(f.held) < f.most.wrong && !c.right(k, p, r) {
			f.held = append(f.held, r.n)
		}
	}
}

// right reports whether a held task waits for something that will come to it, and its row and its join say for what.
func (c *conn) right(k *facts, p *planRow, r *taskRow) bool {
	w := rules.Waiter{
		Status: r.status, When: r.rule, All: true, Early: r.notBefore != 0, Making: r.is(flagExpanding), Made: r.is(flagExpanded), InPlan: p != nil,
	}
	if p != nil {
		w.State, w.Closing = p.State, p.Closing
	}
	noted := false
	switch of := k.of[r.of]; {
	case w.Making || w.Made:
		are := c.countItems(r)
		if c.storedForeach(r.n) != are {
			return false
		}
		w.Items.Left, noted = int(are.undone), c.noted(jobItems, r.n)
	case of != nil:
		w.Item, w.Alone, noted = true, !of.is(flagExpanded), r.hold == forOthers && c.noted(jobOpen, r.of)
	case len(k.parents[r.n]) > 0:
		g := k.join(r)
		if k.joins[r.n] != g {
			return false
		}
		w.Seen, w.All = g.seen(), g.waiting() == 0
	}
	waits := w.For(noted)
	if r.hold == forPlan && c.noted(jobRoots, r.plan) {
		return waits != rules.ForParents
	}
	hold, some := holdOf[waits]
	return some && r.hold == hold
}

var holdOf = map[rules.Hold]int64{
	rules.ForParents: forParents, rules.ForInstant: forInstant, rules.ForItems: forItems, rules.ForOthers: forOthers, rules.ForPlan: forPlan,
}

// facts are what says what tasks wait for.
type facts struct {
	parents map[int64][]int64
	ended   map[int64]fact
	joins   map[int64]join     // as they are kept
	of      map[int64]*taskRow // foreach tasks of items
}

func (c *conn) knownOf(held []taskRow) *facts {
	ns := numbers(held)
	k := &facts{parents: c.parentsOf(ns), joins: map[int64]join{}, of: map[int64]*taskRow{}}
	k.ended = c.factsOf(k.parents)
	for r := c.query("SELECT n, waits, bytes, largest FROM gates WHERE n IN (SELECT value FROM json_each(?))", list(ns)); r.next(); {
		k.joins[r.int(0)] = join{child: r.int(0), waits: r.int(1), bytes: r.int(2), largest: r.int(3)}
	}
	for _, r := range c.taskRows(distinct(each(held, func(r *taskRow) int64 { return r.of }))) { // 0 is none's
		k.of[r.n] = &r
	}
	return k
}

// join returns the join of a task as its parents say.
func (k *facts) join(r *taskRow) join { return countParents(r.n, r.rule, k.parents[r.n], k.ended) }

// countItems says how the items of a held foreach task did.
func (c *conn) countItems(r *taskRow) foreachRow {
	f := foreachRow{n: r.n}
	for q := c.query(`SELECT outcome, count(*), sum(CASE outcome WHEN 0 THEN 0 ELSE max(out_len, 4) END) FROM tasks INDEXED BY tasks_of
		WHERE of = ? AND of <> 0 GROUP BY outcome`, r.n); q.next(); {
		f.count(rules.Outcome(q.int(0)), q.int(1), q.int(2))
	}
	f.made = f.items
	if !r.is(flagExpanding) {
		return f
	}
	if q := c.query("SELECT first + json_array_length(CAST(items AS TEXT)) FROM lists WHERE of = ? ORDER BY first DESC LIMIT 1", r.n); q.one() {
		f.undone += q.int(0) - f.items
		f.items = q.int(0)
	}
	return f
}
