package model

import (
	"bytes"
	"context"
	"fmt"
	"sort"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

var _ store.Documents = (*Store)(nil)

func (s *Store) LimitNode(ctx context.Context, n plan.NodeName, threads *int) (there, changed bool, err error) {
	err = s.write(ctx, func(tx *tx) error {
		most, limited := tx.maxThreads[n]
		if there = limited; !there {
			for _, i := range tx.instances {
				there = there || i.Node == n && !i.Runner
			}
		}
		switch {
		case !there:
		case threads == nil:
			delete(tx.maxThreads, n)
			changed = limited
		default:
			tx.maxThreads[n] = *threads
			changed = !limited || most != *threads
		}
		return nil
	})
	return there, changed, err
}

func (s *Store) QueueViews(ctx context.Context) (views []store.QueueView, err error) {
	err = s.read(ctx, func() error {
		at := map[plan.QueueID]map[plan.Status]int{}
		for id := range s.queues {
			at[id] = map[plan.Status]int{}
		}
		for _, t := range s.tasks {
			if counts := at[t.Queue]; counts != nil {
				counts[t.Status]++
			}
		}
		for id, q := range s.queues {
			v := store.QueueView{ID: id, Name: q.Name, Plugin: q.Plugin, Statuses: at[id]}
			if threads := q.Threads; !q.Unlimited && !q.unset {
				v.Threads = &threads
			}
			views = append(views, v)
		}
		return nil
	})
	sort.Slice(views, func(a, b int) bool { return bytes.Compare(views[a].ID.ID[:], views[b].ID.ID[:]) < 0 })
	return views, err
}

func (s *Store) AddQueue(ctx context.Context, name, plugin string) (id plan.QueueID, err error) {
	err = s.write(ctx, func(tx *tx) error {
		if tx.named(name) != nil {
			return fmt.Errorf("queue %q: %w", name, plan.ErrExists)
		}
		id.ID = plan.NewID(tx.at)
		q := newQueue(plan.Queue{ID: id, Name: name, Plugin: plugin})
		q.unset, tx.queues[id] = true, q
		return nil
	})
	return id, err
}

func (d *db) named(name string) *queue {
	for _, q := range d.queues {
		if q.Name == name {
			return q
		}
	}
	return nil
}

func (s *Store) EditQueue(ctx context.Context, id plan.QueueID, e store.QueueEdit) (changed bool, err error) {
	err = s.write(ctx, func(tx *tx) error {
		q, ok := tx.queues[id]
		if !ok {
			return fmt.Errorf("queue %s: %w", id, plan.ErrNotFound)
		}
		if e.Name != nil {
			if other := tx.named(*e.Name); other != nil && other != q {
				return fmt.Errorf("queue %q: %w", *e.Name, plan.ErrExists)
			}
			changed = q.Name != *e.Name
			q.Name = *e.Name
		}
		if e.Plugin != nil {
			changed = changed || q.Plugin != *e.Plugin
			q.Plugin = *e.Plugin
		}
		if e.Threads != nil {
			changed = changed || q.unset || q.Unlimited || q.Threads != *e.Threads
			q.Threads, q.Unlimited, q.unset = *e.Threads, false, false
		}
		if changed && q.Queued > 0 {
			tx.notify()
		}
		return nil
	})
	return changed, err
}

func (s *Store) DeleteQueue(ctx context.Context, id plan.QueueID) error {
	owed, err := store.OwedOf(ctx, s, id)
	if err != nil {
		return err
	}
	return s.write(ctx, func(tx *tx) error {
		q, ok := tx.queues[id]
		if !ok {
			return fmt.Errorf("queue %s: %w", id, plan.ErrNotFound)
		}
		var unfinished *plan.Task
		for _, t := range tx.tasks {
			if t.Queue == id && !t.Plan.IsZero() && !t.Status.Finished() {
				unfinished = &t.Task
				break
			}
		}
		if err := rules.CheckDeleteQueue(&q.Queue, unfinished, owed); err != nil {
			return err
		}
		delete(tx.queues, id) // its tasks keep what they need of it
		return nil
	})
}
