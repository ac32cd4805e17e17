package mongodb

import (
	"context"
	"maps"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/engine"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// loseAll takes from an instance that is gone what it had claimed, and gives others the work that it was at. In this order: who takes up a
// note of its endings finds each of them made, or refused. A sweep does the same for what comes later, or if this dies half-way.
func (r *round) loseAll(ctx context.Context, i *instanceDoc) (n int, err error) {
	docs, err := wire.Find[taskDoc](ctx, r.tasks, claimsOf(i), wire.Query{Fields: lostFields})
	if err != nil {
		return 0, err
	}
	lost, err := r.lostOf(ctx, docs)
	if err == nil {
		err = engine.Lose(ctx, r, lost)
	}
	if err != nil {
		return 0, err
	}
	if _, err := r.UpdateMany(ctx, r.work, d("owner", i.ID), d("$unset", ones("owner"))); err != nil {
		return 0, err
	}
	return len(docs), r.forgetNode(ctx, i.Node)
}

// lostOf returns the losses of these tasks, with what their queues say of them.
func (r *round) lostOf(ctx context.Context, docs []taskDoc) ([]*outcome, error) {
	queues, err := r.onLost(ctx, docs)
	lost := outcomesOf(docs)
	for _, o := range lost {
		o.lost, o.queue = true, queues[o.task.Queue]
	}
	return lost, err
}

// writeLosses writes losses, as long as their tasks have the claim and the status with which they
// were read.
func (r *round) writeLosses(ctx context.Context, lost []*outcome) error {
	changes := make([]wire.Change, len(lost))
	for k, o := range lost {
		t := o.task
		changes[k] = wire.Change{ID: t.ID, Where: d("token", wire.OrNone(t.Token), "attempt", wire.OrNone(t.Attempt), "status", t.Status), Update: t.lost(o.Step, r.ClaimView(o).Status)}
		switch {
		case o.Step.Finishes():
			r.queue = append(r.queue, ended{id: t.ID})
			continue
		case !t.Plan.IsZero():
			r.busy[t.Plan], r.returned[t.Plan] = true, true
		}
		r.queued++
	}
	_, misfits, err := r.BulkEach(ctx, r.tasks, changes)
	if err != nil {
		return err
	}
	for _, m := range misfits {
		if err := r.fail(ctx, m.ID, d("status", d("$in", activeStatuses)), "its loss cannot be stored: "+m.Err.Error()); err != nil {
			return err
		}
	}
	r.budget -= len(changes)
	return nil
}

// onLost is what the queues of the tasks say of tasks that are lost.
func (r *round) onLost(ctx context.Context, docs []taskDoc) (map[bson.ObjectID]plan.OnLost, error) {
	said := map[bson.ObjectID]plan.OnLost{}
	for i := range docs {
		said[docs[i].Queue] = plan.OnLostDefault // also of a queue that is not there
	}
	if len(said) == 0 {
		return said, nil
	}
	queues, err := wire.Find[queueDoc](ctx, r.queues, d("_id", d("$in", slices.Collect(maps.Keys(said)))), wire.Query{Fields: ones("onlost")})
	for i := range queues {
		said[queues[i].ID] = queues[i].domain().OnLost
	}
	return said, err
}

// forgetNode deletes the document of a node that has no instance any more. A node that a command embedded is not to stay behind; one that a
// person gave a limit does.
func (r *round) forgetNode(ctx context.Context, n plan.NodeName) error {
	left, err := wire.FindOne[instanceDoc](ctx, r.instances, d("node", n, "gone", nil), wire.Query{Fields: ones("_id")})
	if err == nil && left == nil {
		_, err = r.Remove(ctx, r.nodes, d("node", n, "sluice", true, "maxthreads", nil))
	}
	return err
}

// lostFields are what has to be known of a task to judge its loss.
var lostFields = ones("status plan queue def rank rescues cancel token attempt ours")

// lost is what a loss changes. A task that ends by it stays open until its children are released.
func (t *taskDoc) lost(loss rules.Step, was plan.Status) bson.D {
	u := (&ending{step: loss}).update(was, stillOpen, t.nobody())
	if !loss.Finishes() {
		u.clear("hold", "notbefore", "noticed", "claimed")
	}
	return u.bson()
}
