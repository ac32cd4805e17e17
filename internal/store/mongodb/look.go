package mongodb

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// look looks at the parents of tasks that were added, or taken back, and queues those that can run; it reports whether all were looked at.
func (r *round) look(ctx context.Context, target bson.ObjectID) (done bool, err error) {
	if err := r.readPlans(ctx, []bson.ObjectID{target}); err != nil {
		return false, err
	}
	p := r.known[target] // nil: the target is no plan
	if p != nil && (p.State == plan.PlanSubmitting || !p.Retry.IsZero()) {
		return true, nil // Ready, or the end of the retry, comes back to it
	}
	for r.budget > 0 {
		held, _, err := wire.FindSome[taskDoc](ctx, r.tasks, d("adding", target, "status", plan.Held, "hold", d("$ne", holdAdding)),
			wire.Query{Fields: childFields, Limit: min(r.budget, addAtOnce), Hint: indexAdding})
		if err != nil {
			return false, err
		}
		if len(held) == 0 {
			break
		}
		if err := r.lookAt(ctx, target, held); err != nil {
			return false, err
		}
	}
	if r.budget <= 0 {
		return false, nil
	}
	if p == nil {
		return true, nil
	}
	if !r.busy[target] {
		if err := r.endPlan(ctx, target); err != nil {
			return false, err
		}
	}
	_, err = r.UpdateOne(ctx, r.plans, d("_id", target, "fresh", true), d("$unset", ones("fresh")))
	return true, err
}

// lookAt settles tasks that were added, and takes the mark off those that wait.
func (r *round) lookAt(ctx context.Context, target bson.ObjectID, held []taskDoc) error {
	ids := idsOfTasks(held)
	waiting, err := r.settleJoined(ctx, held)
	if err != nil || waiting == 0 {
		return err
	}
	n, err := r.UpdateMany(ctx, r.tasks, d("_id", d("$in", ids), "adding", target, "status", plan.Held), d("$unset", ones("adding")))
	r.budget -= n
	return err
}

// settleJoined is settle of tasks whose joins are to be looked at first.
func (r *round) settleJoined(ctx context.Context, held []taskDoc) (waiting int, err error) {
	var joined idList
	for i := range held {
		if held[i].Joins > 0 || held[i].Hold == holdItems {
			joined = append(joined, held[i].ID)
		}
	}
	if len(joined) > 0 {
		joins, err := wire.Find[joinDoc](ctx, r.joins, d("child", d("$in", joined)), wire.Query{})
		if err != nil {
			return 0, err
		}
		if _, err := r.finishJoins(ctx, joins); err != nil {
			return 0, err
		}
	}
	return r.settle(ctx, held)
}
