package model

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

var _ store.Roller = (*Store)(nil)

func (s *Store) ToRoll(ctx context.Context, q plan.QueueID, limits map[plan.Status]time.Duration, limit int) (found []plan.Task, err error) {
	of := map[rules.Kept[plan.QueueID]]time.Duration{}
	for status, limit := range limits {
		of[rules.KeptAs(q, status)] = limit
	}
	err = s.read(ctx, func() error {
		tx := &tx{db: s.db, at: s.now().UTC()}
		for _, t := range s.tasks {
			if tx.expired(t, of) {
				found = append(found, plan.Task{ID: t.ID, Status: t.Status, Ended: t.Ended})
			}
		}
		slices.SortFunc(found, func(a, b plan.Task) int {
			return cmp.Or(a.Ended.Compare(b.Ended), bytes.Compare(a.ID.ID[:], b.ID.ID[:]))
		})
		found = found[:min(len(found), limit)]
		return nil
	})
	return found, err
}

func (s *Store) BeginBatch(ctx context.Context, id plan.ID, _ plan.QueueID, tasks []plan.Task) (in []plan.TaskID, err error) {
	err = s.write(ctx, func(tx *tx) error {
		for i := range tasks {
			if t := tx.tasks[tasks[i].ID]; t != nil && t.plan == nil && !t.Ended.IsZero() && t.Ended.Equal(tasks[i].Ended) && tx.free(t) {
				tx.rolled[t.ID] = id
			}
		}
		for _, b := range tx.batches() {
			if b.ID == id {
				in = b.Tasks
			}
		}
		return nil
	})
	return in, err
}

// batches returns all batches, the oldest first.
func (d *db) batches() (all []store.Batch) {
	for id, batch := range d.rolled {
		i := slices.IndexFunc(all, func(b store.Batch) bool { return b.ID == batch })
		if i < 0 {
			i, all = len(all), append(all, store.Batch{ID: batch, Queue: d.tasks[id].Queue})
		}
		all[i].Tasks = append(all[i].Tasks, id)
	}
	slices.SortFunc(all, func(a, b store.Batch) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	return all
}

func (s *Store) Batches(ctx context.Context) (all []store.Batch, err error) {
	err = s.read(ctx, func() error {
		all = s.batches()
		return nil
	})
	return all, err
}

func (s *Store) Logs(ctx context.Context, tasks []plan.TaskID) (map[plan.TaskID][]plan.LogEntry, error) {
	logs := map[plan.TaskID][]plan.LogEntry{}
	err := s.read(ctx, func() error {
		for _, id := range tasks {
			if t := s.tasks[id]; t != nil {
				logs[id] = slices.Clone(t.log)
			}
		}
		return nil
	})
	return logs, err
}

func (s *Store) EndBatch(ctx context.Context, id plan.ID, received bool) error {
	return s.write(ctx, func(tx *tx) error {
		for task, batch := range tx.rolled {
			if batch != id {
				continue
			}
			if delete(tx.rolled, task); received {
				tx.delete(tx.tasks[task])
			}
		}
		return nil
	})
}
