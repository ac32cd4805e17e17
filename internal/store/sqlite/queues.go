package sqlite

import (
	"context"
	"fmt"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

func (s *Store) CreateQueue(ctx context.Context, q plan.Queue) (plan.Queue, error) {
	made, there, err := s.queueFor(ctx, q)
	if err == nil && there && made.ID != q.ID {
		return plan.Queue{}, fmt.Errorf("queue %q: %w", q.Name, plan.ErrExists)
	}
	return made, err
}

func (s *Store) EnsureQueue(ctx context.Context, q plan.Queue) (plan.Queue, error) {
	made, _, err := s.queueFor(ctx, q)
	return made, err
}

// queueFor returns the queue of that name, and whether it was there already.
func (s *Store) queueFor(ctx context.Context, q plan.Queue) (made plan.Queue, there bool, err error) {
	err = s.write(ctx, func(t *tx) error {
		if r := t.query("SELECT "+queueColumns+" FROM queues WHERE name = ?", q.Name); r.one() {
			made, there = r.queue().Queue, true
			made.Queued, made.Active = 0, 0
			return nil
		}
		if err := t.checkInGroup(&q); err != nil {
			return err
		}
		if q.ID.IsZero() {
			q.ID.ID = plan.NewID(t.at)
		}
		q.Queued, q.Active = 0, 0
		if q.Unlimited {
			q.Threads = 0
		}
		t.exec("INSERT INTO queues (id, name, plugin, threads, unlimited, sort, pin, ignored, node_threads, settings) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
			q.ID.ID[:], q.Name, q.Plugin, q.Threads, q.Unlimited, string(q.Sort), textList(q.Pin), textList(q.Ignore), q.NodeThreads, q.Text())
		made = q
		return nil
	})
	return made, there, err
}

// SetQueue implements store.Admin. A new sort takes what is queued along, all of it at once.
func (s *Store) SetQueue(ctx context.Context, q plan.Queue) error { return s.setQueue(ctx, nil, q) }

func (s *Store) ChangeQueue(ctx context.Context, was, q plan.Queue) error {
	return s.setQueue(ctx, &was, q)
}

// setQueue sets the queue; seen is how it was read, nil: that does not matter.
func (s *Store) setQueue(ctx context.Context, seen *plan.Queue, q plan.Queue) error {
	return s.write(ctx, func(t *tx) error {
		n, err := t.queueNumber(q.ID)
		if err != nil {
			return err
		}
		was := t.queue(n)
		if seen != nil {
			if change, err := rules.CheckSettings(&was.Queue, seen, &q); !change || err != nil {
				return err
			}
		}
		if err := t.checkInGroup(&q); err != nil {
			return err
		}
		if q.Unlimited {
			q.Threads = 0
		}
		t.exec("UPDATE queues SET threads = ?, unlimited = ?, sort = ?, pin = ?, ignored = ?, node_threads = ?, settings = ?, spent = ? WHERE n = ?",
			q.Threads, q.Unlimited, string(q.Sort), textList(q.Pin), textList(q.Ignore), q.NodeThreads, q.Text(),
			micro(rules.RateChanged(was.Rate, q.Rate, was.Spent, t.at)), n)
		if ranked, ranks := was.Sort == plan.SortDefault, q.Sort == plan.SortDefault; ranked != ranks {
			t.exec("UPDATE tasks SET lane = plan * ?1, prio = -rank * ?1 WHERE n IN (SELECT n FROM tasks "+inReady+" AND queue = ?2)",
				pick(ranks, 1, 0), n)
		}
		if was.Queued > 0 {
			t.queued++ // others may claim now what they could not before
		}
		return nil
	})
}

func (s *Store) Queues(ctx context.Context) (out []plan.Queue, err error) {
	err = s.read(ctx, func(c *conn) error {
		for r := c.query("SELECT " + queueColumns + " FROM queues WHERE " + isQueue + " ORDER BY name"); r.next(); {
			q := r.queue().Queue
			q.Queued, q.Active = 0, 0
			out = append(out, q)
		}
		return nil
	})
	return out, err
}

// CountQueues implements store.Reader. Each queue's row has its counts.
func (s *Store) CountQueues(ctx context.Context, queues []plan.Queue) error {
	return s.read(ctx, func(c *conn) error {
		byID := make(map[plan.QueueID]*plan.Queue, len(queues))
		for i := range queues {
			byID[queues[i].ID] = &queues[i]
		}
		for r := c.query("SELECT " + queueColumns + " FROM queues"); r.next(); {
			now := r.queue().Queue
			if q := byID[now.ID]; q != nil {
				q.Queued, q.Active = now.Queued, now.Active
			}
		}
		return nil
	})
}
