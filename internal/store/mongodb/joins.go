package mongodb

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

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

	Done    bool         `bson:"done,omitempty"`
	Seen    plan.Outcome `bson:"seen,omitempty"`
	Failed  int          `bson:"failed,omitempty"`
	Bytes   int          `bson:"bytes,omitempty"`
	Largest int          `bson:"largest,omitempty"`
}

// parentJoin and itemJoin name the joins of a task, so that making them twice makes them once.
func parentJoin(child bson.ObjectID, n int) bson.ObjectID { return itemID(child, n) }
func itemJoin(of bson.ObjectID, n int) bson.ObjectID      { return itemID(of, 1<<22|n) }

func itemID(of bson.ObjectID, index int) bson.ObjectID {
	return oid(plan.ItemID(taskID(of), index).ID)
}

// members returns the ids of what the join stands for.
func (j *joinDoc) members() []bson.ObjectID {
	if j.Count == 0 {
		return j.Needs
	}
	ids := make([]bson.ObjectID, j.Count)
	for i := range ids {
		ids[i] = itemID(j.Child, j.N*joinSize+i)
	}
	return ids
}

// joinParents makes the joins of a task with many parents.
func joinParents(t *taskDoc) []any {
	var joins []any
	for n := 0; n*joinSize < len(t.Needs); n++ {
		joins = append(joins, joinDoc{
			ID: parentJoin(t.ID, n), Child: t.ID, Plan: t.Plan, N: n, Needs: t.Needs[n*joinSize : min((n+1)*joinSize, len(t.Needs))],
		})
	}
	return joins
}

// joinsOf returns the joins of tasks, those of parents and those of items.
func (r *round) joinsOf(ctx context.Context, children bson.A) (map[bson.ObjectID][]joinDoc, error) {
	if len(children) == 0 {
		return nil, nil
	}
	docs, err := find[joinDoc](ctx, r.joins, d("child", d("$in", children)), query{fields: d("needs", 0)})
	if err != nil {
		return nil, err
	}
	byChild := map[bson.ObjectID][]joinDoc{}
	for _, j := range docs {
		byChild[j.Child] = append(byChild[j.Child], j)
	}
	return byChild, nil
}

// joinsAbout returns the joins that finished tasks are in.
func (r *round) joinsAbout(ctx context.Context, chunk []ended) ([]joinDoc, error) {
	docs, err := find[joinDoc](ctx, r.joins, d("needs", anyOf(keys(chunk))), query{hint: "needs"})
	if err != nil {
		return nil, err
	}
	var ids bson.A
	asked := map[bson.ObjectID]bool{}
	for _, e := range chunk {
		if id := itemJoin(e.of, e.index/joinSize); !e.of.IsZero() && !asked[id] {
			asked[id] = true
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return docs, nil
	}
	of, err := find[joinDoc](ctx, r.joins, d("_id", d("$in", ids)), query{})
	return append(docs, of...), err
}

// releaseJoins looks at the joins that finished tasks are in, and then at the tasks that wait for those.
func (r *round) releaseJoins(ctx context.Context, docs []joinDoc) error {
	if len(docs) == 0 {
		return nil
	}
	var children bson.A
	asked := map[bson.ObjectID]bool{}
	for _, j := range docs {
		if !asked[j.Child] {
			asked[j.Child] = true
			children = append(children, j.Child)
		}
	}
	if err := r.finishJoins(ctx, docs); err != nil {
		return err
	}
	held, err := find[taskDoc](ctx, r.tasks, d("_id", d("$in", children), "status", plan.Held), query{fields: childFields})
	if err != nil {
		return err
	}
	_, err = r.settle(ctx, held)
	return err
}

// finishJoins writes down what the joins have come to. A join was read before its members are: should a retry take one of these back in
// between, the join is of another generation by then and stays as it is.
func (r *round) finishJoins(ctx context.Context, joins []joinDoc) error {
	var ids bson.A
	for i := range joins {
		if !joins[i].Done {
			for _, id := range joins[i].members() {
				ids = append(ids, id)
			}
		}
	}
	if len(ids) == 0 {
		return nil
	}
	docs, err := find[taskDoc](ctx, r.tasks, d("_id", d("$in", ids)), query{fields: d(
		"status", 1, "reason", 1, "coe", 1, "open", 1, "complete", 1, "gate", 1, "mtime", 1, "bytes", 1)})
	if err != nil {
		return err
	}
	byID := make(map[bson.ObjectID]*taskDoc, len(docs))
	for i := range docs {
		byID[docs[i].ID] = &docs[i]
	}
	var changes []change
	for i := range joins {
		if joins[i].Done {
			continue
		}
		now := joins[i].look(byID, r)
		if !now.Done && now.Seen == joins[i].Seen {
			continue
		}
		set := d("seen", now.Seen)
		if now.Done {
			set = append(set, d("done", true, "failed", now.Failed, "bytes", now.Bytes, "largest", now.Largest)...)
		}
		changes = append(changes, change{now.ID, d("gen", now.Gen, "done", nil), d("$set", set)})
	}
	_, err = r.bulk(ctx, r.joins, changes)
	r.budget -= len(changes)
	return err
}

// look says what the join has come to, given its members.
func (j joinDoc) look(byID map[bson.ObjectID]*taskDoc, r *round) joinDoc {
	var w waiter
	w.all = true
	for _, id := range j.members() {
		t := byID[id]
		w.see(t, r)
		if t != nil && t.counted(r.at) && plan.OutcomeOf(t.Status, t.Reason, t.Lenient) == plan.OutcomeFailed {
			j.Failed++
		}
	}
	j.Done, j.Seen, j.Bytes, j.Largest = w.all, w.seen, w.bytes, w.largest
	return j
}
