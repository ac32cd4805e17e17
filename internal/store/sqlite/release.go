package sqlite

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/engine"
	"github.com/seed-1177d267/sluice/plan"
)

// A unit looks whether another writer waits after a portion of remembered work. It releases the
// children of tasks that ended now in portions of a family.
const (
	portion = protocol.DefaultBudget / 100
	family  = protocol.DefaultBudget / 4
)

func (t *tx) Budget() *int { return &t.budget }

func (t *tx) Portion() int { return portion }

// Yield implements engine.Worker. Other writers do not wait for what is left of large plans.
func (t *tx) Yield() bool { return t.s.awaited() }

func (t *tx) Release(context.Context) error {
	for t.err == nil {
		switch {
		case len(t.ends) > 0 && t.budget > 0:
			parents := t.ends
			t.ends = nil
			var left []parent
			t.within(family, func() { left = t.tell(parents) })
			t.ends = append(left, t.ends...) // what ended by this comes after what ended before
			if len(left) > 0 && left[0].past != 0 && t.Yield() {
				t.budget = 0 // many small families are told sooner than kept for later
			}
		case !t.flushForeachs():
			return t.err
		}
	}
	return t.err
}

func (t *tx) ReleaseKept(context.Context) (more bool, err error) {
	limit := min(t.budget, max(1, t.kept))
	var kept []parent
	for r := t.query(keptReleases, jobRelease, limit); r.next(); {
		kept = append(kept, parent{job: r.int(0), n: r.int(1), past: r.int(2), outcome: rules.Outcome(r.int(3)), size: r.int(4)})
	}
	if len(kept) == 0 {
		return false, t.err
	}
	left := t.tell(kept)
	told := kept[:len(kept)-len(left)]
	for _, p := range told {
		t.exec("DELETE FROM jobs WHERE seq = ?", p.job)
	}
	t.budget = max(0, t.budget-len(told)) // else one turn would tell all that have no children
	if len(left) > 0 && left[0].past != 0 {
		t.exec("UPDATE jobs SET past = ? WHERE seq = ?", left[0].past, left[0].job)
	}
	t.kept = 8 * (len(kept) - len(left)) // of large families one at a time is enough
	return len(left) > 0 || len(kept) == limit, t.err
}

// keptReleases reads the releases that were left in the order of their seq, and stops at the limit. By the index of (kind, ref) it would
// sort all of them, with their tasks, for each portion.
const keptReleases = `SELECT j.seq, j.ref, j.past, t.outcome, t.out_len FROM jobs AS j NOT INDEXED CROSS JOIN tasks AS t ON t.n = j.ref
	WHERE j.kind = ? ORDER BY j.seq LIMIT ? + 0`

func (t *tx) Keep(ctx context.Context) (more bool, err error) {
	t.keepEnds()
	if t.budget > 0 {
		return t.late, t.err
	}
	children, jobs, err := t.Remembered(ctx)
	return children || jobs, err
}

// keepEnds makes jobs of ended tasks whose children were not released. A task without children
// needs none, and most skipped tasks of a large family have none.
func (t *tx) keepEnds() {
	if len(t.ends) == 0 {
		return
	}
	ns := each(t.ends, func(p *parent) int64 { return p.n })
	parents := map[int64]bool{}
	for r := t.query(withChildren, list(ns)); r.next(); {
		parents[r.int(0)] = true
	}
	for _, p := range t.ends {
		if parents[p.n] {
			t.exec("INSERT OR REPLACE INTO jobs (kind, ref, past) VALUES (?, ?, ?)", jobRelease, p.n, p.past)
		}
	}
	t.ends = t.ends[:0]
}

const withChildren = "SELECT j.value FROM json_each(?) AS j WHERE EXISTS (SELECT 1 FROM kids AS k WHERE k.parent = j.value)"

