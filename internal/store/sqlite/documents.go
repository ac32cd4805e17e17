package sqlite

import (
	"context"
	"fmt"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

var _ store.Documents = (*Store)(nil)

func (s *Store) LimitNode(ctx context.Context, n plan.NodeName, threads *int) (there, changed bool, err error) {
	err = s.write(ctx, func(t *tx) error {
		r := t.query("SELECT max_threads FROM nodes WHERE name = ?", string(n))
		limited := r.one()
		most := 0
		if there = limited; limited {
			most = int(r.int(0))
		} else {
			r = t.query("SELECT 1 FROM instances WHERE gone = 0 AND node = ? AND json_extract(CAST(body AS TEXT), '$.runner') IS NULL LIMIT 1", string(n))
			there = r.one()
		}
		switch {
		case !there:
		case threads == nil:
			changed = t.exec("DELETE FROM nodes WHERE name = ?", string(n)) > 0
		case !limited || most != *threads:
			t.exec("INSERT OR REPLACE INTO nodes (name, max_threads) VALUES (?, ?)", string(n), *threads)
			changed = true
		}
		return nil
	})
	return there, changed, err
}

func (s *Store) QueueViews(ctx context.Context) (views []store.QueueView, err error) {
	err = s.read(ctx, func(c *conn) error {
		at := map[int64]map[plan.Status]int{}
		for r := c.query("SELECT n, id, name, plugin, threads, unlimited FROM queues WHERE " + isQueue + " ORDER BY id"); r.next(); {
			v := store.QueueView{ID: plan.QueueID{ID: r.id(1)}, Name: r.text(2), Plugin: r.text(3), Statuses: map[plan.Status]int{}}
			if threads := int(r.int(4)); threads >= 0 && !r.bool(5) {
				v.Threads = &threads
			}
			at[r.int(0)] = v.Statuses
			views = append(views, v)
		}
		for r := c.query("SELECT queue, status, count(*) FROM tasks GROUP BY queue, status"); r.next(); {
			if counts := at[r.int(0)]; counts != nil {
				counts[plan.Status(r.int(1))] = int(r.int(2))
			}
		}
		return nil
	})
	return views, err
}

func (s *Store) AddQueue(ctx context.Context, name, plugin string) (plan.QueueID, error) {
	made, err := s.CreateQueue(ctx, plan.Queue{Name: name, Plugin: plugin, Threads: threadsUnset})
	return made.ID, err
}

func (s *Store) EditQueue(ctx context.Context, id plan.QueueID, e store.QueueEdit) (changed bool, err error) {
	err = s.write(ctx, func(t *tx) error {
		r := t.query("SELECT n, name, plugin, threads, unlimited, queued FROM queues WHERE id = ? AND "+isQueue, id.ID[:])
		if !r.one() {
			return fmt.Errorf("queue %s: %w", id, plan.ErrNotFound)
		}
		n, name, plugin, threads, unlimited, queued := r.int(0), r.text(1), r.text(2), r.int(3), r.bool(4), r.int(5)
		if e.Name != nil && *e.Name != name {
			if r := t.query("SELECT 1 FROM queues WHERE name = ?", *e.Name); r.one() {
				return fmt.Errorf("queue %q: %w", *e.Name, plan.ErrExists)
			}
			name, changed = *e.Name, true
		}
		if e.Plugin != nil && *e.Plugin != plugin {
			plugin, changed = *e.Plugin, true
		}
		if e.Threads != nil && (unlimited || int64(*e.Threads) != threads) {
			threads, unlimited, changed = int64(*e.Threads), false, true
		}
		if !changed {
			return nil
		}
		t.exec("UPDATE queues SET name = ?, plugin = ?, threads = ?, unlimited = ? WHERE n = ?", name, plugin, threads, unlimited, n)
		if queued > 0 {
			t.queued++ // others may claim now what they could not before
		}
		return nil
	})
	return changed, err
}

// unfinishedOfPlan finds a task of a plan that has not ended in a queue. Plans that have ended have none.
const unfinishedOfPlan = `SELECT t.id, t.name, t.status, whole.id FROM plans AS whole CROSS JOIN tasks AS t INDEXED BY tasks_plan ON t.plan = whole.n
	WHERE whole.ended = 0 AND t.queue = ? AND t.` + isUnfinished + ` LIMIT 1`

// DeleteQueue implements store.Documents. Its row stays under a name that nobody gives one, so that its number is nobody else's.
func (s *Store) DeleteQueue(ctx context.Context, id plan.QueueID) error {
	owed, err := store.OwedOf(ctx, s, id)
	if err != nil {
		return err
	}
	return s.write(ctx, func(t *tx) error {
		n, err := t.queueNumber(id)
		if err != nil {
			return err
		}
		q := t.queue(n)
		var unfinished *plan.Task
		if r := t.query(unfinishedOfPlan, n); r.one() {
			unfinished = &plan.Task{
				ID: plan.TaskID{ID: r.id(0)}, Name: r.text(1), Status: plan.Status(r.int(2)), Plan: plan.PlanID{ID: r.id(3)},
			}
		}
		if err := rules.CheckDeleteQueue(&q.Queue, unfinished, owed); err != nil {
			return err
		}
		t.exec("UPDATE queues SET name = ?, threads = ?, unlimited = 0, settings = '' WHERE n = ?", "\x01"+id.String(), threadsGone, n)
		return nil
	})
}
