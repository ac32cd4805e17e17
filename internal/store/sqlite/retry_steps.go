package sqlite

import (
	"context"
	"encoding/json"
	"time"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/engine"
	"github.com/seed-1177d267/sluice/plan"
)

// The steps of a retry, each of which goes through all of its tasks in any number of transactions. Stored: never renumbered.
const (
	stepMark   = -1 // the tasks of the list are marked; stepFreeze is next
	stepNoted  = 0  // of an earlier version, which died before it had chosen all tasks
	stepFreeze = 1  // finished children that are not taken keep the inputs with which they ran
	stepHold   = 2  // the tasks are held, and their last attempts forgotten
	stepItems  = 3  // items that are made anew are deleted
	stepLook   = 4  // the tasks wait for their parents, or for nothing
	stepBelow  = 5  // so do children that are not taken
	stepOver   = 6
)

// How a retry takes a task. Stored: never renumbered.
const (
	howRemakes = 1 // a foreach task that makes its items anew
	howGoes    = 2 // an item that is deleted for that
	howRan     = 4 // besides: it keeps Ran
	howLeaves  = 8 // an item that is not in its list any more
)

// A step looks at lookAhead times as many tasks as it may change.
var retrySteps = map[int64]func(*retry) bool{
	stepMark: (*retry).markListed, stepFreeze: (*retry).freezeBelow, stepHold: (*retry).hold, stepItems: (*retry).dropItems, stepLook: (*retry).look, stepBelow: (*retry).lookBelow,
}

const (
	fewRetried = 250                   // tasks that a retry takes between two looks at the time,
	longRetry  = 50 * time.Millisecond // and how much of that one transaction uses
)

// few returns how many tasks are taken before the next look at the time.
func (t *tx) few() int { return min(fewRetried, t.s.retrySize) }

// goOn does as much of a retry as the budget allows.
func (r *retry) goOn() {
	for r.budget > 0 && r.err == nil && r.step < stepOver {
		done := false
		r.within(r.few(), func() { done = retrySteps[r.step](r) })
		if done {
			r.step, r.last, r.past = max(r.step+1, stepFreeze), 0, 0
		}
		if time.Since(r.began) > longRetry {
			r.budget = 0
		}
	}
	if r.step == stepOver {
		r.end()
		return
	}
	r.exec("UPDATE retries SET step = ?, task = ?, past = ? WHERE n = ?", r.step, r.last, r.past, r.n)
}

// markListed marks the next tasks of the list. A mark is one small row.
func (r *retry) markListed() (done bool) {
	q := r.query("SELECT task, params FROM retried WHERE retry = ? AND task < 0 ORDER BY task LIMIT 1", r.n)
	if !q.one() {
		return true
	}
	var marks []mark
	r.fail(json.Unmarshal(q.bytes(1), &marks))
	r.mark(r.n, marks)
	r.exec("DELETE FROM retried WHERE retry = ? AND task = ?", r.n, q.int(0))
	r.budget -= max(len(marks)/lookAhead, 1)
	return false
}

// next returns the tasks that come next, at most so many, and how the retry takes them.
func (r *retry) next(most int) (ns []int64, how map[int64]int64) {
	how = map[int64]int64{}
	for q := r.query("SELECT task, how FROM retried WHERE retry = ? AND task > ? ORDER BY task LIMIT ? + 0", r.n, r.last, most); q.next(); {
		ns = append(ns, q.int(0))
		how[q.int(0)] = q.int(1)
	}
	return ns, how
}

// below is a child that a retry does not take.
type below struct {
	n, hold, flags int64
	finished       bool
}

const (
	belowMany = `SELECT j.key, k.child, t.gate, t.flags, t.outcome <> 0, EXISTS (SELECT 1 FROM retried AS x WHERE x.retry = ?2 AND x.task = k.child)
		FROM json_each(?1) AS j CROSS JOIN kids AS k ON k.parent = j.value CROSS JOIN tasks AS t ON t.n = k.child LIMIT ?3 + 0`
	belowOne = `SELECT 0, k.child, t.gate, t.flags, t.outcome <> 0, EXISTS (SELECT 1 FROM retried AS x WHERE x.retry = ?2 AND x.task = k.child)
		FROM kids AS k CROSS JOIN tasks AS t ON t.n = k.child WHERE k.parent = ?1 AND k.child > ?4 ORDER BY k.child LIMIT ?3 + 0`
)

// children hands over the next children that are not taken, and reports whether these were the last ones.
func (r *retry) children(do func([]below)) (done bool) {
	most := lookAhead * r.budget
	next, _ := r.next(most)
	if len(next) == 0 {
		return true
	}
	var q *rows
	if r.past > 0 {
		next = next[:1]
		q = r.query(belowOne, next[0], r.n, most, r.past)
	} else {
		q = r.query(belowMany, list(next), r.n, most)
	}
	var found []below
	edges, last, past := 0, 0, int64(0)
	for q.next() {
		edges++
		last, past = int(q.int(0)), q.int(1)
		if !q.bool(5) {
			found = append(found, below{past, q.int(2), q.int(3), q.bool(4)})
		}
		if len(found) == r.budget {
			q.close()
			break
		}
	}
	if edges == most || len(found) == r.budget {
		if r.past = past; last > 0 {
			r.last = next[last-1]
		}
	} else {
		r.last, r.past = next[len(next)-1], 0
	}
	r.budget -= max(len(found), (len(next)+edges)/(2*lookAhead), 1)
	do(found)
	return false
}

