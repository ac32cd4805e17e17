package model

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/balance"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

var _ store.Balance = (*Store)(nil)

func (s *Store) Hold(ctx context.Context, role protocol.Role, i plan.InstanceID) (held bool, err error) {
	err = s.write(ctx, func(tx *tx) error {
		if _, err := tx.instance(i); err != nil {
			return err
		}
		if _, there := tx.instances[tx.holders[role]]; !there {
			tx.holders[role] = i
		}
		held = tx.holders[role] == i
		return nil
	})
	return held, err
}

func (s *Store) Balance(ctx context.Context) (json.RawMessage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.balance, ctx.Err()
}

func (s *Store) SetBalance(ctx context.Context, settings json.RawMessage) error {
	return s.write(ctx, func(tx *tx) error {
		document, err := balance.With(tx.balance, settings)
		if err == nil {
			tx.balance = document
		}
		return err
	})
}

func (s *Store) SetThreads(ctx context.Context, was plan.Queue, threads int) error {
	return s.write(ctx, func(tx *tx) error {
		there, ok := tx.queues[was.ID]
		if !ok {
			return fmt.Errorf("queue %s: %w", was.ID, plan.ErrNotFound)
		}
		change, err := rules.CheckThreads(there.Queue, was, threads)
		if !change || err != nil {
			return err
		}
		there.Threads, there.Unlimited, there.unset = threads, false, false
		if there.Queued > 0 {
			tx.notify()
		}
		return nil
	})
}
