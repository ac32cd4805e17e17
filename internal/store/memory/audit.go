package memory

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/engine"
	"github.com/seed-1177d267/sluice/plan"
)

// Audit implements engine.Sweeper. It counts and orders anew all that follows from the states of
// tasks, and looks at each task that has not finished. It takes as long as one look at every task.
func (tx *tx) Audit(ctx context.Context) error {
	if !rules.AuditDue(tx.audited, tx.at) {
		return nil
	}
	tx.audited = tx.at
	tasks := slices.SortedFunc(maps.Values(tx.tasks), func(a, b *task) int { return bytes.Compare(a.ID.ID[:], b.ID.ID[:]) })
	due := make(map[*task]bool, len(tx.due.tasks)-tx.due.head)
	for _, t := range tx.due.tasks[tx.due.head:] {
		due[t] = true
	}
	tx.auditCounts(tasks)
	for _, t := range tasks {
		if t.Status.Active() && tx.instances[t.Instance] == nil {
			tx.mended++
			if err := engine.Lose(ctx, tx, []*task{t}); err != nil {
				return err
			}
		}
	}
	for _, p := range tx.plans {
		if err := engine.EndPlan(ctx, tx, p); err != nil {
			return err
		}
	}
	for _, t := range tasks {
		if !due[t] && t.neglected() {
			tx.mended++
			tx.due.push(t)
		}
	}
	return nil
}

// auditCounts makes the indexes of what waits and is claimed anew, and the counters of tasks, plans and queues.
func (tx *tx) auditCounts(tasks []*task) {
	was := tx.books()
	tx.delays = nil
	for _, i := range tx.instances {
		clear(i.tasks)
	}
	for id, p := range tx.plans {
		p.Counts = plan.Counts{}
		if delete(tx.submitting, id); p.State == plan.PlanSubmitting && p.Closing == plan.Open || p.State == plan.PlanAbandoned && len(p.tasks) > 0 {
			tx.submitting[id] = p
		}
	}
	for _, q := range tx.queues {
		q.Queued, q.Active, q.heads = 0, 0, nil
		clear(q.lanes)
		for id, p := range tx.plans {
			if p.Closing != plan.Open && !p.State.Ended() {
				q.close(id)
			}
		}
	}
	for _, t := range tasks {
		if tx.count(t, 1); !t.Status.Finished() {
			t.look()
			t.recount()
		}
		t.delayed = false
		tx.delay(t)
		switch i := tx.instances[t.Instance]; {
		case t.Status == plan.Queued:
			t.queue.add(t)
		case t.Status.Active():
			if t.queue.Active++; i != nil {
				i.tasks[t.ID] = t
			}
		}
	}
	if now := tx.books(); !maps.Equal(was, now) {
		tx.mended++
	}
}

// books sums up what auditCounts makes anew, so that an audit knows whether it mended anything.
func (tx *tx) books() map[any]any {
	books := map[any]any{"delays": len(tx.delays), "submitting": len(tx.submitting)}
	for _, i := range tx.instances {
		books[i] = len(i.tasks)
	}
	for _, p := range tx.plans {
		books[p] = p.Counts
	}
	for _, q := range tx.queues {
		books[q] = [3]int{q.Queued, q.Active, len(q.heads)}
	}
	for _, t := range tx.tasks {
		if !t.Status.Finished() {
			books[t] = [5]int{t.waiting, int(t.seen), t.done, t.failed, t.bytes}
		}
	}
	return books
}

// neglected reports whether something is to be done with a task that nothing will bring about but a look at it.
func (t *task) neglected() bool {
	if t.Status != plan.Held && t.Status != plan.Queued || t.plan != nil && t.plan.State.Ended() {
		return false
	}
	return t.waiter(time.Time{}).For(false) == rules.ForNothing // a delay that is over ends by itself
}
