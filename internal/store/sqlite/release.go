package sqlite

import (
	"cmp"
	"slices"
	"strings"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// parent is a finished task whose children are to be told.
type parent struct {
	n       int64
	outcome plan.Outcome
	size    int64 // of its output
	past    int64 // children up to this n have been told
	job     int64 // seq of the job that keeps it, or 0
}

// portion is how many documents of remembered work are changed before the transaction checks
// whether another writer waits. Then it doubles, because small portions cost more each. For
// children of tasks that ended now it is family at once.
const (
	portion = plan.DefaultBudget / 100
	family  = plan.DefaultBudget / 4
)

// work releases the children of ended tasks, of this transaction and earlier ones, and continues
// other remembered work, within the budget. The rest becomes jobs. work reports whether there is a
// rest.
//
// Children of what ended now go first: that is cheaper than to keep it for later, and a chain beside a large plan does not wait for that.
// But each kind of what was left gets a share of every turn.
func (t *tx) work() (more bool) {
	kept, others := t.jobs()
	share := t.budget / 4
	t.reserve(kept, -share)
	t.reserve(others, -share)
	t.release()
	t.reserve(kept, share)
	for kept && t.budget > 0 && t.err == nil {
		t.some(func() { kept = t.tellKept() })
		t.release()
		t.yield()
	}
	t.reserve(others, share)
	for t.budget > 0 && t.err == nil {
		j, ok := t.nextJob()
		if !ok {
			break
		}
		t.some(func() { t.run(j) })
		t.release()
		t.yield()
	}
	t.keepEnds()
	if t.budget > 0 {
		return false
	}
	kept, others = t.jobs()
	return kept || others
}

func (t *tx) reserve(is bool, share int) {
	if is {
		t.budget += share
	}
}

// some does something with the next portion of the budget.
func (t *tx) some(do func()) {
	t.portion = max(portion, 2*t.portion)
	t.within(t.portion, do)
}

// within does something with a part of the budget.
func (t *tx) within(part int, do func()) {
	rest := max(0, t.budget-part)
	t.budget -= rest
	do()
	t.budget += rest
}

// yield ends the budget if somebody waits for the turn: what is left of large plans is not what others should wait for.
func (t *tx) yield() {
	if t.budget > 0 && t.s.awaited() {
		t.budget = 0
	}
}

// release tells the children of what ended here until all are told or the budget is used up.
func (t *tx) release() {
	for t.err == nil {
		switch {
		case len(t.ends) > 0 && t.budget > 0:
			parents := t.ends
			t.ends = nil
			var left []parent
			t.within(family, func() { left = t.tell(parents) })
			t.ends = append(left, t.ends...) // what ended by this comes after what ended before
			if len(left) > 0 && left[0].past != 0 {
				t.yield() // many small families are told sooner than kept for later
			}
		case !t.flushForeachs():
			return
		}
	}
}

// tellKept tells children that earlier transactions left, and reports whether there may be more of them.
func (t *tx) tellKept() bool {
	limit := min(t.budget, max(1, t.kept))
	var kept []parent
	for r := t.query(keptReleases, jobRelease, limit); r.next(); {
		kept = append(kept, parent{job: r.int(0), n: r.int(1), past: r.int(2), outcome: plan.Outcome(r.int(3)), size: r.int(4)})
	}
	if len(kept) == 0 {
		return false
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
	return len(left) > 0 || len(kept) == limit
}

// keptReleases reads the releases that were left in the order of their seq, and stops at the limit. By the index of (kind, ref) it would
// sort all of them, with their tasks, for each portion.
const keptReleases = `SELECT j.seq, j.ref, j.past, t.outcome, t.out_len FROM jobs AS j NOT INDEXED CROSS JOIN tasks AS t ON t.n = j.ref
	WHERE j.kind = ? ORDER BY j.seq LIMIT ? + 0`

// keepEnds makes jobs of ended tasks whose children were not released. A task without children
// needs none, and most skipped tasks of a large family have none.
func (t *tx) keepEnds() {
	if len(t.ends) == 0 {
		return
	}
	ns := make([]int64, len(t.ends))
	for i := range t.ends {
		ns[i] = t.ends[i].n
	}
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
		ns := make([]int64, batch)
		for i := range ns {
			ns[i] = parents[i].n
		}
		r = t.query(kidsOfMany, list(ns), t.budget)
	}
	var gates []gate
	index := map[int64]int{}
	edges, last, past := 0, 0, int64(0)
	for r.next() {
		edges++
		last, past = int(r.int(0)), r.int(1)
		i, ok := index[past]
		if !ok {
			i = len(gates)
			index[past] = i
			gates = append(gates, gate{child: past, waits: r.int(2), bytes: r.int(3), largest: r.int(4)})
		}
		p, g := &parents[last], &gates[i]
		g.close(1, p.outcome)
		g.bytes += p.size
		g.largest = max(g.largest, p.size)
	}
	t.writeGates(gates)
	t.decideAll(gates)
	if edges < t.budget {
		t.budget -= edges
		return parents[batch:]
	}
	t.budget = 0
	parents[last].past = past
	return parents[last:]
}

// writeGates writes gates as they are now, many in one statement, which reads none of them again; it sorts them, since neighbours share a
// page.
func (t *tx) writeGates(gates []gate) {
	slices.SortFunc(gates, func(a, b gate) int { return cmp.Compare(a.child, b.child) })
	for len(gates) > 0 {
		some := 1
		if len(gates) >= manyGates {
			some = manyGates
		}
		args := make([]any, 0, 4*some)
		for _, g := range gates[:some] {
			args = append(args, g.child, g.waits, g.bytes, g.largest)
		}
		t.exec(pick(some == 1, replaceGate, replaceGates), args...)
		gates = gates[some:]
	}
}

const (
	manyGates   = 16
	replaceGate = "REPLACE INTO gates (n, waits, bytes, largest) VALUES (?, ?, ?, ?)"
)

var replaceGates = replaceGate + strings.Repeat(", (?, ?, ?, ?)", manyGates-1)

// decideAll decides about children that wait for their parents.
func (t *tx) decideAll(gates []gate) {
	var ns []int64
	var settled []*gate
	for i := range gates {
		if gates[i].settled() {
			ns = append(ns, gates[i].child)
			settled = append(settled, &gates[i])
		}
	}
	children := t.tasks(ns)
	if len(children) != len(settled) && t.err == nil {
		t.fail(errGate)
	}
	for i := range children {
		if children[i].status == plan.Held && children[i].gate == gateParents {
			t.decide(&children[i], children[i].rule, settled[i].seen(), settled[i].waiting() == 0)
		}
	}
}

// decide does with a held task as its rule says of its parents, and reports whether that was anything but waiting for more of them.
func (t *tx) decide(r *taskRow, rule plan.When, seen plan.Outcome, all bool) bool {
	if t.holdsUp(r) {
		decided := plan.Decide(rule, seen, all) != plan.Wait
		if decided {
			t.wait(r, gateNone) // it is a root once the retry is over
		}
		return decided
	}
	w := t.waiter(r)
	w.When, w.Seen, w.All, w.Absent = rule, seen, all, t.gone
	if t.again && plan.Decide(rule, seen, all) == plan.Skip {
		w.Absent = t.absentOf(r.n)
	}
	next, step := rules.Settle(w)
	switch next {
	case rules.Ready:
		t.wait(r, gateNone)
	case rules.Delay:
		t.wait(r, gateDelay)
	case rules.End:
		t.step(r, step)
	case rules.Expand:
		t.expandInputs(r)
	case rules.Queue:
		if r.is(flagBadParams) {
			_, err := plan.Deliver(t.body(r).params, nil)
			step = rules.InputFailed(r.status, err)
		}
		t.step(r, step)
	}
	return next != rules.Leave
}

// waiter is what the rules ask of a held or queued task, but for its parents and its items.
func (t *tx) waiter(r *taskRow) *rules.Waiter {
	w := &rules.Waiter{
		Status: r.status, Early: r.notBefore != 0 && r.notBefore > t.unset(t.now), List: r.is(flagForeach) && !r.is(flagOnNode),
		Making: r.is(flagExpanding), Made: r.endsWithItems(), Cancel: r.cancel,
	}
	if p := t.plan(r.plan); p != nil {
		w.InPlan, w.State, w.Closing = true, p.State, p.Closing
	}
	return w
}

// wait leaves a held task held, for something else than before.
func (t *tx) wait(r *taskRow, gate int64) {
	if r.gate != gate {
		t.exec("UPDATE tasks SET gate = ? WHERE n = ?", gate, r.n)
		r.gate = gate
	}
}