const (
	// The order of the loops is the order of the parents in the list, and of the children of each: CROSS JOIN keeps it.
	kidsOfMany = `SELECT j.key, k.child, g.waits, g.bytes, g.largest FROM json_each(?) AS j CROSS JOIN kids AS k ON k.parent = j.value
		CROSS JOIN gates AS g ON g.n = k.child LIMIT ? + 0`
	kidsOfOne = `SELECT 0, k.child, g.waits, g.bytes, g.largest FROM kids AS k CROSS JOIN gates AS g ON g.n = k.child
		WHERE k.parent = ? AND k.child > ? ORDER BY k.child LIMIT ? + 0`
)

// tell closes the edges from the first of the parents to their children, as far as the budget reaches, decides about those children
// for whom that was enough, and returns the parents that are left.
func (t *tx) tell(parents []parent) []parent {
	batch := 1
	for batch < len(parents) && parents[0].past == 0 && parents[batch].past == 0 {
		batch++
	}
	var r *rows
	if batch == 1 {
		r = t.query(kidsOfOne, parents[0].n, parents[0].past, t.budget)
	} else {
		r = t.query(kidsOfMany, list(each(parents[:batch], func(p *parent) int64 { return p.n })), t.budget)
	}
	var edges []telling
	last, past := 0, int64(0)
	for r.next() {
		last, past = int(r.int(0)), r.int(1)
		if edges == nil {
			edges = make([]telling, 0, min(t.budget, 4*batch))
		}
		edges = append(edges, telling{join{child: past, waits: r.int(2), bytes: r.int(3), largest: r.int(4)}, &parents[last]})
	}
	slices.SortFunc(edges, func(a, b telling) int { return cmp.Compare(a.child, b.child) })
	joins := make([]join, 0, len(edges))
	for i := range edges {
		e := &edges[i]
		if len(joins) == 0 || joins[len(joins)-1].child != e.child {
			joins = append(joins, e.join)
		}
		g := &joins[len(joins)-1]
		g.close(1, e.parent.outcome)
		g.bytes += e.parent.size
		g.largest = max(g.largest, e.parent.size)
	}
	t.writeJoins(joins)
	t.decideAll(joins)
	if len(edges) < t.budget {
		t.budget -= len(edges)
		return parents[batch:]
	}
	t.budget = 0
	parents[last].past = past
	return parents[last:]
}

// writeJoins writes joins as they are now, many in one statement, which reads none of them again; it sorts them, since neighbours share a
// page.
func (t *tx) writeJoins(joins []join) {
	if len(joins) == 0 {
		return
	}
	sortJoins(joins)
	args := make([]int64, 0, 4*manyJoins)
	for len(joins) > 0 {
		some := 1
		if len(joins) >= manyJoins {
			some = manyJoins
		}
		args = args[:0]
		for _, g := range joins[:some] {
			args = append(args, g.child, g.waits, g.bytes, g.largest)
		}
		t.exec(pick(some == 1, replaceJoin, replaceJoins), args)
		joins = joins[some:]
	}
}

func sortJoins(joins []join) {
	slices.SortFunc(joins, func(a, b join) int { return cmp.Compare(a.child, b.child) })
}

const (
	manyJoins   = 16
	replaceJoin = "REPLACE INTO gates (n, waits, bytes, largest) VALUES (?, ?, ?, ?)"
)

var replaceJoins = replaceJoin + strings.Repeat(", (?, ?, ?, ?)", manyJoins-1)

// decideAll decides about children that wait for their parents, in the order of their numbers.
func (t *tx) decideAll(joins []join) {
	sortJoins(joins)
	var ns []int64
	var settled []*join
	for i := range joins {
		if joins[i].settled() {
			ns = append(ns, joins[i].child)
			settled = append(settled, &joins[i])
		}
	}
	if len(ns) == 0 {
		return
	}
	t.flushUnstarted()
	children, found := make([]taskRow, len(ns)), 0
	t.queryEach(tasksOf, slices.Clone(ns), func(r *rows) {
		row := r.task()
		i, _ := slices.BinarySearch(ns, row.n)
		children[i], found = row, found+1
	})
	if found != len(ns) && t.err == nil {
		t.fail(errJoin)
	}
	waiting := children[:0]
	for i := range children {
		if r := &children[i]; r.waitsFor(forParents) || r.goesAlong() && r.endsWithItems() {
			r.seen, r.all = settled[i].seen(), settled[i].waiting() == 0
			waiting = append(waiting, *r)
		}
	}
	t.settle(waiting)
}

