package mongodb

import (
	"cmp"
	"context"
	"math"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// write makes one or several write commands that count as one, with the hook before and after them.
func (s *Store) write(ctx context.Context, do func() error) error {
	if s.hook != nil {
		if err := s.hook(false); err != nil {
			return err
		}
	}
	if err := do(); err != nil {
		return translate(err)
	}
	if s.hook != nil {
		return s.hook(true)
	}
	return nil
}

// command makes one write command, which changes all or nothing that it is about.
func (s *Store) command(ctx context.Context, do func() error) error {
	return s.write(ctx, func() error { return withoutClash(ctx, do) })
}

// insert inserts documents in one command; those whose keys are taken are left out, and it returns how many of them that were.
func (s *Store) insert(ctx context.Context, c *mongo.Collection, docs ...any) (taken int, err error) {
	if len(docs) == 0 {
		return 0, nil
	}
	err = s.write(ctx, func() error {
		for clashed := 1; ; clashed++ {
			err := withoutClash(ctx, func() error {
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
				case isClash(e) && clashed < clashes:
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

// updateOne changes one document and reports whether there was one to change.
func (s *Store) updateOne(ctx context.Context, c *mongo.Collection, filter, update any) (matched bool, err error) {
	err = s.command(ctx, func() error {
		res, err := c.UpdateOne(ctx, filter, update)
		if err == nil {
			matched = res.MatchedCount > 0
		}
		return err
	})
	return matched, err
}

// upsert changes a document, or makes it.
func (s *Store) upsert(ctx context.Context, c *mongo.Collection, filter, update any) error {
	return s.command(ctx, func() error { return upsertOne(ctx, c, filter, update) })
}

// upsertOne is upsert without the hook. If several processes make a document at once, the server
// tells all but one that its key is taken; these then change that document.
func upsertOne(ctx context.Context, c *mongo.Collection, filter, update any) (err error) {
	for range tries {
		if _, err = c.UpdateOne(ctx, filter, update, options.UpdateOne().SetUpsert(true)); !mongo.IsDuplicateKeyError(err) {
			break
		}
	}
	return err
}

// updateMany changes documents and returns how many there were.
func (s *Store) updateMany(ctx context.Context, c *mongo.Collection, filter, update any) (matched int, err error) {
	err = s.command(ctx, func() error {
		res, err := c.UpdateMany(ctx, filter, update)
		if err == nil {
			matched = int(res.MatchedCount)
		}
		return err
	})
	return matched, err
}

// remove deletes documents and returns how many there were.
func (s *Store) remove(ctx context.Context, c *mongo.Collection, filter any) (n int, err error) {
	err = s.command(ctx, func() error {
		res, err := c.DeleteMany(ctx, filter)
		if err == nil {
			n = int(res.DeletedCount)
		}
		return err
	})
	return n, err
}

// query says what find is to return; zero fields say nothing.
type query struct {
	fields bson.D
	sort   bson.D
	skip   int
	limit  int
	batch  int // of each: documents in one answer; 0: addAtOnce
	hint   string
}

func (q *query) options() *options.FindOptionsBuilder {
	o := options.Find()
	if q.fields != nil {
		o.SetProjection(q.fields)
	}
	if q.sort != nil {
		o.SetSort(q.sort)
	}
	if q.hint != "" {
		o.SetHint(q.hint)
	}
	if q.skip > 0 {
		o.SetSkip(int64(q.skip))
	}
	if q.limit > 0 {
		return o.SetLimit(int64(q.limit)).SetBatchSize(int32(min(q.limit, math.MaxInt32)))
	}
	return o.SetBatchSize(100_000)
}

// find returns the documents that match. It takes them in one answer as far as they fit into one.
func find[T any](ctx context.Context, c *mongo.Collection, filter any, q query) ([]T, error) {
	cursor, err := c.Find(ctx, filter, q.options())
	if err != nil {
		return nil, translate(err)
	}
	found, err := all[T](ctx, cursor)
	if err != nil {
		return nil, translate(err)
	}
	return found, nil
}

// wholeBytes is about how many bytes of whole tasks are read, or written, at a time: of one answer, which has at most 16 MiB, nearly all. With
// what is made of them a round has several times as much in memory.
const wholeBytes = 15 << 20

// findSome is find that stops at wholeBytes, and reports whether it did: then there may be more.
func findSome[T any](ctx context.Context, c *mongo.Collection, filter any, q query) (found []T, more bool, err error) {
	cursor, err := c.Find(ctx, filter, q.options())
	if err != nil {
		return nil, false, translate(err)
	}
	defer cursor.Close(context.WithoutCancel(ctx))
	for size := 0; cursor.Next(ctx); {
		var v T
		if err := decode(cursor.Current, &v); err != nil {
			return nil, false, translate(err)
		}
		found = append(found, v)
		if size += len(cursor.Current); size >= wholeBytes {
			return found, true, nil
		}
	}
	return found, false, translate(cursor.Err())
}

// each calls do with each document that matches, until that returns an error, and keeps only those of one answer.
func each[T any](ctx context.Context, c *mongo.Collection, filter any, q query, do func(*T) error) error {
	cursor, err := c.Find(ctx, filter, q.options().SetBatchSize(int32(cmp.Or(q.batch, addAtOnce))))
	if err != nil {
		return translate(err)
	}
	defer cursor.Close(context.WithoutCancel(ctx))
	for cursor.Next(ctx) {
		var v T
		if err := decode(cursor.Current, &v); err != nil {
			return translate(err)
		}
		if err := do(&v); err != nil {
			return err
		}
	}
	return translate(cursor.Err())
}

// findOne returns the document that matches, nil if there is none.
func findOne[T any](ctx context.Context, c *mongo.Collection, filter any, q query) (*T, error) {
	q.limit = 1
	found, err := find[T](ctx, c, filter, q)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// aggregate returns what a pipeline makes of a collection.
func aggregate[T any](ctx context.Context, c *mongo.Collection, pipeline bson.A) ([]T, error) {
	cursor, err := c.Aggregate(ctx, pipeline, options.Aggregate().SetBatchSize(10_000))
	if err != nil {
		return nil, translate(err)
	}
	out, err := all[T](ctx, cursor)
	if err != nil {
		return nil, translate(err)
	}
	return out, nil
}

// union is the stage of a pipeline that adds what another one makes of a collection.
func union(c *mongo.Collection, pipeline bson.A) bson.D {
	return d("$unionWith", d("coll", c.Name(), "pipeline", pipeline))
}

// tries is how often a claimer that others outran looks for other tasks.
const tries = 4

// addAtOnce is how many tasks one command inserts, or reads to check them.
const addAtOnce = 1000

// noFile reads plans without their files, which may be large.
var noFile = query{fields: d("file", 0)}
