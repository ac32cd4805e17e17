package sqlite

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/seed-1177d267/sluice/plan"
)

// defaultKeep is how long a plan, or a task of no plan, is kept after its end where nothing says how long.
const defaultKeep = 30 * 24 * time.Hour

// Expire implements store.Node. Room that it frees is used for what comes. It is given back where there is more of it than of what is kept.
func (s *Store) Expire(ctx context.Context, budget int) (gone plan.Expired, err error) {
	budget = cmp.Or(max(budget, 0), plan.DefaultBudget)
	err = s.write(ctx, func(t *tx) error {
		t.budget = budget
		if gone.Plans, gone.More = t.expirePlans(defaultKeep, budget); !gone.More {
			gone.Tasks, gone.More = t.expireTasks(defaultKeep)
		}
		t.forgetInstances()
		return nil
	})
	if err != nil || gone.More {
		return gone, err
	}
	if err := s.lock(ctx); err != nil {
		return gone, err
	}
	free, pages := s.number("PRAGMA freelist_count"), s.number("PRAGMA page_count")
	err = s.w.clear()
	s.unlock()
	if err != nil || free <= pages/2 {
		return gone, s.translate(err)
	}
	_, err = s.vacuum(ctx, min(budget, int(2*free-pages)))
	gone.More = true
	return gone, err
}

// expirePlans deletes plans that ended longer ago than they are to be kept.
func (t *tx) expirePlans(keep time.Duration, budget int) (plans int, more bool) {
	old := t.plansWhere(leavingPlans, budget)
	old = append(old, t.plansWhere(overPlans, t.now, budget)...)
	if keep > 0 {
		old = append(old, t.plansWhere(oldPlans, t.now-microsOf(keep), budget)...)
	}
	for _, p := range old {
		if t.budget <= 0 || !t.deletePlan(p) {
			return plans, true
		}
		plans++
	}
	return plans, plans > 0 && len(old) >= budget
}

// microsOf is a time to keep something as it is stored: not 0, which is for ever, for less than a microsecond.
func microsOf(keep time.Duration) int64 { return (keep + time.Microsecond - 1).Microseconds() }

// overTasks selects finished tasks of no plan that are kept no longer, of the queues and statuses of a list, each with the instant before
// which tasks ended that may go. A task stays that another one needs, or needs an item of, and one with items that have not finished.
var overTasks = "SELECT " + taskColumns + `, 1 + (SELECT coalesce(max(seq), 0) FROM logs WHERE task = t.n)
	FROM json_each(?1) AS j CROSS JOIN tasks AS t INDEXED BY tasks_over
	WHERE t.plan = 0 AND t.of = 0 AND t.ended > 0 AND t.queue = j.value ->> 0 AND min(t.status, 2) = j.value ->> 1 AND t.ended < j.value ->> 2
		AND t.ended + ` + lateBy("t.ended") + ` < j.value ->> 2 AND NOT EXISTS (SELECT 1 FROM kids AS k WHERE k.parent = t.n)
		AND NOT EXISTS (SELECT 1 FROM tasks AS i INDEXED BY tasks_of WHERE i.of = t.n AND i.of <> 0
			AND (i.outcome = 0 OR EXISTS (SELECT 1 FROM kids AS k WHERE k.parent = i.n)))
	LIMIT ?2 + 0`

// expireTasks deletes tasks of no plan that ended longer ago than their queue keeps them, as far as the budget reaches. The items of a
// foreach task go after it.
func (t *tx) expireTasks(byDefault time.Duration) (n int, more bool) {
	if !t.deleteOrphans() {
		return 0, true
	}
	if t.noted(nil) != 0 {
		return 0, false // it may take some of them
	}
	var before [][3]int64
	for r := t.query("SELECT n, keep FROM queues"); r.next(); {
		for status, d := range r.keep(1).Limits(byDefault) {
			before = append(before, [3]int64{r.int(0), int64(status), t.now - microsOf(d)})
		}
	}
	text, _ := json.Marshal(before) // numbers have JSON
	chunk := t.affordable(t.dying(overTasks, string(text), t.budget))
	for i := range chunk {
		if chunk[i].is(flagForeach) {
			t.add(jobOrphans, chunk[i].n)
		}
	}
	t.deleteRows(chunk)
	t.deleteOrphans()
	return len(chunk), len(chunk) > 0 || t.budget <= 0 // what these needed may go now
}

// orphans returns the foreach tasks of no plan that are deleted, and whose items are still to go.
func (t *tx) orphans() map[int64]bool {
	of := map[int64]bool{}
	for r := t.query("SELECT ref FROM jobs INDEXED BY sqlite_autoindex_jobs_1 WHERE kind = ?", jobOrphans); r.next(); {
		of[r.int(0)] = true
	}
	return of
}

// deleteOrphans deletes the items of foreach tasks that are gone, as far as the budget reaches, and reports whether all are.
func (t *tx) deleteOrphans() (done bool) {
	for of := range t.orphans() {
		if !t.deleteItems(of) {
			return false
		}
		t.drop(jobOrphans, of)
	}
	return true
}

// itemsOf selects the items of a foreach task.
const itemsOf = "SELECT " + taskColumns + `, 1 + (SELECT coalesce(max(seq), 0) FROM logs WHERE task = t.n)
	FROM tasks AS t INDEXED BY tasks_of WHERE t.of = ? AND t.of <> 0 LIMIT ? + 0`

// deleteItems deletes items of a foreach task that is gone, as far as the budget reaches, and reports whether all are.
func (t *tx) deleteItems(of int64) (done bool) {
	if t.budget <= 0 {
		return false
	}
	if t.query("SELECT 1 FROM tasks WHERE n = ?", of).one() {
		return true // a job for a task that is there is none
	}
	most := t.budget
	found := t.dying(itemsOf, of, most)
	t.deleteRows(t.affordable(found))
	return len(found) < most && t.budget > 0
}
