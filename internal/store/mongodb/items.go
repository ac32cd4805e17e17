package mongodb

import (
	"context"
	"sync/atomic"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
)

// dropItems deletes the items of those foreach tasks of a decided retry that make them anew. It says in
// the tasks that nothing is made before the first item goes.
func (s *Store) dropItems(ctx context.Context, docs []retryDoc) error {
	var old []taskDoc
	g := s.Series(ctx)
	for i := range docs {
		var ids idList
		for _, t := range docs[i].Tasks {
			if t.Anew {
				ids = append(ids, t.ID)
			}
		}
		if len(ids) == 0 {
			continue
		}
		drop := d("_id", d("$in", ids), "gate", docs[i].Retry)
		old = append(old, wire.FindIn[taskDoc](g, s.tasks, append(drop, bson.E{Key: "items", Value: d("$gt", 0)}), wire.Query{Fields: ones("plan items gen list")})...)
		g.UpdateMany(s.tasks, drop, d("$unset", ones("expanded making")))
	}
	for i := range old {
		g.Do(func(ctx context.Context) error { return s.deleteItems(ctx, &old[i]) })
	}
	return g.Err
}

// deleteItems deletes the items that a foreach task had before it was gated, with their logs and joins, but none that it has made since:
// another process may have ended the retry meanwhile.
func (s *Store) deleteItems(ctx context.Context, of *taskDoc) error {
	g := s.Series(ctx)
	g.Remove(s.items, d("task", of.ID, "list", of.List))
	g.Remove(s.joins, d("child", of.ID, "count", d("$gt", 0), "made", of.madeBefore()))
	for from := 0; from < of.Items; from += deleteAtOnce {
		ids := itemIDs(of.ID, from, min(of.Items, from+deleteAtOnce))
		old := idsOfTasks(wire.FindIn[taskDoc](g, s.tasks, d("_id", d("$in", ids), "made", of.madeBefore()), wire.Query{Fields: ones("_id")}))
		if len(old) > 0 {
			g.Do(func(ctx context.Context) error { return s.forgetBeside(ctx, old) })
			g.Remove(s.tasks, d("_id", d("$in", old), "made", of.madeBefore()))
		}
	}
	return g.Err
}

// made is in documents that are made of items: one more than the generation of the foreach task for which they were made.
func (t *taskDoc) made() int { return t.Gen + 1 }

// madeBefore matches what was made for earlier generations.
func (t *taskDoc) madeBefore() bson.D { return d("$not", d("$gte", t.made())) }

// insertMade inserts the made items. A process that was making items when a retry dropped them may
// have inserted some too late: insertMade replaces these.
func (r *round) insertMade(ctx context.Context, c *mongo.Collection, t *taskDoc, ids idList, docs []any) error {
	var taken atomic.Int64
	insert := func(ctx context.Context) error {
		return wire.Halves(docs, func(half []any) error {
			n, err := r.Insert(ctx, c, half...)
			taken.Add(int64(n))
			return err
		})
	}
	g := r.Series(ctx)
	if g.Do(insert); taken.Load() > 0 && g.Remove(c, d("_id", d("$in", ids), "made", t.madeBefore())) > 0 {
		g.Do(insert)
	}
	return g.Err
}

// takeBackItems deletes items that were inserted too late, after a retry took their foreach task back to make others.
func (r *round) takeBackItems(ctx context.Context, t *taskDoc, ids, joins idList) error {
	now, err := wire.FindOne[taskDoc](ctx, r.tasks, d("_id", t.ID), wire.Query{Fields: ones("gen")})
	if err != nil || now != nil && now.Gen == t.Gen {
		return err
	}
	g := r.Series(ctx)
	g.Remove(r.tasks, d("_id", d("$in", ids), "made", t.made(), "hold", holdItem))
	g.Remove(r.joins, d("_id", d("$in", joins), "made", t.made()))
	return g.Err
}
