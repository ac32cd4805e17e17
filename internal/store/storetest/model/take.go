package model

import (
	"context"
	"crypto/rand"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/engine"
)

func (s *Store) Take(ctx context.Context, k protocol.Take) (protocol.ClaimedTask, error) {
	return engine.Take(ctx, &k, func(do func(engine.Taker[*task]) error) error {
		return s.write(ctx, func(tx *tx) error { return do(tx) })
	})
}

func (tx *tx) ToTake(_ context.Context, k *protocol.Take) (t *task, v engine.Taken, err error) {
	if tx.by, err = tx.instance(k.Instance); err != nil {
		return nil, v, err
	}
	if t, err = tx.task(k.Task); err != nil {
		return nil, v, err
	}
	from, there := tx.instances[t.Instance]
	return t, engine.Taken{Task: t.Task, By: tx.by.Instance, Other: there && from.Runner}, nil
}

func (tx *tx) Take(ctx context.Context, t *task, start *rules.Step) (taken bool, err error) {
	if from := tx.instances[t.Instance]; from != tx.by {
		delete(from.tasks, t.ID)
		tx.by.tasks[t.ID] = t
		t.Instance = tx.by.ID
		_, _ = rand.Read(t.token[:]) // crypto/rand never fails: it ends the process instead
		tx.touch(t)
	}
	if start != nil {
		err = tx.Start(ctx, []*task{t}, *start)
	}
	return true, err
}

func (tx *tx) Handed(_ context.Context, t *task, _ *protocol.Take) (protocol.ClaimedTask, error) {
	return t.claim(), nil
}
