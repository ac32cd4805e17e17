package mongodb

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sort"
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

// A misfit is a change that its document does not take, now or later: it would be too large, or has a field of another type.
type misfit struct {
	id  bson.ObjectID
	err error
}

// bulk is bulkEach where misfits are not to be expected: they are errors.
func (s *Store) bulk(ctx context.Context, c *mongo.Collection, changes []change) (matched int, err error) {
	matched, misfits, err := s.bulkEach(ctx, c, changes)
	if err == nil && len(misfits) > 0 {
		err = fmt.Errorf("change of %s: %w", misfits[0].id.Hex(), misfits[0].err)
	}
	return matched, err
}

// bulkEach makes changes, in no order. It returns how many of them found their document, and which
// ones the document does not accept. A change that a unique index refuses has found none.
func (s *Store) bulkEach(ctx context.Context, c *mongo.Collection, changes []change) (matched int, misfits []misfit, err error) {
	if len(changes) == 0 {
		return 0, nil, nil
	}
	// In the order of ids, so that commands that change the same documents seldom wait for each other crosswise.
	changes = slices.Clone(changes)
	sort.Slice(changes, func(a, b int) bool { return bytes.Compare(changes[a].id[:], changes[b].id[:]) < 0 })
	return s.bulkParts(ctx, c, changes)
}

// bulkParts is bulkEach of changes that are in an order that all keep who change the same documents.
func (s *Store) bulkParts(ctx context.Context, c *mongo.Collection, changes []change) (matched int, misfits []misfit, err error) {
	err = s.write(ctx, func() error {
		var mu sync.Mutex
		var g errgroup.Group
		for part := range slices.Chunk(changes, max(smallBulk, (len(changes)+1)/2)) {
			g.Go(func() error {
				commands, err := alike(part)
				for _, batches := range commands {
					var n int
					var some []misfit
					if err == nil {
						n, some, err = s.bulkWrite(ctx, c, batches, clashes)
					}
					mu.Lock()
					matched, misfits = matched+n, append(misfits, some...)
					mu.Unlock()
				}
				return err
			})
		}
		return g.Wait()
	})
	return matched, misfits, err
}

// bulkInOrder makes changes one after the other, up to the first that clashes with another write.
func (s *Store) bulkInOrder(ctx context.Context, c *mongo.Collection, changes []change) (matched int, misfits []misfit, err error) {
	batches := make([]batch, len(changes))
	for i := range changes {
		batches[i] = changes[i : i+1]
	}
	err = s.write(ctx, func() (err error) { matched, misfits, err = s.bulkWrite(ctx, c, batches, 1); return err })
	return matched, misfits, err
}

// bulkWrite makes changes in one command, and in another one what that left. A server stops at the first that fails: one on PostgreSQL
// keeps what it has locked until its command ends, so that after a deadlock, which it sees after a second, each change after it would run
// into that again. Behind a mongos there are no deadlocks, and order would have it ask its shards one after the other.
func (s *Store) bulkWrite(ctx context.Context, c *mongo.Collection, batches []batch, tries int) (matched int, misfits []misfit, err error) {
	for clashed := 0; len(batches) > 0; {
		models := make([]mongo.WriteModel, len(batches))
		several := slices.ContainsFunc(batches, func(b batch) bool { return len(b) > 1 })
		for i, b := range batches {
			models[i] = b.model(several)
		}
		res, err := c.BulkWrite(ctx, models, options.BulkWrite().SetOrdered(!s.sharded))
		if res != nil {
			matched += int(res.MatchedCount)
		}
		if err == nil {
			return matched, misfits, nil
		}
		left, clash := batches, isClash(err)
		if failed := writeErrors(err); failed != nil {
			left = nil
			for _, e := range failed {
				b := batches[e.Index]
				switch {
				case isClash(e):
					left = append(left, b)
				case isMisfit(e) && len(b) == 1:
					misfits = append(misfits, misfit{b[0].id, e})
				case !mongo.IsDuplicateKeyError(e) && !isMisfit(e):
					return matched, misfits, err
				case len(b) > 1:
					left = append(left, b.apart()...)
				}
			}
			if !s.sharded {
				left = append(left, batches[failed[0].Index+1:]...)
			}
		} else if !clash {
			return matched, misfits, err
		}
		if clash {
			if clashed++; clashed == tries {
				return matched, misfits, err
			}
			if err := afterClash(ctx, clashed); err != nil {
				return matched, misfits, err
			}
		}
		batches = left
	}
	return matched, misfits, nil
}

// A batch is changes that differ in the document only: made as one, they cost a third.
type batch []change

// fewAlone is how many changes that are like no other go with those that are: each costs a little more then, and all one command less.
const fewAlone = 16

// alike makes batches of changes that follow each other, of one change or of several, and says which of them are made by one command: the
// driver makes another one where these two kinds meet. Were others put together as well, documents would not be changed in their order any
// more, and commands would wait for each other crosswise.
func alike(changes []change) (commands [][]batch, err error) {
	var all, alone, together []batch
	var last []byte
	first := 0
	end := func(i int) {
		b := batch(changes[first:i])
		switch len(b) {
		case 0:
			return
		case 1:
			alone = append(alone, b)
		default:
			together = append(together, b)
		}
		all = append(all, b)
		first = i
	}
	for i := range changes {
		c := &changes[i]
		if i > 0 && same(c.where, changes[i-1].where) && same(c.update, changes[i-1].update) {
			continue
		}
		raw, err := bson.Marshal(d("where", c.where, "update", c.update))
		if err != nil {
			return nil, fmt.Errorf("change of %s: %w", c.id.Hex(), err)
		}
		if !bytes.Equal(raw, last) {
			end(i)
			last = raw
		}
	}
	end(len(changes))
	if len(alone) == 0 || len(together) == 0 || len(alone) <= fewAlone {
		return [][]batch{all}, nil
	}
	return [][]batch{alone, together}, nil
}

// same reports whether two are one document; two that look alike may still not be.
func same(a, b bson.D) bool { return len(a) > 0 && len(a) == len(b) && &a[0] == &b[0] }

// apart makes a batch of each change.
func (b batch) apart() []batch {
	each := make([]batch, len(b))
	for i := range b {
		each[i] = b[i : i+1]
	}
	return each
}

// model is the write of a batch: as all of one command either of one document or of as many as there are.
func (b batch) model(several bool) mongo.WriteModel {
	first := &b[0]
	if !several {
		return mongo.NewUpdateOneModel().SetFilter(append(d("_id", first.id), first.where...)).SetUpdate(first.update)
	}
	ids := make(bson.A, len(b))
	for i := range b {
		ids[i] = b[i].id
	}
	return mongo.NewUpdateManyModel().SetFilter(append(d("_id", d("$in", ids)), first.where...)).SetUpdate(first.update)
}
