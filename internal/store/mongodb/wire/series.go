package wire

import (
	"cmp"
	"context"

	"go.mongodb.org/mongo-driver/v2/mongo"
)

// A Series is reads and writes one after the other. The first error stays: after it nothing is written, and nothing is found. A caller
// looks at Err once, at the end, and before it does anything else because of what was found, or because nothing was.
type Series struct {
	Err error

	conn *Conn
	ctx  context.Context
}

// Series begins one. Its methods are those of Conn.
func (w *Conn) Series(ctx context.Context) *Series { return &Series{conn: w, ctx: ctx} }

// Fail keeps the error, unless it is nil or there is one already.
func (s *Series) Fail(err error) { s.Err = cmp.Or(s.Err, err) }

// Do does something else that may fail.
func (s *Series) Do(do func(ctx context.Context) error) {
	if s.Err == nil {
		s.Err = do(s.ctx)
	}
}

// next returns what one of a series returns, or zero if one before it failed.
func next[T any](s *Series, do func(ctx context.Context) (T, error)) (v T) {
	s.Do(func(ctx context.Context) (err error) { v, err = do(ctx); return err })
	return v
}

func (s *Series) UpdateOne(c *mongo.Collection, filter, update any) (matched bool) {
	return next(s, func(ctx context.Context) (bool, error) { return s.conn.UpdateOne(ctx, c, filter, update) })
}

func (s *Series) UpdateMany(c *mongo.Collection, filter, update any) (matched int) {
	return next(s, func(ctx context.Context) (int, error) { return s.conn.UpdateMany(ctx, c, filter, update) })
}

func (s *Series) Remove(c *mongo.Collection, filter any) (n int) {
	return next(s, func(ctx context.Context) (int, error) { return s.conn.Remove(ctx, c, filter) })
}

func (s *Series) Insert(c *mongo.Collection, docs ...any) (taken int) {
	return next(s, func(ctx context.Context) (int, error) { return s.conn.Insert(ctx, c, docs...) })
}

func (s *Series) Bulk(c *mongo.Collection, changes []Change) (matched int) {
	return next(s, func(ctx context.Context) (int, error) { return s.conn.Bulk(ctx, c, changes) })
}

// FindIn is Find in a series.
func FindIn[T any](s *Series, c *mongo.Collection, filter any, q Query) []T {
	return next(s, func(ctx context.Context) ([]T, error) { return Find[T](ctx, c, filter, q) })
}
