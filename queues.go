package sluice

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/seed-1177d267/sluice/internal/compiler"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// Queues returns all queues by name, with how many of their tasks are queued and active.
func (s *Store) Queues(ctx context.Context) ([]plan.Queue, error) {
	queues, err := s.shown.Queues(ctx)
	if err == nil {
		err = s.shown.CountQueues(ctx, queues)
	}
	return queues, err
}

// CreateQueue makes a queue and returns it with its ID. A queue needs a Name and a Plugin, and has no
// threads unless it says Threads or Unlimited. A name that is taken is plan.ErrExists.
func (s *Store) CreateQueue(ctx context.Context, q plan.Queue) (plan.Queue, error) {
	if err := cmp.Or(plan.CheckQueueName(q.Name), compiler.CheckPluginName(q.Plugin)); err != nil {
		return plan.Queue{}, fmt.Errorf("queue %q: %w", q.Name, err)
	}
	if err := cmp.Or(checkSettings(&q), s.checkDefault(&q)); err != nil {
		return plan.Queue{}, err
	}
	return s.shown.CreateQueue(ctx, q)
}

func checkSettings(q *plan.Queue) error {
	if err := compiler.CheckDefaults(&q.Defaults); err != nil {
		return fmt.Errorf("defaults of queue %q: %w", q.Name, err)
	}
	if err := q.Rate.Check(); err != nil {
		return fmt.Errorf("rate of queue %q: %w", q.Name, err)
	}
	if q.Weight != 0 {
		if err := plan.CheckWeight(q.Weight); err != nil {
			return fmt.Errorf("queue %q: %w", q.Name, err)
		}
	}
	return nil
}

// checkDefault asks the plugins of the store about the params among the defaults of a queue.
func (s *Store) checkDefault(q *plan.Queue) error {
	if s.plugins == nil {
		return nil
	}
	if _, err := compiler.RefusedDefault(q, s.plugins.Refused); err != nil {
		return fmt.Errorf("defaults of queue %q: %w", q.Name, err)
	}
	return nil
}

// SetQueue changes a queue by its name, and returns the queue as it is then. change gets the queue
// as it is and sets the new values. It is called again if somebody else changes the queue at the
// same time. Name and Plugin stay as they are. Nodes follow with their next claim, and running
// tasks continue. A missing queue is plan.ErrNotFound.
func (s *Store) SetQueue(ctx context.Context, name string, change func(*plan.Queue)) (plan.Queue, error) {
	const tries = 10
	for try := 1; ; try++ {
		was, err := s.queue(ctx, name)
		if err != nil {
			return was, err
		}
		q := was
		change(&q)
		err = checkSettings(&q)
		if err == nil && !bytes.Equal(was.Defaults.Params, q.Defaults.Params) {
			err = s.checkDefault(&q)
		}
		if err != nil {
			return was, err
		}
		if err := s.shown.ChangeQueue(ctx, was, q); !errors.Is(err, plan.ErrConflict) || try == tries {
			return q, err
		}
	}
}

// DeleteQueue deletes a queue by its name. It returns plan.ErrConflict while a task of a plan is in the
// queue that has not finished, or a finished task that is still to be handed over, and plan.ErrNotFound.
// Other tasks stay, and nobody claims them.
func (s *Store) DeleteQueue(ctx context.Context, name string) error {
	q, err := s.queue(ctx, name)
	if err != nil {
		return err
	}
	deleter, ok := s.shown.(store.QueueDeleter)
	if !ok {
		return fmt.Errorf("delete queue %q: %w by this store", name, errors.ErrUnsupported)
	}
	return deleter.DeleteQueue(ctx, q.ID)
}

// queue returns the queue of that name.
func (s *Store) queue(ctx context.Context, name string) (plan.Queue, error) {
	queues, err := s.shown.Queues(ctx)
	if err != nil {
		return plan.Queue{}, err
	}
	for _, q := range queues {
		if q.Name == name {
			return q, nil
		}
	}
	return plan.Queue{}, fmt.Errorf("queue %q: %w", name, plan.ErrNotFound)
}
