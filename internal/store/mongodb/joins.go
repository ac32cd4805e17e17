package mongodb

import (
	"context"
	"maps"
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
	// Waits are outcomes that decide nothing before all have finished: none if the rule of the child may have changed since.
	Waits plan.Outcome `bson:"waits,omitempty"`

	Done    bool         `bson:"done,omitempty"`
	Seen    plan.Outcome `bson:"seen,omitempty"`
	Absent  string       `bson:"absent,omitempty"` // see waiter
	Failed  int          `bson:"failed,omitempty"`
	Bytes   int          `bson:"bytes,omitempty"`
	Largest int          `bson:"largest,omitempty"`
}

// bound implements bounded.
func (j *joinDoc) bound() { within(&j.N, &j.Count) }

// parentJoin and itemJoin name the joins of a task, so that making them twice makes them once.
func parentJoin(child bson.ObjectID, n int) bson.ObjectID { return itemID(child, n) }
func itemJoin(of bson.ObjectID, n int) bson.ObjectID      { return itemID(of, 1<<22|n) }

func itemID(of bson.ObjectID, index int) bson.ObjectID {
	return oid(plan.ItemID(taskID(of), index).ID)
}

// itemIndex is the number of an item: its id says it, whatever became of its document.
func itemIndex(item bson.ObjectID) int { return plan.ItemIndex(taskID(item)) }

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

