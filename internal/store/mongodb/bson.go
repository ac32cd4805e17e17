package mongodb

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// d makes a document of keys and values in turn.
//
//go:noinline
func d(pairs ...any) bson.D {
	doc := make(bson.D, 0, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		doc = append(doc, bson.E{Key: pairs[i].(string), Value: pairs[i+1]})
	}
	return doc
}

// anyOf matches a field that is one of the values, by a partial index of documents that have it: PostgreSQL does not see of more than a
// hundred values that they say so themselves, and reads the whole index.
func anyOf(values bson.A) bson.D { return present(d("$in", values)) }

// present matches a field by a partial index of documents that have it. By another index it would match all of these.
func present(match bson.D) bson.D { return append(d("$exists", true), match...) }

// orNone matches a field by its value, or, if that is zero, one that is not there as well.
func orNone[T comparable](v T) any {
	var zero T
	if v == zero {
		return d("$in", bson.A{zero, nil})
	}
	return v
}

// valueOf returns a field as it stands; one that is missing is null, which a filter finds equal.
func valueOf(doc bson.Raw, field string) any {
	if v, err := doc.LookupErr(field); err == nil {
		return v
	}
	return nil
}

// addressable matches ids as Sluice knows them; a task that another program gave another id cannot be named.
var addressable = d("$gte", bson.NilObjectID)

// nap waits.
func nap(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
