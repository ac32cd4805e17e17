package wire

import (
	"cmp"
	"context"
	"math"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// write makes one or several write commands that count as one, with the hook before and after them.
func (w *Conn) write(ctx context.Context, do func() error) error {
	if w.Hook != nil {
		if err := w.Hook(false); err != nil {
			return err
		}
	}
	if err := do(); err != nil {
		return Translate(err)
	}
	if w.Hook != nil {
		return w.Hook(true)
	}
	return nil
}

// Command makes one write command, which changes all or nothing that it is about.
func (w *Conn) Command(ctx context.Context, do func() error) error {
	return w.write(ctx, func() error { return WithoutClash(ctx, do) })
}

// Insert inserts documents in one command; those whose keys are taken are left out, and it returns how many of them that were.
func (w *Conn) Insert(ctx context.Context, c *mongo.Collection, docs ...any) (taken int, err error) {
	if len(docs) == 0 {
		return 0, nil
	}
	err = w.write(ctx, func() error {
		for clashed := 1; ; clashed++ {
			err := WithoutClash(ctx, func() error {
				_, err := c.InsertMany(ctx, docs, options.InsertMany().SetOrdered(false))
				return err
			})
			failed := writeErrors(err)
			if failed == nil {
				return err
			}
			var left []any
			for _, e := range failed {
				switch {
				case mongo.IsDuplicateKeyError(e):
					taken++
				case IsClash(e) && clashed < Clashes:
					left = append(left, docs[e.Index])
				default:
					return err
				}
			}
			if docs = left; len(left) == 0 {
				return nil
			}
			if err := afterClash(ctx, clashed); err != nil {
				return err
			}
		}
	})
	return taken, err
}

// UpdateOne changes one document and reports whether there was one to change.
func (w *Conn) UpdateOne(ctx context.Context, c *mongo.Collection, filter, update any) (matched bool, err error) {
	matched, _, err = w.ChangeOne(ctx, c, filter, update)
	return matched, err
}

// ChangeOne changes one document, and reports whether it is there and whether it is another one now. That it was changed by a write whose
// answer was lost is not known: who makes it again is told that it was not.
func (w *Conn) ChangeOne(ctx context.Context, c *mongo.Collection, filter, update any) (matched, changed bool, err error) {
	err = w.Command(ctx, func() error {
		res, err := c.UpdateOne(ctx, filter, update)
		if err == nil {
			matched, changed = res.MatchedCount > 0, res.ModifiedCount > 0
		}
		return err
	})
	return matched, changed, err
}

// Upsert changes a document, or makes it.
func (w *Conn) Upsert(ctx context.Context, c *mongo.Collection, filter, update any) error {
	return w.Command(ctx, func() error { return UpsertOne(ctx, c, filter, update) })
}

// UpsertOne is upsert without the hook. If several processes make a document at once, the server
// tells all but one that its key is taken; these then change that document.
func UpsertOne(ctx context.Context, c *mongo.Collection, filter, update any) (err error) {
	const tries = 4
	for range tries {
		if _, err = c.UpdateOne(ctx, filter, update, options.UpdateOne().SetUpsert(true)); !mongo.IsDuplicateKeyError(err) {
			break
		}
	}
	return err
}

// UpdateMany changes documents and returns how many there were.
func (w *Conn) UpdateMany(ctx context.Context, c *mongo.Collection, filter, update any) (matched int, err error) {
	err = w.Command(ctx, func() error {
		res, err := c.UpdateMany(ctx, filter, update)
		if err == nil {
			matched = int(res.MatchedCount)
		}
		return err
	})
	return matched, err
}

// Remove deletes documents and returns how many there were.
func (w *Conn) Remove(ctx context.Context, c *mongo.Collection, filter any) (n int, err error) {
	err = w.Command(ctx, func() error {
		res, err := c.DeleteMany(ctx, filter)
		if err == nil {
			n = int(res.DeletedCount)
		}
		return err
	})
	return n, err
}

// Query says what find is to return; zero fields say nothing.
type Query struct {
	Fields bson.D
	Sort   bson.D
	Skip   int
	Limit  int
	Batch  int // of each: documents in one answer; 0: eachAtOnce
	Hint   string
}

func (q *Query) options() *options.FindOptionsBuilder {
	o := options.Find()
	if q.Fields != nil {
		o.SetProjection(q.Fields)
	}
	if q.Sort != nil {
		o.SetSort(q.Sort)
	}
	if q.Hint != "" {
		o.SetHint(q.Hint)
	}
	if q.Skip > 0 {
		o.SetSkip(int64(q.Skip))
	}
	if q.Limit > 0 {
		return o.SetLimit(int64(q.Limit)).SetBatchSize(int32(min(q.Limit, math.MaxInt32)))
	}
	return o.SetBatchSize(100_000)
}

// Find returns the documents that match. It takes them in one answer as far as they fit into one.
func Find[T any](ctx context.Context, c *mongo.Collection, filter any, q Query) ([]T, error) {
	cursor, err := c.Find(ctx, filter, q.options())
	return found[T](ctx, cursor, err)
}

func found[T any](ctx context.Context, cursor *mongo.Cursor, err error) (all []T, _ error) {
	if err == nil {
		all, err = All[T](ctx, cursor)
	}
	if err != nil {
		return nil, Translate(err)
	}
	return all, nil
}

// WholeBytes is about how many bytes of whole tasks are read, or written, at a time: of one answer, which has at most 16 MiB, nearly all. With
// what is made of them a round has several times as much in memory.
const WholeBytes = 15 << 20

// FindSome is find that stops at WholeBytes, and reports whether it did: then there may be more.
func FindSome[T any](ctx context.Context, c *mongo.Collection, filter any, q Query) (found []T, more bool, err error) {
	cursor, err := c.Find(ctx, filter, q.options())
	if err != nil {
		return nil, false, Translate(err)
	}
	defer cursor.Close(context.WithoutCancel(ctx))
	for size := 0; cursor.Next(ctx); {
		var v T
		if err := Decode(cursor.Current, &v); err != nil {
			return nil, false, Translate(err)
		}
		found = append(found, v)
		if size += len(cursor.Current); size >= WholeBytes {
			return found, true, nil
		}
	}
	return found, false, Translate(cursor.Err())
}

// Each calls do with each document that matches, until that returns an error, and keeps only those of one answer.
func Each[T any](ctx context.Context, c *mongo.Collection, filter any, q Query, do func(*T) error) error {
	cursor, err := c.Find(ctx, filter, q.options().SetBatchSize(int32(cmp.Or(q.Batch, eachAtOnce))))
	if err != nil {
		return Translate(err)
	}
	defer cursor.Close(context.WithoutCancel(ctx))
	for cursor.Next(ctx) {
		var v T
		if err := Decode(cursor.Current, &v); err != nil {
			return Translate(err)
		}
		if err := do(&v); err != nil {
			return err
		}
	}
	return Translate(cursor.Err())
}

// FindOne returns the document that matches, nil if there is none.
func FindOne[T any](ctx context.Context, c *mongo.Collection, filter any, q Query) (*T, error) {
	q.Limit = 1
	found, err := Find[T](ctx, c, filter, q)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// Aggregate returns what a pipeline makes of a collection.
func Aggregate[T any](ctx context.Context, c *mongo.Collection, pipeline bson.A) ([]T, error) {
	cursor, err := c.Aggregate(ctx, pipeline, options.Aggregate().SetBatchSize(10_000))
	return found[T](ctx, cursor, err)
}

// Union is the stage of a pipeline that adds what another one makes of a collection.
func Union(c *mongo.Collection, pipeline bson.A) bson.D {
	return D("$unionWith", D("coll", c.Name(), "pipeline", pipeline))
}

// OneOfEach returns one document that each of n filters finds, if it finds any, in one command.
func OneOfEach[T any](ctx context.Context, c *mongo.Collection, n int, fields bson.D, filter func(i int) bson.D) ([]T, error) {
	var pipeline bson.A
	for i := range n {
		stages := bson.A{D("$match", filter(i)), D("$limit", 1), D("$project", fields)}
		if i == 0 {
			pipeline = stages
		} else {
			pipeline = append(pipeline, Union(c, stages))
		}
	}
	return Aggregate[T](ctx, c, pipeline)
}

// eachAtOnce is how many documents of each are in one answer.
const eachAtOnce = 1000