// joinsAbout returns the joins that finished tasks are in. A join of items that is gone or damaged
// is returned as done: its child has to be checked.
func (r *round) joinsAbout(ctx context.Context, chunk []ended) ([]joinDoc, error) {
	docs, err := find[joinDoc](ctx, r.joins, d("needs", anyOf(keys(chunk))), query{hint: "needs"})
	if err != nil {
		return nil, err
	}
	var ids bson.A
	asked := map[bson.ObjectID]bson.ObjectID{}
	for _, e := range chunk {
		if id := itemJoin(e.of, itemIndex(e.id)/joinSize); !e.of.IsZero() && asked[id].IsZero() {
			asked[id] = e.of
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return docs, nil
	}
	of, err := find[joinDoc](ctx, r.joins, d("_id", d("$in", ids)), query{})
	for i := range of {
		if of[i].Count > 0 {
			delete(asked, of[i].ID)
		}
	}
	for id, child := range asked {
		of = append(of, joinDoc{ID: id, Child: child, Done: true})
	}
	return append(docs, of...), err
}

// uncounted is the change that has a join counted again.
func uncounted() bson.D {
	return d("$unset", d("done", 1, "seen", 1, "absent", 1, "failed", 1, "bytes", 1, "largest", 1), "$inc", d("gen", 1))
}

// releaseJoins looks at the joins that finished tasks are in, and then at the tasks for which those decide something.
func (r *round) releaseJoins(ctx context.Context, joins []joinDoc) error {
	children, err := r.finishJoins(ctx, joins)
	if err != nil || len(children) == 0 {
		return err
	}
	return r.settleHeld(ctx, children)
}

// settleHeld is settle of those of the tasks that are held.
func (r *round) settleHeld(ctx context.Context, ids bson.A) error {
	for last, more := bson.NilObjectID, len(ids) > 0; more; { // each of them whole, and so not all at a time
		held, some, err := findSome[taskDoc](ctx, r.tasks, d("_id", d("$in", ids, "$gt", last), "status", plan.Held),
			query{fields: childFields, sort: d("_id", 1)})
		if err != nil {
			return err
		}
		if more = some; more {
			last = held[len(held)-1].ID
		}
		if _, err := r.settle(ctx, held); err != nil {
			return err
		}
	}
	return nil
}

// finishJoins writes down what the joins have come to, and returns the children for which that may decide something: whoever wrote it may
// have died before it looked at them. A join was read before its members are: should a retry take one of these back in between, the join is
// of another generation by then and stays as it is.
func (r *round) finishJoins(ctx context.Context, joins []joinDoc) (children bson.A, err error) {
	members, err := r.members(ctx, joins)
	if err != nil {
		return nil, err
	}
	coming, err := r.coming(ctx, joins, members)
	if err != nil {
		return nil, err
	}
	missed, err := r.missed(ctx, slices.Collect(maps.Keys(members)), members)
	if err != nil {
		return nil, err
	}
	var changes []change
	told := map[bson.ObjectID]bool{}
	for i := range joins {
		was := &joins[i]
		now := *was
		if !was.Done {
			if coming[was.ID] {
				continue // whoever has put in the last of them comes back to it
			}
			now = was.look(members, missed, r)
		}
		if !now.decides() {
			continue
		}
		if !told[now.Child] {
			told[now.Child] = true
			children = append(children, now.Child)
		}
		if was.Done || !now.Done && now.Seen == was.Seen {
			continue
		}
		set := d("seen", now.Seen)
		if now.Absent != "" {
			set = append(set, bson.E{Key: "absent", Value: now.Absent})
		}
		if now.Done {
			set = append(set, d("done", true, "failed", now.Failed, "bytes", now.Bytes, "largest", now.Largest)...)
		}
		changes = append(changes, change{now.ID, d("gen", now.Gen, "done", nil), d("$set", set)})
	}
	_, err = r.bulk(ctx, r.joins, changes)
	r.budget -= len(changes)
	return children, err
}

// decides reports whether the child is to be looked at.
func (j *joinDoc) decides() bool { return j.Done || j.Seen&^j.Waits != 0 }

// memberFields are what a join has to know of its members.
var memberFields = d("status", 1, "reason", 1, "coe", 1, "open", 1, "complete", 1, "gate", 1, "mtime", 1, "ended", 1, "noticed", 1, "bytes", 1)

// members reads the tasks that joins which are not done stand for, each once, in several commands: of many children of the same parents there
// can be more than fit into one.
func (r *round) members(ctx context.Context, joins []joinDoc) (map[bson.ObjectID]*taskDoc, error) {
	byID := map[bson.ObjectID]*taskDoc{}
	var ids []bson.ObjectID
	for i := range joins {
		if joins[i].Done {
			continue
		}
		for _, id := range joins[i].members() {
			if _, asked := byID[id]; !asked {
				byID[id] = nil
				ids = append(ids, id)
			}
		}
	}
	return byID, r.readAll(ctx, ids, memberFields, func(t *taskDoc) { byID[t.ID] = t })
}

// coming returns the joins of which members are still to be inserted; those of others that are missing are gone, and count as cancelled.
// Parents are in before their child is, or before that is held for them, and items are before their task is expanded: once the child is
// that far, all of them are in, so that what is not found after it is gone. As long as all members are there this asks nothing.
func (r *round) coming(ctx context.Context, joins []joinDoc, members map[bson.ObjectID]*taskDoc) (map[bson.ObjectID]bool, error) {
	coming := map[bson.ObjectID]bool{}
	var missing, children []bson.ObjectID
	for i := range joins {
		j := &joins[i]
		if j.Done {
			continue
		}
		before := len(missing)
		for _, id := range j.members() {
			if members[id] == nil {
				missing = append(missing, id)
			}
		}
		if len(missing) > before {
			coming[j.ID] = true
			children = append(children, j.Child)
		}
	}
	if len(missing) == 0 {
		return nil, nil
	}
	byID, err := r.tasksByID(ctx, children, d("status", 1, "hold", 1, "expanded", 1))
	if err != nil {
		return nil, err
	}
	for i := range joins {
		if j := &joins[i]; coming[j.ID] {
			t := byID[j.Child]
			coming[j.ID] = t == nil || j.Count > 0 && !t.Expanded || j.Count == 0 && t.Hold == holdAdding
		}
	}
	return coming, r.readAll(ctx, missing, memberFields, func(t *taskDoc) { members[t.ID] = t })
}

// look says what the join has come to, given its members.
func (j joinDoc) look(byID, missed map[bson.ObjectID]*taskDoc, r *round) joinDoc {
	var w waiter
	ids := j.members()
	w.all = len(ids) > 0 // else it is damaged
	if j.Count > 0 {
		missed = nil // its own items are all in, and one that is gone comes no more
	}
	for _, id := range ids {
		t := byID[id]
		w.see(id, t, missed, r)
		if t != nil && r.finished(t) && plan.OutcomeOf(t.Status, t.Reason, t.Lenient) == plan.OutcomeFailed {
			j.Failed++
		}
	}
	j.Done, j.Seen, j.Absent, j.Bytes, j.Largest = w.all, w.seen, w.absent, w.bytes, w.largest
	return j
}
