package model

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/engine"
	"github.com/seed-1177d267/sluice/plan"
)

func (s *Store) DeletePlan(ctx context.Context, id plan.PlanID, budget int) (more bool, err error) {
	err = s.write(ctx, func(tx *tx) error {
		more, err = engine.DeletePlan(ctx, tx, id, budget)
		return err
	})
	return more, err
}

func (s *Store) Prune(ctx context.Context, keep time.Duration, budget int) (plans int, more bool, err error) {
	err = s.write(ctx, func(tx *tx) error {
		plans, more, err = engine.Prune(ctx, tx, keep, budget)
		return err
	})
	return plans, more, err
}

// Expire implements store.Node: plans, and tasks of queues, that do not say how long are kept for ever.
func (s *Store) Expire(ctx context.Context, budget int) (gone protocol.Expired, err error) {
	err = s.write(ctx, func(tx *tx) error {
		gone, err = engine.Expire(ctx, tx, 0, budget)
		return err
	})
	return gone, err
}

func (tx *tx) ToDelete(_ context.Context, id plan.PlanID) (*planRow, error) {
	if p := tx.plans[id]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("plan %s: %w", id, plan.ErrNotFound)
}

func (tx *tx) Deletion(p *planRow) rules.Deletion {
	return rules.Deletion{Title: p.Title(), State: p.State, Begun: p.deleting}
}

func (tx *tx) BeginDeletion(_ context.Context, p *planRow) (bool, error) {
	p.deleting = true
	return true, nil
}

func (tx *tx) DeleteTasks(_ context.Context, p *planRow) (done bool, err error) {
	for len(p.tasks) > 0 && tx.budget > 0 {
		t := p.tasks[len(p.tasks)-1]
		p.tasks = p.tasks[:len(p.tasks)-1]
		tx.delete(t)
		tx.budget--
	}
	return len(p.tasks) == 0, nil
}

func (tx *tx) DeleteEmpty(_ context.Context, p *planRow) error {
	p.gone = true
	delete(tx.plans, p.ID)
	maps.DeleteFunc(tx.queues, func(_ plan.QueueID, q *queue) bool {
		return q.Name == rules.JobQueue(p.ID) && q.Queued+q.Active == 0
	})
	return nil
}

func (tx *tx) ExpiredPlans(_ context.Context, byDefault time.Duration) iter.Seq2[*planRow, error] {
	return func(yield func(*planRow, error) bool) {
		for _, p := range tx.plans {
			until := rules.KeptUntil(p.Ended, p.Keep, byDefault)
			if (p.deleting || p.State.Ended() && !until.IsZero() && until.Before(tx.at)) && !yield(p, nil) {
				return
			}
		}
	}
}

// CompleteDeletions implements engine.Expirer. A task of no plan goes at once.
func (tx *tx) CompleteDeletions(context.Context) (int, bool, error) { return 0, true, nil }

func (tx *tx) Settings(context.Context) (map[plan.QueueID]plan.QueueSettings, error) {
	settings := map[plan.QueueID]plan.QueueSettings{}
	for id, q := range tx.queues {
		settings[id] = q.QueueSettings
	}
	return settings, nil
}

func (tx *tx) Groups(context.Context) ([]plan.Group, error) { return tx.groups, nil }

func (tx *tx) DeleteExpired(_ context.Context, limits map[rules.Kept[plan.QueueID]]time.Duration) (n int, err error) {
	for _, t := range tx.tasks {
		if tx.budget <= 0 || !tx.expired(t, limits) {
			continue
		}
		tx.delete(t)
		tx.budget--
		n++
	}
	return n, nil
}

// expired reports whether a task of no plan is kept no longer, and nothing in the store needs it, or hands it over.
func (tx *tx) expired(t *task, limits map[rules.Kept[plan.QueueID]]time.Duration) bool {
	limit, limited := limits[rules.KeptAs(t.Queue, t.Status)]
	return t.plan == nil && limited && tx.at.Sub(t.Ended) > limit && tx.free(t)
}

// free reports whether nothing in the store needs a task of no plan, or hands it over.
func (tx *tx) free(t *task) bool {
	_, rolled := tx.rolled[t.ID]
	return !rolled && !slices.ContainsFunc(t.children, func(c *task) bool { return !c.gone })
}

// delete takes a task that nobody runs, and that is not queued, from everywhere but its plan's list.
func (tx *tx) delete(t *task) {
	tx.count(t, -1)
	t.gone, t.log, t.results = true, nil, nil
	tx.delay(t)
	if t.plan != nil {
		delete(t.plan.byName, t.Name)
	}
	delete(tx.tasks, t.ID)
}

// abandon ends submissions that nobody has touched for an hour, and reports whether more is left of them to delete.
func (tx *tx) abandon() (more bool) {
	for id, p := range tx.submitting {
		if tx.at.Sub(p.Modified) < rules.AbandonAfter && p.State == plan.PlanSubmitting {
			continue
		}
		if p.State == plan.PlanSubmitting {
			p.State, p.Ended, p.pack = plan.PlanAbandoned, tx.at, nil
			tx.touchPlan(p)
		}
		if done, _ := tx.DeleteTasks(tx.ctx, p); !done {
			return true
		}
		delete(tx.submitting, id)
	}
	return false
}
