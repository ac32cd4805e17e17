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

// isFree says of a finished task of no plan that no task needs it, and that it is in no batch.
const isFree = "t.plan = 0 AND t.of = 0 AND t.ended > 0 AND NOT EXISTS (SELECT 1 FROM kids AS k WHERE k.parent = t.n) AND NOT EXISTS (SELECT 1 FROM rolled AS r WHERE r.task = t.n)"

// overTasks selects free tasks that are kept no longer, of the queues and statuses of a list, each with the instant before which tasks
// ended that may go.
var overTasks = "SELECT " + taskColumns + ", " + logCost + " FROM json_each(?1) AS j CROSS JOIN tasks AS t INDEXED BY tasks_over WHERE " + isFree +
	" AND t.queue = j.value ->> 0 AND " + keptStatus + " = j.value ->> 1 AND " + endedBefore("j.value ->> 2") + " LIMIT ?2 + 0"

// endedBefore says of a task that it ended before an instant, and was not moved there by a jump of the clock.
func endedBefore(at string) string {
	return "t.ended < " + at + " AND t.ended + " + lateBy("t.ended") + " < " + at
}

// logCost is how many rows a task of no plan has at most, but for those of its parents.
const logCost = "1 + (SELECT coalesce(max(seq), 0) FROM logs WHERE task = t.n)"

func (t *tx) Settings(context.Context) (map[int64]plan.QueueSettings, error) {
	settings := map[int64]plan.QueueSettings{}
	for r := t.query("SELECT n, settings FROM queues"); r.next(); {
		settings[r.int(0)] = plan.QueueSettingsOf(r.text(1))
	}
	return settings, nil
}

func (t *tx) Groups(context.Context) ([]plan.Group, error) { return t.groups(), nil }

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
	t.deleteRows(chunk)
	return len(chunk), nil
}

// itemsOf selects the items of a foreach task.
const itemsOf = "SELECT " + taskColumns + `, 1 + (SELECT coalesce(max(seq), 0) FROM logs WHERE task = t.n)
	FROM tasks AS t INDEXED BY tasks_of WHERE t.of = ? AND t.of <> 0 LIMIT ? + 0`
