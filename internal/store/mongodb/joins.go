package mongodb

import (
	"context"
	"slices"

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
	// Waits are outcomes that decide nothing before all have finished; older versions did not say.
	Waits plan.Outcome `bson:"waits,omitempty"`

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
func joinParents(t *taskDoc, when plan.When) []any {
	var joins []any
	for n := 0; n*joinSize < len(t.Needs); n++ {
		joins = append(joins, joinDoc{
			ID: parentJoin(t.ID, n), Child: t.ID, Plan: t.Plan, N: n, Needs: t.Needs[n*joinSize : min((n+1)*joinSize, len(t.Needs))],
			Waits: plan.Waits(when),
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
func (r *round) releaseJoins(ctx context.Context, joins []joinDoc, chunk []ended) error {
	joins, err := r.changed(ctx, joins, chunk)
	if err != nil || len(joins) == 0 {
		return err
	}
	var children bson.A
	asked := map[bson.ObjectID]bool{}
	for _, j := range joins {
		if !asked[j.Child] {
			asked[j.Child] = true
			children = append(children, j.Child)
		}
	}
	if err := r.finishJoins(ctx, joins); err != nil {
		return err
	}
	held, err := find[taskDoc](ctx, r.tasks, d("_id", d("$in", children), "status", plan.Held), query{fields: childFields})
	if err != nil {
		return err
	}
	_, err = r.settle(ctx, held)
	return err
}

// changed returns those of the joins that finished tasks are in to which this may make a difference. To the others it does not: one of
// their members has not finished, as is read after the end of those tasks was written, so whoever ends that one looks again. That is asked
// of the last member, since tasks end about in the order in which they were added.
func (r *round) changed(ctx context.Context, joins []joinDoc, chunk []ended) ([]joinDoc, error) {
	var seen plan.Outcome
	just := make(map[bson.ObjectID]bool, len(chunk))
	for i := range chunk {
		seen |= chunk[i].outcome
		just[chunk[i].id] = true
	}
	last := make(map[bson.ObjectID]bson.ObjectID, len(joins)) // by join
	var ids bson.A
	for i := range joins {
		j := &joins[i]
		if j.Done || seen&^j.Waits != 0 {
			continue
		}
		for _, id := range slices.Backward(j.members()) {
			if !just[id] {
				last[j.ID] = id
				ids = append(ids, id)
				break
			}
		}
	}
	if len(ids) == 0 {
		return joins, nil
	}
	docs, err := r.members(ctx, ids)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(joins, func(j joinDoc) bool {
		t := docs[last[j.ID]]
		return t != nil && !t.counted(r.at)
	}), nil
}

// members reads of tasks what their joins have to know.
func (r *round) members(ctx context.Context, ids bson.A) (map[bson.ObjectID]*taskDoc, error) {
	docs, err := find[taskDoc](ctx, r.tasks, d("_id", d("$in", ids)), query{fields: d(
		"status", 1, "reason", 1, "coe", 1, "open", 1, "complete", 1, "gate", 1, "mtime", 1, "bytes", 1)})
	if err != nil {
		return nil, err
	}
	byID := make(map[bson.ObjectID]*taskDoc, len(docs))
	for i := range docs {
		byID[docs[i].ID] = &docs[i]
	}
	return byID, nil
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
	byID, err := r.members(ctx, ids)
	if err != nil {
		return err
	}
	var changes []change
	for i := range joins {
		if joins[i].Done {
			continue
		}
		now := joins[i].look(byID, r)
		if !now.Done && (now.Seen^joins[i].Seen)&^now.Waits == 0 {
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
