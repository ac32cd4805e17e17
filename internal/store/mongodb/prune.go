package mongodb

import (
	"context"
	"iter"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/engine"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// DeletePlan implements store.Admin.
func (s *Store) DeletePlan(ctx context.Context, id plan.PlanID, budget int) (more bool, err error) {
	err = s.inRound(ctx, budget, func(r *round) error {
		more, err = engine.DeletePlan(ctx, r, id, budget)
		return err
	})
	return more, err
}

// Prune implements store.Admin. The server gives freed room back by itself.
func (s *Store) Prune(ctx context.Context, keep time.Duration, budget int) (plans int, more bool, err error) {
	err = s.inRound(ctx, budget, func(r *round) error {
		plans, more, err = engine.Prune(ctx, r, keep, budget)
		return err
	})
	return plans, more, err
}

// ToDelete implements engine.Deleter.
func (r *round) ToDelete(ctx context.Context, id plan.PlanID) (*planDoc, error) {
	return r.plan(ctx, id)
}

// Deletion implements engine.Deleter.
func (r *round) Deletion(p *planDoc) rules.Deletion {
	return rules.Deletion{Title: p.title(), State: p.State, Retrying: !p.Retry.IsZero(), Begun: p.Deleting}
}

// NeededBy implements engine.Deleter.
func (r *round) NeededBy(ctx context.Context, p *planDoc) (*plan.Task, error) {
	if p.Shared == 0 {
		return nil, nil
	}
	by, err := wire.FindOne[taskDoc](ctx, r.tasks, d("plans", p.ID, "open", true, "status", d("$in", openStatuses)),
		wire.Query{Fields: ones("status"), Hint: indexNeeded})
	if err != nil || by == nil {
		return nil, err
	}
	return &plan.Task{ID: taskID(by.ID), Status: by.Status}, nil
}

// BeginDeletion implements engine.Deleter. It marks the plan unless it is retried at this moment, or has
// come to be needed.
func (r *round) BeginDeletion(ctx context.Context, p *planDoc) (bool, error) {
	return r.UpdateOne(ctx, r.plans, d("_id", p.ID, "state", p.State, "edits", p.Edits, "shared", wire.OrNone(p.Shared), "retry", nil),
		d("$set", d("deleting", true, "until", r.at)))
}

// DeleteEmpty implements engine.Deleter.
func (r *round) DeleteEmpty(ctx context.Context, p *planDoc) error {
	if err := r.Upsert(ctx, r.runs, d("_id", p.Name), d("$max", d("run", p.Run))); err != nil {
		return err
	}
	_, err := r.Remove(ctx, r.plans, d("_id", p.ID))
	return err
}

// ExpiredPlans implements engine.Expirer.
func (r *round) ExpiredPlans(ctx context.Context, byDefault time.Duration) iter.Seq2[*planDoc, error] {
	return func(yield func(*planDoc, error) bool) {
		if r.eachPlan(ctx, "until", d("until", d("$lt", r.at)), yield) && byDefault > 0 {
			r.eachPlan(ctx, "ended", d("ended", d("$lt", r.at.Add(-byDefault)), "keep", nil, "deleting", nil), yield)
		}
	}
}

// eachPlan yields plans in the order of an index, while it may. It reads no more at once than the
// budget may delete, and passes by the plans that cost nothing, because they stayed.
func (r *round) eachPlan(ctx context.Context, index string, match bson.D, yield func(*planDoc, error) bool) (all bool) {
	q := wire.Query{
		Fields: ones("name run state edits ended shared deleting retry"),
		Hint:   index, Sort: d(index, 1),
	}
	for {
		q.Limit = max(1, min(r.budget, deleteAtOnce))
		docs, err := wire.Find[planDoc](ctx, r.plans, match, q)
		if err != nil {
			return yield(nil, err)
		}
		for i := range docs {
			before := r.budget
			if !yield(&docs[i], nil) {
				return false
			}
			if r.budget == before {
				q.Skip++
			}
		}
		if len(docs) < q.Limit {
			return true
		}
	}
}

// DeleteTasks implements engine.Deleter.
func (r *round) DeleteTasks(ctx context.Context, p *planDoc) (done bool, err error) {
	for r.budget > 0 {
		docs, err := wire.Find[taskDoc](ctx, r.tasks, d("plan", p.ID), wire.Query{Fields: ones("_id"), Hint: indexList, Limit: min(deleteAtOnce, r.budget)})
		if err != nil || len(docs) == 0 {
			return err == nil, err
		}
		if err := r.forgetTasks(ctx, idsOfTasks(docs)); err != nil {
			return false, err
		}
		r.budget -= len(docs)
	}
	return false, nil
}
