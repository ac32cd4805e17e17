package mongodb

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"golang.org/x/sync/errgroup"
)

// A change is a conditional write of one document.
type change struct {
	id     bson.ObjectID
	where  bson.D // what else must be so
	update bson.D
}

// smallBulk is how many changes are not made by two commands side by side: a server works on each with one thread.
const smallBulk = 64

// bulk makes changes, in no order, and returns how many of them found their document. One that a unique index does not allow has found
// none.
func (s *Store) bulk(ctx context.Context, c *mongo.Collection, changes []change) (matched int, err error) {
	if len(changes) == 0 {
		return 0, nil
	}
	// In the order of ids, so that commands that change the same documents seldom wait for each other crosswise.
	changes = slices.Clone(changes)
	slices.SortFunc(changes, func(a, b change) int { return bytes.Compare(a.id[:], b.id[:]) })
	err = s.write(ctx, func() error {
		var mu sync.Mutex
		var g errgroup.Group
		for part := range slices.Chunk(changes, max(smallBulk, (len(changes)+1)/2)) {
			g.Go(func() error {
				n, err := bulkWrite(ctx, c, part)
				mu.Lock()
				defer mu.Unlock()
				matched += n
				return err
			})
		}
		return g.Wait()
	})
	return matched, err
}

// bulkWrite makes changes in one command. What got in another command's way in it is made again one by one: a command that holds one
// document and waits for none cannot be waited for crosswise.
func bulkWrite(ctx context.Context, c *mongo.Collection, changes []change) (matched int, err error) {
	batches, err := alike(changes)
	if err != nil {
		return 0, err
	}
	models := make([]mongo.WriteModel, len(batches))
	for i, b := range batches {
		models[i] = b.model()
	}
	res, err := c.BulkWrite(ctx, models, options.BulkWrite().SetOrdered(false))
	if res != nil {
		matched = int(res.MatchedCount)
	}
	failed := writeErrors(err)
	if failed == nil {
		return matched, err
	}
	for _, e := range failed {
		if mongo.IsDuplicateKeyError(e) {
			continue
		}
		if !isClash(e) {
			return matched, err
		}
		for _, one := range batches[e.Index] {
			n, err := one.make(ctx, c)
			if matched += n; err != nil {
				return matched, err
			}
		}
	}
	return matched, nil
}

// make makes one change by itself.
func (ch *change) make(ctx context.Context, c *mongo.Collection) (matched int, err error) {
	err = withoutClash(ctx, func() error {
		res, err := c.UpdateOne(ctx, append(d("_id", ch.id), ch.where...), ch.update)
		if mongo.IsDuplicateKeyError(err) {
			return nil
		}
		if err == nil {
			matched = int(res.MatchedCount)
		}
		return err
	})
	return matched, err
}

// A batch is changes that differ in the document only: made as one, they cost a third.
type batch []change

// alike makes batches of changes that follow each other. Were others put together as well, documents would not be changed in the order of
// their ids any more, and commands would wait for each other crosswise.
func alike(changes []change) ([]batch, error) {
	var batches []batch
	var last []byte
	for _, c := range changes {
		raw, err := bson.Marshal(d("where", c.where, "update", c.update))
		if err != nil {
			return nil, fmt.Errorf("change of %s: %w", c.id.Hex(), err)
		}
		if !bytes.Equal(raw, last) {
			batches = append(batches, nil)
		}
		at := len(batches) - 1
		batches[at], last = append(batches[at], c), raw
	}
	return batches, nil
}

func (b batch) model() mongo.WriteModel {
	first := &b[0]
	if len(b) == 1 {
		return mongo.NewUpdateOneModel().SetFilter(append(d("_id", first.id), first.where...)).SetUpdate(first.update)
	}
	ids := make(bson.A, len(b))
	for i := range b {
		ids[i] = b[i].id
	}
	return mongo.NewUpdateManyModel().SetFilter(append(d("_id", d("$in", ids)), first.where...)).SetUpdate(first.update)
}
