package model

import (
	"context"
	"fmt"
	"maps"

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
	err = s.write(ctx, func(tx *tx) error {
		for _, other := range tx.queues {
			if other.Name == q.Name {
				made, there = other.Queue, true
				made.Queued, made.Active = 0, 0
				return nil
			}
		}
		if err := rules.CheckInGroup(tx.groups, &q); err != nil {
			return err
		}
		if q.ID.IsZero() {
			q.ID.ID = plan.NewID(tx.at)
		}
		q.Queued, q.Active = 0, 0
		if q.Unlimited {
			q.Threads = 0
		}
		tx.queues[q.ID] = newQueue(q)
		made = q
		return nil
	})
	return made, there, err
}

func (s *Store) SetQueue(ctx context.Context, q plan.Queue) error { return s.setQueue(ctx, nil, q) }

func (s *Store) ChangeQueue(ctx context.Context, was, q plan.Queue) error {
	return s.setQueue(ctx, &was, q)
}

// setQueue sets the queue; was is how it was read, nil: that does not matter.
func (s *Store) setQueue(ctx context.Context, was *plan.Queue, q plan.Queue) error {
	return s.write(ctx, func(tx *tx) error {
		there, ok := tx.queues[q.ID]
		if !ok {
			return fmt.Errorf("queue %s: %w", q.ID, plan.ErrNotFound)
		}
		if was != nil {
			if change, err := rules.CheckSettings(&there.Queue, was, &q); !change || err != nil {
				return err
			}
		}
		if err := rules.CheckInGroup(tx.groups, &q); err != nil {
			return err
		}
		if there.Threads, there.Unlimited, there.unset = q.Threads, q.Unlimited, false; q.Unlimited {
			there.Threads = 0
		}
		there.Spent = rules.RateChanged(there.Rate, q.Rate, there.Spent, tx.at)
		there.Pin, there.Ignore, there.NodeThreads, there.QueueSettings = q.Pin, q.Ignore, q.NodeThreads, q.QueueSettings
		there.setSort(q.Sort)
		if there.Queued > 0 {
			tx.notify()
		}
		return nil
	})
}

func (s *Store) SetMaxThreads(ctx context.Context, n plan.NodeName, most int) error {
	return s.write(ctx, func(tx *tx) error {
		if most < 0 {
			delete(tx.maxThreads, n)
		} else {
			tx.maxThreads[n] = most
		}
		return nil
	})
}

func (s *Store) MaxThreads(ctx context.Context) (limits map[plan.NodeName]int, err error) {
	err = s.read(ctx, func() error {
		limits = maps.Clone(s.maxThreads)
		return nil
	})
	return limits, err
}
