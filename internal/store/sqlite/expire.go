package sqlite

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/engine"
	"github.com/seed-1177d267/sluice/plan"
)

// defaultKeep is how long a plan, or a task of no plan, is kept after its end where nothing says how long.
const defaultKeep = 30 * 24 * time.Hour

// Expire implements store.Node. Room that it frees is used for what comes. It is given back where there is more of it than of what is kept.
func (s *Store) Expire(ctx context.Context, budget int) (gone protocol.Expired, err error) {
	err = s.write(ctx, func(t *tx) error {
		gone, err = engine.Expire(ctx, t, defaultKeep, budget)
		t.forgetInstances()
		return err
	})
	if err != nil || gone.More {
		return gone, err
	}
	gone.More, err = s.vacuum(ctx, budget, true)
	return gone, err
}

// ExpiredPlans implements engine.Expirer.
func (t *tx) ExpiredPlans(_ context.Context, byDefault time.Duration) iter.Seq2[*planRow, error] {
	old := slices.Concat(t.plansWhere(deletingPlans, t.budget), t.plansWhere(overPlans, t.now, t.budget))
	if byDefault > 0 {
		old = append(old, t.plansWhere(oldPlans, t.at.Add(-byDefault).UnixMicro(), t.budget)...)
	}
	return func(yield func(*planRow, error) bool) {
		for _, p := range old {
			if !yield(p, nil) {
				return
			}
		}
	}
}

// overTasks selects finished tasks of no plan that are kept no longer, of the queues and statuses of a list, each with the instant before
// which tasks ended that may go. A task stays that another one needs, or needs an item of, and one with items that have not finished.
var overTasks = "SELECT " + taskColumns + `, 1 + (SELECT coalesce(max(seq), 0) FROM logs WHERE task = t.n)
	FROM json_each(?1) AS j CROSS JOIN tasks AS t INDEXED BY tasks_over
	WHERE t.plan = 0 AND t.of = 0 AND t.ended > 0 AND t.queue = j.value ->> 0 AND ` + keptStatus + ` = j.value ->> 1 AND t.ended < j.value ->> 2
		AND t.ended + ` + lateBy("t.ended") + ` < j.value ->> 2 AND NOT EXISTS (SELECT 1 FROM kids AS k WHERE k.parent = t.n)
		AND NOT EXISTS (SELECT 1 FROM tasks AS i INDEXED BY tasks_of WHERE i.of = t.n AND i.of <> 0
			AND (i.outcome = 0 OR EXISTS (SELECT 1 FROM kids AS k WHERE k.parent = i.n)))
	LIMIT ?2 + 0`

// CompleteDeletions implements engine.Expirer.
func (t *tx) CompleteDeletions(context.Context) (int, bool, error) { return 0, t.deleteOrphans(), nil }

// Keeps implements engine.Expirer.
func (t *tx) Keeps(context.Context) (map[int64]plan.Keep, error) {
	keeps := map[int64]plan.Keep{}
	for r := t.query("SELECT n, keep FROM queues"); r.next(); {
		keeps[r.int(0)] = r.keep(1)
	}
	return keeps, nil
}

// DeleteExpired implements engine.Expirer. It leaves the items of a foreach task to be deleted after the task.
func (t *tx) DeleteExpired(_ context.Context, limits map[rules.Kept[int64]]time.Duration) (n int, err error) {
	if t.noted(nil) != 0 {
		return 0, nil // it may take some of them
	}
	var before [][3]int64
	for of, limit := range limits {
		before = append(before, [3]int64{of.Queue, int64(of.Status), t.at.Add(-limit).UnixMicro()})
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
	return len(chunk), nil
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
