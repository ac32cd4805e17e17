package mongodb

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
)

// dropItems deletes the items of those foreach tasks of a decided retry that make them anew. It says in
// the tasks that nothing is made before the first item goes.
func (s *Store) dropItems(ctx context.Context, docs []retryDoc) error {
	var old []taskDoc
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
		tasks, err := wire.Find[taskDoc](ctx, s.tasks, append(drop, bson.E{Key: "items", Value: d("$gt", 0)}), wire.Query{Fields: ones("plan items gen list")})
		if err != nil {
			return err
		}
		old = append(old, tasks...)
		if _, err := s.UpdateMany(ctx, s.tasks, drop, d("$unset", ones("expanded making"))); err != nil {
			return err
		}
	}
	if len(old) == 0 {
		return nil
	}
	r, err := s.newRound(ctx, 0)
	if err != nil {
		return err
	}
	defer r.end()
	for i := range old {
		if err := r.deleteItems(ctx, &old[i]); err != nil {
			return err
		}
	}
	return nil
}

// deleteItems deletes the items that a foreach task had before it was gated, with their logs and joins, but none that it has made since:
// another process may have ended the retry meanwhile.
func (r *round) deleteItems(ctx context.Context, of *taskDoc) error {
	if _, err := r.Remove(ctx, r.items, d("task", of.ID, "list", of.List)); err != nil {
		return err
	}
	if _, err := r.Remove(ctx, r.joins, d("child", of.ID, "count", d("$gt", 0), "made", of.madeBefore())); err != nil {
		return err
	}
	for from := 0; from < of.Items; from += deleteAtOnce {
		ids := itemIDs(of.ID, from, min(of.Items, from+deleteAtOnce))
		docs, err := wire.Find[taskDoc](ctx, r.tasks, d("_id", d("$in", ids), "made", of.madeBefore()), wire.Query{Fields: ones("_id")})
		if err != nil {
			return err
		}
		if len(docs) == 0 {
			continue
		}
		old := idsOfTasks(docs)
		if err := r.forgetBeside(ctx, old); err != nil {
			return err
		}
		if _, err := r.Remove(ctx, r.tasks, d("_id", d("$in", old), "made", of.madeBefore())); err != nil {
			return err
		}
	}
	return nil
}

// made is in documents that are made of items: one more than the generation of the foreach task for which they were made.
func (t *taskDoc) made() int { return t.Gen + 1 }

// madeBefore matches what was made for earlier generations.
func (t *taskDoc) madeBefore() bson.D { return d("$not", d("$gte", t.made())) }

// insertMade inserts the made items. A process that was making items when a retry dropped them may
// have inserted some too late: insertMade replaces these.
func (r *round) insertMade(ctx context.Context, c *mongo.Collection, t *taskDoc, ids idList, docs []any) error {
	taken, err := r.Insert(ctx, c, docs...)
	if err != nil || taken == 0 {
		return err
	}
	old, err := r.Remove(ctx, c, d("_id", d("$in", ids), "made", t.madeBefore()))
	if err != nil || old == 0 {
		return err
	}
	_, err = r.Insert(ctx, c, docs...)
	return err
}

// takeBackItems deletes items that were inserted too late, after a retry took their foreach task back to make others.
func (r *round) takeBackItems(ctx context.Context, t *taskDoc, ids, joins idList) error {
	now, err := wire.FindOne[taskDoc](ctx, r.tasks, d("_id", t.ID), wire.Query{Fields: ones("gen")})
	if err != nil || now != nil && now.Gen == t.Gen {
		return err
	}
	if _, err := r.Remove(ctx, r.tasks, d("_id", d("$in", ids), "made", t.made(), "hold", holdItem)); err != nil {
		return err
	}
	_, err = r.Remove(ctx, r.joins, d("_id", d("$in", joins), "made", t.made()))
	return err
}
