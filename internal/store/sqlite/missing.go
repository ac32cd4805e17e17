package sqlite

import (
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// An item that others need and that a retry deletes is missing: who needs it waits for the new item with the same index, as
// rules.MissingItem says. The new item gets the number of the old one, so that edges and lists of needs stay as they are.

// awaitedItems returns the missing items among so many from an index on, each with its number.
func (t *tx) awaitedItems(of, from int64, count int) map[int64]int64 {
	found := map[int64]int64{}
	for r := t.query("SELECT idx, n FROM missing WHERE of = ? AND idx >= ? AND idx < ?", of, from, from+int64(count)); r.next(); {
		found[r.int(0)] = r.int(1)
	}
	return found
}

// checkAbsent has those told who need items that a foreach task, which has made its items or has ended, does not make any more.
func (t *tx) checkAbsent(of int64) {
	if t.query("SELECT 1 FROM missing WHERE of = ? AND absent = 0 LIMIT 1", of).one() {
		t.add(jobAbsent, of)
	}
}

// tellAbsent tells those who need items that a foreach task does not make any more, as far as the budget reaches.
func (t *tx) tellAbsent(of int64) (done bool) {
	t.flushTasks()
	rows := t.tasks([]int64{of})
	if len(rows) == 0 {
		return true
	}
	r := &rows[0]
	f := plan.Task{ID: r.id, Name: t.named(r).Name, Status: r.status, Expanded: r.is(flagExpanded), Items: int(t.foreach(of).items)}
	type item struct{ index, n int64 }
	var absent []item
	for q := t.query("SELECT idx, n FROM missing WHERE of = ? AND absent = 0 LIMIT ? + 0", of, t.budget); q.next(); {
		if outcome := rules.MissingItem(&f, int(q.int(0))); outcome != 0 {
			absent = append(absent, item{q.int(0), q.int(1)})
		}
	}
	done = len(absent) < t.budget
	t.budget -= len(absent)
	for _, i := range absent {
		t.exec("UPDATE missing SET absent = 1 WHERE of = ? AND idx = ?", of, i.index)
		t.tellGone(i.n, rules.OutcomeSkipped, rules.MissingDetail(&f, int(i.index)))
	}
	return done
}

// absentOf says why a task is skipped, if it needs an item that is not made any more.
func (t *tx) absentOf(n int64) string {
	q := t.query(`SELECT m.idx, m.of, f.id, f.name FROM json_each(?) AS j CROSS JOIN missing AS m ON m.n = j.value CROSS JOIN tasks AS f ON f.n = m.of
		WHERE m.absent = 1 ORDER BY j.key LIMIT 1`, list(t.parentsOf([]int64{n})[n]))
	if !q.one() {
		return ""
	}
	return rules.MissingDetail(&plan.Task{ID: plan.TaskID{ID: q.id(2)}, Name: q.text(3), Items: int(t.foreach(q.int(1)).items)}, int(q.int(0)))
}

// tellGone tells the children of an item that is gone what it counts as; those that are skipped for that have the detail.
func (t *tx) tellGone(n int64, outcome rules.Outcome, detail string) {
	budget := t.budget
	t.budget, t.gone = 1<<30, detail
	t.tell([]parent{{n: n, outcome: outcome}})
	t.budget, t.gone = budget, ""
}

// dropMissing forgets the missing items of foreach tasks that are about to be deleted. A task that
// waits for such an item takes it for cancelled. An item that tasks of no plan need becomes a
// ghost.
func (t *tx) dropMissing(tasks []taskRow) {
	for i := range tasks {
		r := &tasks[i]
		type item struct{ index, n int64 }
		var waits []item
		missing := false
		for q := t.query("SELECT idx, n, absent FROM missing WHERE of = ?", r.n); q.next(); {
			missing = true
			waits = append(waits, item{q.int(0), q.int(1)})
			if q.bool(2) {
				waits[len(waits)-1].n *= -1
			}
		}
		if !missing {
			continue
		}
		name := t.named(r).Name
		for _, m := range waits {
			if m.n > 0 {
				t.tellGone(m.n, rules.OutcomeCancelled, "")
			}
			id := rules.ItemID(r.id, int(m.index))
			t.exec(`INSERT OR IGNORE INTO ghosts (n, id, name) SELECT ?1, ?2, ?3 WHERE EXISTS (SELECT 1 FROM kids AS k CROSS JOIN tasks AS c ON c.n = k.child
				WHERE k.parent = ?1 AND c.plan = 0)`, max(m.n, -m.n), id.ID[:], rules.ItemName(name, int(m.index)))
		}
		t.exec("DELETE FROM missing WHERE of = ?", r.n)
	}
}
