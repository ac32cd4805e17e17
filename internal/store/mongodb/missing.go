package mongodb

import (
	"context"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// An item that others need and that a retry deleted is missing: who needs it waits for the new item with the same index, as
// rules.MissingItem says. The ids of a foreach task's items differ in the index alone. A retry that deletes items notes the id of the
// first one in the foreach task, before it deletes any. A round that meets the id of an item that is not there finds the foreach task by
// that note. A foreach task that notes nothing was deleted.

// firstItem returns the id of the item with the index 0 of the same foreach task.
func firstItem(item bson.ObjectID) bson.ObjectID {
	item[9], item[10], item[11] = 0, 0, 0
	return item
}

// itemsFrom matches a list of ids that has one of an item, from an index on, of the foreach task with this first item.
func itemsFrom(first bson.ObjectID, index int) bson.D {
	from, last := first, first
	from[9], from[10], from[11] = byte(index>>16), byte(index>>8), byte(index)
	last[9], last[10], last[11] = 0xff, 0xff, 0xff
	return d("$elemMatch", d("$gte", from, "$lte", last))
}

// missed returns, by the ids of their first items, the foreach tasks that note one, of those of the ids that found has no task of.
func (s *Store) missed(ctx context.Context, ids []bson.ObjectID, found map[bson.ObjectID]*taskDoc) (map[bson.ObjectID]*taskDoc, error) {
	var firsts bson.A
	byFirst := map[bson.ObjectID]*taskDoc{}
	for _, id := range ids {
		if found[id] != nil {
			continue
		}
		first := firstItem(id)
		if _, asked := byFirst[first]; !asked {
			byFirst[first] = nil
			firsts = append(firsts, first)
		}
	}
	if len(firsts) == 0 {
		return nil, nil
	}
	docs, err := find[taskDoc](ctx, s.tasks, d("missing", anyOf(firsts)),
		query{fields: d("name", 1, "status", 1, "gate", 1, "expanded", 1, "items", 1, "missing", 1), hint: indexMissing})
	for i := range docs {
		byFirst[docs[i].Missing] = &docs[i]
	}
	return byFirst, err
}

// missed returns what an item that is not there counts as; 0: who needs it waits. nil is a foreach task that was deleted.
func (t *taskDoc) missed(item bson.ObjectID) plan.Outcome {
	switch {
	case t == nil:
		return rules.MissingItem(nil, 0)
	case !t.Gate.IsZero():
		return 0 // the end of its retry says
	}
	of := plan.Task{Status: t.Status, Expanded: t.Expanded, Items: t.Items}
	return rules.MissingItem(&of, itemIndex(item))
}

// missedName is the name of an item that is not there; its id, if the foreach task was deleted.
func (t *taskDoc) missedName(item bson.ObjectID) string {
	if t == nil {
		return item.Hex()
	}
	return plan.ItemName(t.key(), itemIndex(item))
}

// tellMissing has those looked at who need items, from an index on, that are not there.
func (r *round) tellMissing(ctx context.Context, first bson.ObjectID, from int) error {
	if first.IsZero() {
		return nil
	}
	needs := itemsFrom(first, from)
	docs, err := find[taskDoc](ctx, r.tasks, d("needs", needs, "status", plan.Held), query{fields: d("_id", 1), hint: indexNeeds})
	if err != nil {
		return err
	}
	held := make(bson.A, len(docs))
	for i := range docs {
		held[i] = docs[i].ID
	}
	if err := r.settleHeld(ctx, held); err != nil {
		return err
	}
	joins, err := find[joinDoc](ctx, r.joins, d("needs", present(needs)), query{hint: "needs"})
	if err != nil {
		return err
	}
	return r.releaseJoins(ctx, joins)
}

// noteMissing notes the first items of foreach tasks of a retry whose items are about to be deleted.
func (s *Store) noteMissing(ctx context.Context, retry bson.ObjectID, tasks []taskDoc) error {
	changes := make([]change, len(tasks))
	for i := range tasks {
		id := tasks[i].ID
		changes[i] = change{id, d("gate", retry), d("$set", d("missing", itemID(id, 0)))}
	}
	_, err := s.bulk(ctx, s.tasks, changes)
	return err
}

// remade returns the first items of those tasks of a retry that make their items again, and of which some are missing since an earlier
// retry.
func (s *Store) remade(ctx context.Context, tasks []retriedDoc) (firsts []bson.ObjectID, err error) {
	var all bson.A
	for i := range tasks {
		if tasks[i].Anew {
			all = append(all, tasks[i].ID)
		}
	}
	for ids := range slices.Chunk(all, addAtOnce) {
		docs, err := find[taskDoc](ctx, s.tasks, d("_id", d("$in", ids), "missing", d("$exists", true)), query{fields: d("missing", 1)})
		if err != nil {
			return nil, err
		}
		for i := range docs {
			firsts = append(firsts, docs[i].Missing)
		}
	}
	return firsts, nil
}