// Waiter implements engine.Settler. To a task that a retry holds up, its plan seems not to run.
func (t *tx) Waiter(r *taskRow) *rules.Waiter {
	w := &t.waiter // of one task at a time
	*w = rules.Waiter{Status: r.status, When: r.rule, Seen: r.seen, All: r.all}
	if r.goesAlong() {
		t.seeAlong(r, w)
	}
	w.Finally = r.is(flagFinally)
	if r.held() && t.holdsUp(r) {
		w.InPlan, w.State = true, plan.PlanSubmitting
		return w
	}
	w.Early, w.Cancel, w.Ran = r.notBefore != 0 && r.notBefore > t.unset(t.now), r.cancel, r.is(flagRan)
	w.Allow = r.allowed()
	w.List, w.Making, w.Made = r.is(flagForeach) && !r.is(flagOnNode), r.is(flagExpanding), r.endsWithItems()
	w.Over, w.Leaves = r.over, r.is(flagLeaves)
	if w.Item = r.of != 0; r.stopped != nil {
		w.Stopped, w.Of, w.OfWhy = true, r.stopped.status, r.stopped.reason
	}
	if w.Made {
		f := t.foreach(r.n)
		w.Items = rules.Items{Count: int(f.items), Left: int(f.undone), Failed: int(f.failed), Seen: f.seen, Allowed: t.allowedFailures(r, f)}
	}
	if p := t.plan(r.plan); p != nil {
		w.InPlan, w.State, w.Closing, w.Ending = true, p.State, p.Closing, p.Ending
	}
	return w
}

// Wait implements engine.Settler. A job makes the items of a foreach task.
func (t *tx) Wait(_ context.Context, r *taskRow, next rules.Next) error {
	switch next {
	case rules.Ready:
		t.hold(r, forPlan)
	case rules.Delay:
		t.hold(r, forInstant)
	}
	return t.err
}

// hold leaves a held task held, for something else than before.
func (t *tx) hold(r *taskRow, by int64) {
	if r.hold != by {
		t.exec("UPDATE tasks SET gate = ? WHERE n = ?", by, r.n)
		r.hold = by
	}
}

// Deliver implements engine.Settler. Readers and claims put the params of a task together.
func (t *tx) Deliver(_ context.Context, r *taskRow) (why, err error) {
	if r.is(flagBadParams) {
		_, why = rules.Deliver(t.body(r).params, nil)
	}
	return why, t.err
}

func (t *tx) Step(_ context.Context, r *taskRow, s rules.Step) error {
	t.step(r, s)
	return t.err
}

// Written implements engine.Settler. The transaction writes what it gathered at its end.
func (t *tx) Written(context.Context) error { return t.err }

// endPlans ends the plans in which nothing is unfinished any more, or releases their tasks of finally.
// Then others may have ended since, and more is true.
func (t *tx) endPlans() (more bool) {
	for _, p := range t.plans {
		if t.settled(p) { // else nothing else matters
			t.fail(engine.EndPlan(t.ctx, t, p))
		}
	}
	if more = t.begun > t.worked && t.err == nil; more {
		t.worked = t.begun
		t.work()
	}
	return more
}

// settled reports whether nothing of a plan is unfinished, as Finished says.
func (t *tx) settled(p *planRow) bool {
	if v := t.PlanView(p); !v.Holds() || v.Retrying || p.Counts.Gathering > 0 || p.Counts.Unfinished() > p.Counts.Held {
		return p.Counts.Settled()
	}
	r := t.query("SELECT count(*) FROM tasks INDEXED BY tasks_finally WHERE "+isForEnd+" AND plan = ?", p.n)
	return r.one() && r.int(0) == int64(p.Counts.Held)
}