// freezeBelow keeps the inputs of finished children, whose parents are about to lose their outputs.
func (r *retry) freezeBelow() (done bool) {
	return r.children(func(found []below) {
		var ns []int64
		for _, c := range found {
			if c.finished && c.flags&(flagDelivered|flagExpanded) != 0 {
				ns = append(ns, c.n)
			}
		}
		r.freeze(ns)
	})
}

// hold takes tasks back to held and forgets their last attempts.
func (r *retry) hold() (done bool) {
	next, how := r.next(r.budget)
	if len(next) == 0 {
		return true
	}
	r.budget -= len(next)
	r.last = next[len(next)-1]
	rows := r.tasks(next)
	var back []*taskRow
	var ns, remade, ran, leave []int64
	for i := range rows {
		row := &rows[i]
		if how[row.n]&howGoes != 0 {
			continue
		}
		if row.flags &^= flagRan; how[row.n]&howRan != 0 {
			row.flags |= flagRan
			ran = append(ran, row.n)
		}
		if how[row.n]&howLeaves != 0 {
			leave = append(leave, row.n)
		}
		if how[row.n]&howRemakes != 0 {
			remade = append(remade, row.n)
			was := row.counted()
			row.flags &^= flagExpanded | flagItems
			r.countMoved(row, was)
			delete(r.foreachs, row.n)
		}
		back, ns = append(back, row), append(ns, row.n)
	}
	r.fail(engine.Retake(r.ctx, r, back))
	r.flushReset()
	for flag, set := range map[int64][]int64{flagRan: ran, flagLeaves: leave} {
		if len(set) > 0 {
			r.exec("UPDATE tasks SET flags = flags | ? WHERE n IN (SELECT value FROM json_each(?))", flag, list(set))
		}
	}
	if len(remade) > 0 { // nobody sees them with some of their items
		r.exec("UPDATE tasks SET flags = flags & ~ ? WHERE n IN (SELECT value FROM json_each(?))", flagExpanded|flagItems, list(remade))
		r.exec("DELETE FROM foreachs WHERE n IN (SELECT value FROM json_each(?))", list(remade))
	}
	r.rewrite(ns)
	return false
}

// TakenBack implements engine.Retaker. The retry has written down what replaces the task.
func (r *retry) TakenBack(t *taskRow) rules.TakenBack {
	return rules.TakenBack{Status: t.status, Attempt: int(t.attempt), Ran: t.is(flagRan)}
}

func (r *retry) Step(_ context.Context, t *taskRow, s rules.Step) error {
	if s.Noted {
		r.log(t.n, 0, []plan.LogEntry{rules.RetriedEntry(r.at)})
	}
	r.tx.step(t, s)
	return r.err
}

// flushReset forgets what earlier attempts left of tasks that a retry takes. The retry writes what
// replaces their definitions.
func (r *retry) flushReset() {
	if len(r.reset) == 0 {
		return
	}
	all := list(r.reset)
	r.exec(`UPDATE tasks SET `+isHeld+`, gate = ?, flags = flags & ~ ?, outcome = 0, out_len = 0, attempt = 0, token = 0, instance = 0, cancel = 0,
		rescues = 0, not_before = 0, started = 0, ended = 0, reason = NULL, detail = NULL, exit = NULL, output = NULL, modified = ?
		WHERE n IN (SELECT value FROM json_each(?))`, forRetry, flagDelivered|flagGathered|flagExpanding|flagRan|flagLeaves, r.now, all)
	r.dropResults(all)
	for _, table := range []string{"outputs WHERE n", "frozen WHERE n", "lists WHERE of"} {
		r.exec("DELETE FROM "+table+" IN (SELECT value FROM json_each(?))", all)
	}
	r.exec("DELETE FROM jobs WHERE kind IN (?, ?, ?, ?) AND ref IN (SELECT value FROM json_each(?))", jobRelease, jobItems, jobOpen, jobDrop, all)
	r.reset = r.reset[:0]
}

