package wire

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

// A Change is a conditional write of one document.
type Change struct {
	ID     bson.ObjectID
	Where  bson.D // what else must be so
	Update bson.D
}

// smallBulk is about how many documents no two commands are side by side: a server works on each command with one thread.
const smallBulk = 64

// Halves calls do for each half of many things at the same time, and for few things once. It returns when all calls have: a server goes on
// with what it has begun.
func Halves[T any](all []T, do func(half []T) error) error {
	var g errgroup.Group
	for part := range slices.Chunk(all, max(smallBulk, (len(all)+1)/2)) {
		g.Go(func() error { return do(part) })
	}
	return g.Wait()
}

// A Misfit is a change that its document does not take, now or later: it would be too large, or has a field of another type.
type Misfit struct {
	ID  bson.ObjectID
	Err error
}

// Bulk is BulkEach where misfits are not to be expected: they are errors.
func (w *Conn) Bulk(ctx context.Context, c *mongo.Collection, changes []Change) (matched int, err error) {
	matched, misfits, err := w.BulkEach(ctx, c, changes)
	if err == nil && len(misfits) > 0 {
		err = fmt.Errorf("change of %s: %w", misfits[0].ID.Hex(), misfits[0].Err)
	}
	return matched, err
}

// BulkEach makes changes, in no order. It returns how many of them found their document, and which
// ones the document does not accept. A change that a unique index refuses has found none.
func (w *Conn) BulkEach(ctx context.Context, c *mongo.Collection, changes []Change) (matched int, misfits []Misfit, err error) {
	if len(changes) == 0 {
		return 0, nil, nil
	}
	// In the order of ids, so that commands that change the same documents seldom wait for each other crosswise.
	changes = slices.Clone(changes)
	sort.Slice(changes, func(a, b int) bool { return bytes.Compare(changes[a].ID[:], changes[b].ID[:]) < 0 })
	return w.BulkParts(ctx, c, changes)
}

// BulkParts is BulkEach of changes that are in an order that all keep who change the same documents.
func (w *Conn) BulkParts(ctx context.Context, c *mongo.Collection, changes []Change) (matched int, misfits []Misfit, err error) {
	err = w.write(ctx, func() error {
		var mu sync.Mutex
		return Halves(changes, func(part []Change) error {
			commands, err := alike(part)
			for _, batches := range commands {
				var n int
				var some []Misfit
				if err == nil {
					n, some, err = w.bulkWrite(ctx, c, batches, Clashes)
				}
				mu.Lock()
				matched, misfits = matched+n, append(misfits, some...)
				mu.Unlock()
			}
			return err
		})
	})
	return matched, misfits, err
}

// BulkInOrder makes changes one after the other, up to the first that clashes with another write.
func (w *Conn) BulkInOrder(ctx context.Context, c *mongo.Collection, changes []Change) (matched int, misfits []Misfit, err error) {
	batches := make([]batch, len(changes))
	for i := range changes {
		batches[i] = changes[i : i+1]
	}
	err = w.write(ctx, func() (err error) { matched, misfits, err = w.bulkWrite(ctx, c, batches, 1); return err })
	return matched, misfits, err
}

// bulkWrite makes changes in one command, and in another one what that left. A server stops at the first that fails: one on PostgreSQL
// keeps what it has locked until its command ends, so that after a deadlock, which it sees after a second, each change after it would run
// into that again. Behind a mongos there are no deadlocks, and order would have it ask its shards one after the other.
func (w *Conn) bulkWrite(ctx context.Context, c *mongo.Collection, batches []batch, tries int) (matched int, misfits []Misfit, err error) {
	for clashed := 0; len(batches) > 0; {
		models := make([]mongo.WriteModel, len(batches))
		several := slices.ContainsFunc(batches, func(b batch) bool { return len(b) > 1 })
		for i, b := range batches {
			models[i] = b.model(several)
		}
		res, err := c.BulkWrite(ctx, models, options.BulkWrite().SetOrdered(!w.sharded.Load()))
		if res != nil {
			matched += int(res.MatchedCount)
		}
		if err == nil {
			return matched, misfits, nil
		}
		left, clash := batches, IsClash(err)
		if failed := writeErrors(err); failed != nil {
			left = nil
			for _, e := range failed {
				b := batches[e.Index]
				switch {
				case IsClash(e):
					left = append(left, b)
				case isMisfit(e) && len(b) == 1:
					misfits = append(misfits, Misfit{b[0].ID, e})
				case !mongo.IsDuplicateKeyError(e) && !isMisfit(e):
					return matched, misfits, err
				case len(b) > 1:
					left = append(left, b.apart()...)
				}
			}
			if !w.sharded.Load() {
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
type batch []Change

// fewAlone is how many changes that are like no other go with those that are: each costs a little more then, and all one command less.
const fewAlone = 16

// alike makes batches of changes that follow each other, of one change or of several, and says which of them are made by one command: the
// driver makes another one where these two kinds meet. Were others put together as well, documents would not be changed in their order any
// more, and commands would wait for each other crosswise.
func alike(changes []Change) (commands [][]batch, err error) {
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
		if i > 0 && same(c.Where, changes[i-1].Where) && same(c.Update, changes[i-1].Update) {
			continue
		}
		raw, err := bson.Marshal(D("where", c.Where, "update", c.Update))
		if err != nil {
			return nil, fmt.Errorf("change of %s: %w", c.ID.Hex(), err)
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
		return mongo.NewUpdateOneModel().SetFilter(append(D("_id", first.ID), first.Where...)).SetUpdate(first.Update)
	}
	ids := make(bson.A, len(b))
	for i := range b {
		ids[i] = b[i].ID
	}
	return mongo.NewUpdateManyModel().SetFilter(append(D("_id", D("$in", ids)), first.Where...)).SetUpdate(first.Update)
}
