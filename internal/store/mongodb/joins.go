package mongodb

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
)

// joinsOf returns the joins of tasks, those of parents and those of items.
func (r *round) joinsOf(ctx context.Context, children idList) (map[bson.ObjectID][]joinDoc, error) {
	if len(children) == 0 {
		return nil, nil
	}
	docs, err := wire.Find[joinDoc](ctx, r.joins, d("child", d("$in", children)), wire.Query{Fields: d("needs", 0)})
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
func (r *round) joinsAbout(ctx context.Context, chunk []parent) ([]joinDoc, error) {
	docs, err := wire.Find[joinDoc](ctx, r.joins, d("needs", wire.AnyOf(keys(chunk))), wire.Query{Hint: "needs"})
	if err != nil {
		return nil, err
	}
	var ids idList
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
	of, err := wire.Find[joinDoc](ctx, r.joins, d("_id", d("$in", ids)), wire.Query{})
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

// releaseJoins looks at the joins that finished tasks are in, and then at the tasks for which those decide something.
func (r *round) releaseJoins(ctx context.Context, joins []joinDoc) error {
	children, err := r.finishJoins(ctx, joins)
	if err != nil || len(children) == 0 {
		return err
	}
	return r.settleHeld(ctx, children)
}

// settleHeld is settle of those of the tasks that are held.
func (r *round) settleHeld(ctx context.Context, ids idList) error {
	for last, more := bson.NilObjectID, len(ids) > 0; more; { // each of them whole, and so not all at a time
		held, some, err := wire.FindSome[taskDoc](ctx, r.tasks, onlyHeld(d("_id", d("$in", ids, "$gt", last))),
			wire.Query{Fields: childFields, Sort: ones("_id")})
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
func (r *round) finishJoins(ctx context.Context, joins []joinDoc) (children idList, err error) {
	members, err := r.members(ctx, joins)
	if err != nil {
		return nil, err
	}
	coming, err := r.coming(ctx, joins, members)
	if err != nil {
		return nil, err
	}
	var changes []wire.Change
	var told idSet
	for i := range joins {
		was := &joins[i]
		now := *was
		if !was.Done {
			if coming[was.ID] {
				continue // whoever has put in the last of them comes back to it
			}
			now = was.look(members, r)
		}
		if !now.decides() {
			continue
		}
		told.add(now.Child)
		if was.Done || !now.Done && now.Seen == was.Seen {
			continue
		}
		set := d("seen", now.Seen)
		if now.Done {
			set = append(set, d("done", true, "failed", now.Failed, "bytes", now.Bytes, "largest", now.Largest)...)
		}
		changes = append(changes, wire.Change{ID: now.ID, Where: d("gen", now.Gen, "done", nil), Update: d("$set", set)})
	}
	_, err = r.Bulk(ctx, r.joins, changes)
	r.budget -= len(changes)
	return told.list, err
}

// memberFields are what a join has to know of its members.
var memberFields = ones("status reason coe budget open complete gate mtime ended noticed bytes")

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
	byID, err := r.tasksByID(ctx, children, ones("status hold expanded"))
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
func (j joinDoc) look(byID map[bson.ObjectID]*taskDoc, r *round) joinDoc {
	var w waiter
	ids := j.members()
	w.all = len(ids) > 0 // else it is damaged
	for _, id := range ids {
		t := byID[id]
		w.see(t, r)
		if t != nil && r.finished(t) && t.outcome() == rules.OutcomeFailed {
			j.Failed++
		}
	}
	j.Done, j.Seen, j.Bytes, j.Largest = w.all, w.seen, w.bytes, w.largest
	return j
}
