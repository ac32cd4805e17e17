package model

import (
	"context"
	"time"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/engine"
	"github.com/seed-1177d267/sluice/plan"
)

func (s *Store) SetTask(ctx context.Context, id plan.TaskID, c rules.TaskChange) error {
	return s.write(ctx, func(tx *tx) error { return engine.SetTask(ctx, tx, id, &c) })
}

func (tx *tx) TaskToSet(_ context.Context, id plan.TaskID) (t *task, now plan.Task, busy bool, at time.Time, err error) {
	if t, err = tx.task(id); err != nil {
		return nil, now, false, at, err
	}
	return t, t.Task, false, tx.at, nil
}

func (tx *tx) Set(_ context.Context, t *task, s *rules.TaskSet) (done bool, err error) {
	t.Definition, t.NotBefore = s.Definition, s.NotBefore
	if s.Params != nil {
		was := t.Params
		if t.own, t.Params = s.Params, s.Params; t.ready && !t.byRef && len(t.parents) > 0 {
			t.Params, err = rules.KeepInputs(t.own, was)
		}
	}
	if s.Back && err == nil {
		return true, tx.apply(t, s.Step)
	}
	tx.delay(t)
	tx.touch(t)
	tx.due = append(tx.due, t)
	return true, err
}
