package wire

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// D makes a document of keys and values in turn.
//
//go:noinline
func D(pairs ...any) bson.D {
	doc := make(bson.D, 0, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		doc = append(doc, bson.E{Key: pairs[i].(string), Value: pairs[i+1]})
	}
	return doc
}

// AnyOf matches a field that is one of the values, by a partial index of documents that have it: PostgreSQL does not see of more than a
// hundred values that they say so themselves, and reads the whole index.
func AnyOf(values any) bson.D { return Present(D("$in", values)) }

// Present matches a field by a partial index of documents that have it. By another index it would match all of these.
func Present(match bson.D) bson.D { return append(D("$exists", true), match...) }

// OrNone matches a field by its value, or, if that is zero, one that is not there as well.
func OrNone[T comparable](v T) any {
	var zero T
	if v == zero {
		return D("$in", bson.A{zero, nil})
	}
	return v
}

// ValueOf returns a field as it stands; one that is missing is null, which a filter finds equal.
func ValueOf(doc bson.Raw, field string) any {
	if v, err := doc.LookupErr(field); err == nil {
		return v
	}
	return nil
}

// Addressable matches ids as Sluice knows them; a task that another program gave another id cannot be named.
var Addressable = D("$gte", bson.NilObjectID)

// Nap waits.
func Nap(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