func (t *tx) PlanView(p *planRow) engine.PlanView {
	return engine.PlanView{State: p.State, Closing: p.Closing, OnFailure: p.OnFailure, Retrying: p.retry != 0, Finally: p.Finally, Ending: p.Ending}
}

func (t *tx) ClosePlan(_ context.Context, p *planRow, closing plan.Closing) (closed bool, err error) {
	p.Closing = closing
	t.touch(p)
	t.drop(jobClose, p.n) // a person's reason takes the place of a failure's, from the start
	t.add(jobClose, p.n)
	if closing.Stops() {
		t.cancelActive("plan", p.n)
	}
	return true, t.err
}

func (t *tx) Finished(_ context.Context, p *planRow) (all, broken, cancelled bool, err error) {
	all = t.settled(p)
	counts := p.Counts
	if v := t.PlanView(p); all && v.Holds() && p.Edits > 0 && counts.Broken()+counts.Cancelled > 0 {
		for _, r := range t.keptFinally(p) {
			rules.Count(&counts, r.counted(), -1)
		}
	}
	return all, counts.Broken() > 0, counts.Cancelled > 0, t.err
}

// keptFinally returns the tasks of finally that have ended, of a plan that holds such tasks. Only a retry
// for lists leaves them so. No index has them, so it reads all tasks of the plan.
func (t *tx) keptFinally(p *planRow) (kept []taskRow) {
	for r := t.query("SELECT "+taskColumns+" FROM tasks AS t INDEXED BY tasks_plan WHERE t.plan = ? AND t.flags & ? <> 0 AND t.outcome <> 0", p.n, int64(flagFinally)); r.next(); {
		kept = append(kept, r.task())
	}
	return kept
}

func (t *tx) BeginFinally(_ context.Context, p *planRow, ending plan.Lifecycle) error {
	if p.Closing != plan.Open {
		t.exec("UPDATE plans SET def = CAST(json_set(coalesce(CAST(def AS TEXT), '{}'), '$.stopped', ?) AS BLOB) WHERE n = ?", string(p.Closing), p.n)
	}
	p.Ending, p.Closing = ending, plan.Open
	t.begun, t.told = t.begun+1, true
	t.touch(p)
	t.add(jobRoots, p.n)
	return t.err
}

func (t *tx) EndPlan(_ context.Context, p *planRow, state plan.Lifecycle) error {
	p.State, p.Ended = state, t.at
	t.ended, t.told = append(t.ended, protocol.EndedPlan{ID: p.ID, State: p.State}), t.told || p.Own
	t.touch(p)
	return t.err
}

// cancelActive marks claimed and running tasks for their nodes to stop: those of which a column has the value.
func (t *tx) cancelActive(column string, value int64) {
	ns := t.fresh("SELECT n FROM tasks "+inMine+" AND cancel = 0 AND "+column+" = ?", value).numbers()
	t.execEach("UPDATE tasks SET cancel = 1, modified = ? WHERE n", ns, t.now)
	t.changed = append(t.changed, ns...)
}

// Remembered implements engine.Worker. Mostly there is nothing.
func (t *tx) Remembered(context.Context) (children, jobs bool, err error) {
	r := t.query("SELECT EXISTS (SELECT 1 FROM jobs WHERE kind = 1), EXISTS (SELECT 1 FROM jobs WHERE kind > 1)")
	if !r.one() {
		return false, false, t.err
	}
	t.jobs = r.bool(1)
	return r.bool(0), t.jobs, t.err
}

// recount looks at the parents of tasks anew, and writes and returns their joins.
func (t *tx) recount(children []int64) []join {
	parents := t.parentsOf(children)
	facts := t.factsOf(parents)
	var joins []join
	for r := t.query("SELECT g.n, t.rule, t.of = 0 AND t.flags & ? <> 0 FROM gates AS g CROSS JOIN tasks AS t ON t.n = g.n WHERE g.n IN (SELECT value FROM json_each(?))", flagAlong, list(children)); r.next(); {
		joins = append(joins, countParents(r.int(0), plan.When(r.text(1)), r.bool(2), parents[r.int(0)], facts))
	}
	t.writeJoins(joins)
	return joins
}