// rewrite changes what a person wrote about tasks.
func (r *retry) rewrite(ns []int64) {
	type change struct {
		n, queue, rank, flags int64
		rule                  plan.When
		def, params           []byte
	}
	var changes []change
	for q := r.query(`SELECT x.task, x.queue, x.rank, x.flags, x.rule, x.def, x.params FROM json_each(?) AS j
		CROSS JOIN retried AS x ON x.retry = ? AND x.task = j.value WHERE x.queue IS NOT NULL`, list(ns), r.n); q.next(); {
		changes = append(changes, change{q.int(0), q.int(1), q.int(2), q.int(3), plan.When(q.text(4)), q.bytes(5), q.bytes(6)})
	}
	const ofDefinition = flagContinue | flagForeach | flagOnNode | flagBadParams | flagBudget
	for _, c := range changes {
		withParents := r.exec("UPDATE gates SET waits = waits & ~ ? | ? WHERE n = ?", neverBits, never(c.rule, c.flags&flagAlong != 0), c.n) > 0
		if _, err := rules.Deliver(c.params, nil); err != nil && withParents {
			c.flags |= flagBadParams
		}
		r.exec("UPDATE tasks SET queue = ?, rank = ?, rule = ?, flags = flags & ~ iif(of = 0, ?, ?) | ?, subject = CAST(? AS TEXT) ->> '$.subject' WHERE n = ?", c.queue, c.rank, orNull(c.rule),
			ofDefinition|flagAlong, ofDefinition, c.flags, c.def, c.n)
		r.exec("UPDATE bodies SET def = ?, params = ? WHERE n = ?", c.def, c.params, c.n)
	}
}

// dropItems deletes the items that are made anew.
func (r *retry) dropItems() (done bool) {
	next, how := r.next(lookAhead * r.budget)
	if len(next) == 0 {
		return true
	}
	for k, n := range next {
		if how[n]&howRemakes != 0 && !r.dropItemsOf(n) {
			if k > 0 {
				r.last = next[k-1]
			}
			return false
		}
	}
	r.last = next[len(next)-1]
	r.budget -= len(next) / lookAhead
	return false
}

// dropItemsOf deletes items of a foreach task, as far as the budget reaches, and reports whether all are gone.
func (r *retry) dropItemsOf(of int64) (done bool) {
	most := r.budget
	found := r.dying(itemsOf, of, most)
	chunk := r.affordable(found)
	r.deleteRows(chunk)
	return len(found) < most && r.budget > 0
}

// look counts the parents of what was taken.
func (r *retry) look() (done bool) {
	next, _ := r.next(r.budget)
	if len(next) == 0 {
		return true
	}
	if r.past > 0 {
		next = next[:1]
	}
	rows := map[int64]taskRow{}
	for _, row := range r.tasks(next) {
		rows[row.n] = row
	}
	var ns, roots, finally []int64
	for k, n := range next {
		row, there := rows[n]
		if there && row.is(flagForeach) && row.is(flagExpanded) {
			if !r.countItems(n) {
				next = next[:k]
				break
			}
		} else if there && row.is(flagFinally) {
			finally = append(finally, n)
		} else if there {
			ns = append(ns, n)
		}
	}
	if len(finally) > 0 {
		r.recount(finally)
		r.exec("UPDATE tasks SET gate = ? WHERE n IN (SELECT value FROM json_each(?))", forEnd, list(finally))
	}
	waits := r.waitAgain(ns)
	for _, n := range ns {
		if !waits[n] {
			roots = append(roots, n)
		}
	}
	r.exec("UPDATE tasks SET gate = ? WHERE n IN (SELECT value FROM json_each(?))", forPlan, list(roots))
	if len(next) > 0 {
		r.last = next[len(next)-1]
	}
	r.budget -= len(next)
	return false
}

// waitAgain has held tasks wait for those of their parents that have not finished, and returns which wait for some.
func (r *retry) waitAgain(ns []int64) map[int64]bool {
	var waiting []join
	blocked := make(map[int64]bool, len(ns))
	var wait []int64
	for _, g := range r.recount(ns) {
		if g.waiting() > 0 {
			blocked[g.child] = true
			waiting, wait = append(waiting, g), append(wait, g.child)
		}
	}
	r.exec("UPDATE tasks SET gate = ? WHERE n IN (SELECT value FROM json_each(?))", forParents, list(wait))
	r.decideAll(waiting)
	return blocked
}

// countItems counts what the items of a foreach task that stay did, as far as the budget reaches, and has it wait for them once all are
// counted.
func (r *retry) countItems(n int64) (done bool) {
	f := r.foreach(n)
	if r.past == 0 {
		*f = foreachRow{n: n}
	}
	most := lookAhead * r.budget
	counted := 0
	for q := r.query(`SELECT t.outcome, CASE t.outcome WHEN 0 THEN 0 ELSE max(t.out_len, 4) END, t.idx FROM tasks AS t INDEXED BY tasks_of
		WHERE t.of = ? AND t.of <> 0 AND t.idx >= ? ORDER BY t.idx LIMIT ? + 0`, n, r.past, most); q.next(); {
		counted++
		f.count(rules.Outcome(q.int(0)), 1, q.int(1))
		r.past = q.int(2) + 1
	}
	r.budget -= counted / lookAhead
	f.made, f.dirty = f.items, true
	if counted == most {
		return false
	}
	r.past = 0
	r.exec("UPDATE tasks SET gate = ? WHERE n = ?", forItems, n)
	r.add(jobOpen, n) // of items that were not queued yet
	return true
}

// lookBelow counts the parents of children that wait and are not taken.
func (r *retry) lookBelow() (done bool) {
	return r.children(func(found []below) {
		var ns []int64
		for _, c := range found {
			if !c.finished && (c.hold == forParents || c.hold == forPlan) {
				ns = append(ns, c.n)
			}
		}
		r.waitAgain(ns)
	})
}
