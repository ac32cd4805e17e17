package mongodb

import (
	"context"
	"encoding/json"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/internal/refusal"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/engine"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// Items implements engine.Retrier.
func (r *retrier) Items(ctx context.Context, of *plan.Task) (items []json.RawMessage, list []plan.Input, err error) {
	items = make([]json.RawMessage, of.Items)
	err = r.readAll(ctx, itemIDs(oid(of.ID.ID), 0, of.Items), ones("params text"), func(t *taskDoc) {
		if params, err := t.params(); err == nil {
			items[itemIndex(t.ID)] = rules.ItemOf(params)
		}
	})
	if k := slices.IndexFunc(items, func(item json.RawMessage) bool { return item == nil }); k >= 0 {
		items = items[:k]
	}
	if err != nil || rules.ListFrom(of.Foreach) == "" {
		return items, nil, err
	}
	round, err := r.newRound(ctx, 0)
	if err != nil {
		return nil, nil, err
	}
	defer round.end()
	list, err = round.listInputs(ctx, &waiter{taskDoc: r.docs[of.ID], def: of.Definition})
	return items, list, err
}

// Add implements engine.Retrier. It inserts the items as skipped, since the plan has ended and may stay so: if this process
// dies, the next retry takes them. It replaces items of a process that died before it told their foreach task of them.
func (r *retrier) Add(ctx context.Context, of, with *plan.Task, items []json.RawMessage, as rules.Step) error {
	changed := refusal.New(plan.ErrConflict, "task %q changed while items were added to it", of.Key())
	round, err := r.newRound(ctx, 0)
	if err != nil {
		return err
	}
	defer round.end()
	t, err := wire.FindOne[taskDoc](ctx, r.tasks, d("_id", oid(of.ID.ID)), wire.Query{})
	if err != nil {
		return err
	}
	if t == nil || !t.Status.Finished() || t.Items != of.Items {
		return changed
	}
	if with != nil {
		t.Queue = oid(with.Queue.ID)
		if err := t.setDefinition(with.Definition); err != nil {
			return err
		}
		if err := t.setParams(with.Params); err != nil {
			return err
		}
	}
	behind := d("$gte", itemID(t.ID, of.Items), "$lt", itemID(t.ID, plan.MaxItems))
	if _, err := r.Remove(ctx, r.tasks, d("_id", behind, "of", t.ID)); err != nil {
		return err
	}
	t.Items += len(items)
	for t.Inserted = of.Items; t.Inserted < t.Items; {
		if err := round.addItems(ctx, t, items[t.Inserted-of.Items:], &as); err != nil {
			return err
		}
	}
	told, err := r.UpdateOne(ctx, r.tasks, d("_id", t.ID, "items", of.Items, "status", finished), d(
		"$set", d("items", t.Items, "inserted", t.Items, "released", t.Items), "$currentDate", d("mtime", true)))
	if err == nil && !told {
		return changed
	}
	return err
}

// fitJoins makes the joins of those foreach tasks anew that have more items than their joins count. Add tells a task of
// new items in one write, so a process that dies after it leaves such a task to the next retry.
func (r *retrier) fitJoins(ctx context.Context, s *engine.Selection) error {
	g := r.Series(ctx)
	for i := range s.Tasks {
		t := r.docs[s.Tasks[i].ID]
		if !t.Expanded || t.Items == 0 || s.Tasks[i].Remakes {
			continue
		}
		there := wire.FindIn[joinDoc](g, r.joins, d("child", t.ID, "count", d("$gt", 0)), wire.Query{Fields: ones("count")})
		counts := make(map[bson.ObjectID]int, len(there))
		for _, j := range there {
			counts[j.ID] = j.Count
		}
		want, ids := t.itemJoins(0, t.Items)
		k := slices.IndexFunc(want, func(j any) bool { return counts[j.(joinDoc).ID] != j.(joinDoc).Count })
		if k >= 0 {
			g.Remove(r.joins, d("_id", d("$in", ids[k:])))
			g.Insert(r.joins, want[k:]...)
		}
	}
	return g.Err
}

// addItems inserts items from t.Inserted on, as many as go together.
func (r *round) addItems(ctx context.Context, t *taskDoc, items []json.RawMessage, as *rules.Step) (err error) {
	var needs [][]bson.ObjectID
	values := make([]text, 0, min(len(items), listSize))
	for _, item := range items[:min(len(items), listSize)] {
		values = append(values, text(item))
	}
	if t.Along {
		if values, needs, err = r.itemsOfHeads(ctx, t); err != nil {
			return err
		}
	}
	docs, err := r.itemDocs(ctx, t, values, needs)
	if err != nil {
		return refusal.New(plan.ErrConflict, "task %q: %v", t.Name, err)
	}
	for i := range docs {
		doc := docs[i].(taskDoc)
		doc.Status, doc.Hold, doc.Reason, doc.Detail = as.Status, "", as.Reason, as.Detail
		doc.Complete, doc.Open, doc.Ended = true, false, r.at
		docs[i] = doc
	}
	_, err = r.Insert(ctx, r.tasks, docs...)
	t.Inserted += len(docs)
	return err
}
