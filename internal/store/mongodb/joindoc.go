package mongodb

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// joinSize is how many parents, or items, one join stands for. A task with more parents than that waits for joins instead, so that no
// document grows with the fan-in, and finishing one parent reads the others of its join only.
const joinSize = 250

// joinDoc stands for some of what a task waits for, and finishes as a task would.
type joinDoc struct {
	ID    bson.ObjectID   `bson:"_id"`
	Child bson.ObjectID   `bson:"child"`
	Plan  bson.ObjectID   `bson:"plan,omitempty"`
	N     int             `bson:"n"`               // its place among the joins of the child
	Needs []bson.ObjectID `bson:"needs,omitempty"` // parents; of items the ids follow from the place:
	Count int             `bson:"count,omitempty"` // how many items
	Made  int             `bson:"made,omitempty"`  // likewise: see made
	Gen   int             `bson:"gen"`             // counts retries
	// Waits are outcomes that decide nothing before all have finished: none if the rule of the child may have changed since.
	Waits rules.Outcome `bson:"waits,omitempty"`

	Done    bool          `bson:"done,omitempty"`
	Seen    rules.Outcome `bson:"seen,omitempty"`
	Failed  int           `bson:"failed,omitempty"`
	Bytes   int           `bson:"bytes,omitempty"`
	Largest int           `bson:"largest,omitempty"`
}

// bound implements bounded.
func (j *joinDoc) Bound() { wire.Within(&j.N, &j.Count) }

// parentJoin and itemJoin name the joins of a task, so that making them twice makes them once.
func parentJoin(child bson.ObjectID, n int) bson.ObjectID { return itemID(child, n) }

func itemJoin(of bson.ObjectID, n int) bson.ObjectID { return itemID(of, 1<<22|n) }

func itemID(of bson.ObjectID, index int) bson.ObjectID {
	return oid(rules.ItemID(taskID(of), index).ID)
}

// itemIDs are the ids of the items with these indexes: the first of them, and those up to another one.
func itemIDs(of bson.ObjectID, from, to int) idList {
	ids := make(idList, 0, max(0, to-from))
	for i := from; i < to; i++ {
		ids = append(ids, itemID(of, i))
	}
	return ids
}

// childrenOf returns whose joins these are.
func childrenOf(joins []joinDoc) idList {
	return idsFrom(joins, func(j joinDoc) bson.ObjectID { return j.Child })
}

// itemIndex is the number of an item: its id says it, whatever became of its document.
func itemIndex(item bson.ObjectID) int { return rules.ItemIndex(taskID(item)) }

// members returns the ids of what the join stands for.
func (j *joinDoc) members() []bson.ObjectID {
	if j.Count == 0 {
		return j.Needs
	}
	return itemIDs(j.Child, j.N*joinSize, j.N*joinSize+j.Count)
}

// joinParents makes the joins of a task with many parents.
func joinParents(t *taskDoc, when plan.When) []any {
	var joins []any
	for n := 0; n*joinSize < len(t.Needs); n++ {
		joins = append(joins, joinDoc{
			ID: parentJoin(t.ID, n), Child: t.ID, Plan: t.Plan, N: n, Needs: t.Needs[n*joinSize : min((n+1)*joinSize, len(t.Needs))],
			Waits: rules.Waits(when),
		})
	}
	return joins
}

// decides reports whether the child is to be looked at.
func (j *joinDoc) decides() bool { return j.Done || j.Seen&^j.Waits != 0 }

// uncounted is the change that has a join counted again.
func uncounted() bson.D {
	return d("$unset", ones("done seen failed bytes largest"), "$inc", d("gen", 1))
}
