package mongodb

import (
	"context"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// An item that others need and that a retry deleted is missing: who needs it waits for the new item with the same index, as
// rules.MissingItem says. The ids of a foreach task's items differ in the index alone. A retry that deletes items notes the id of the
// first one in the foreach task, before it deletes any. A round that meets the id of an item that is not there finds the foreach task by
// that note. A foreach task that notes nothing was deleted.

// tellMissing has those looked at who need items, from an index on, that are not there.
func (r *round) tellMissing(ctx context.Context, first bson.ObjectID, from int) error {
	if first.IsZero() {
		return nil
	}
	needs := itemsFrom(first, from)
	docs, err := wire.Find[taskDoc](ctx, r.tasks, d("needs", needs, "status", plan.Held), wire.Query{Fields: ones("_id"), Hint: indexNeeds})
	if err != nil {
		return err
	}
	if err := r.settleHeld(ctx, idsOfTasks(docs)); err != nil {
		return err
	}
	joins, err := wire.Find[joinDoc](ctx, r.joins, d("needs", wire.Present(needs)), wire.Query{Hint: "needs"})
	if err != nil {
		return err
	}
	return r.releaseJoins(ctx, joins)
}

// noteMissing notes the first items of foreach tasks of a retry whose items are about to be deleted.
func (s *Store) noteMissing(ctx context.Context, retry bson.ObjectID, tasks []taskDoc) error {
	changes := make([]wire.Change, len(tasks))
	for i := range tasks {
		id := tasks[i].ID
		changes[i] = wire.Change{ID: id, Where: d("gate", retry), Update: d("$set", d("missing", itemID(id, 0)))}
	}
	_, err := s.Bulk(ctx, s.tasks, changes)
	return err
}

// remade matches the items that are missing since an earlier retry, and that tasks of a retry make again.
func (s *Store) remade(ctx context.Context, tasks []retriedDoc) (missing []bson.D, err error) {
	var all idList
	for i := range tasks {
		if tasks[i].Anew {
			all = append(all, tasks[i].ID)
		}
	}
	for ids := range slices.Chunk(all, addAtOnce) {
		docs, err := wire.Find[taskDoc](ctx, s.tasks, d("_id", d("$in", ids), "missing", d("$exists", true)), wire.Query{Fields: ones("missing")})
		if err != nil {
			return nil, err
		}
		for i := range docs {
			missing = append(missing, itemsFrom(docs[i].Missing, 0))
		}
	}
	return missing, nil
}
