package memory

import (
	"cmp"
	"context"
	"crypto/rand"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// Take implements store.Node.
func (s *Store) Take(ctx context.Context, k plan.Take) (claimed plan.ClaimedTask, err error) {
	var cancelled error // of a task that it ended
	err = s.write(ctx, func(tx *tx) error {
		i, err := tx.instance(k.Instance)
		if err != nil {
			return err
		}
		t, err := tx.task(k.Task)
		if err != nil {
			return err
		}
		from, there := tx.instances[t.Instance]
		if err := rules.CheckTake(&t.Task, &i.Instance, there && from.Runner); err != nil {
			return err
		}
		if cancelled = rules.CheckTakeCancelled(&t.Task); cancelled != nil {
			if err := tx.apply(t, rules.Stopped(t.Status)); err != nil {
				return err
			}
			return tx.work()
		}
		if from != i {
			delete(from.tasks, t.ID)
			i.tasks[t.ID] = t
			t.Instance = i.ID
			_, _ = rand.Read(t.token[:]) // crypto/rand never fails: it ends the process instead
			tx.touch(t)
		}
		if k.Start && t.Status == plan.Claimed {
			t.Started = tx.at
			err = tx.apply(t, rules.Started())
		}
		claimed = t.claim()
		return err
	})
	return claimed, cmp.Or(err, cancelled)
}
