package wire

import (
	"cmp"
	"context"
	"math"
	"reflect"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// Other programs write to the same collections, and one document with a field of another type must not keep everybody from reading the
// others. Such a field is read as if it were not there.

// types decodes ids, dates and codes so.
var types = registry()

func registry() *bson.Registry {
	r := bson.NewRegistry()
	decode(r, func(vr bson.ValueReader) (id bson.ObjectID, err error) {
		if vr.Type() != bson.TypeObjectID {
			return id, vr.Skip()
		}
		return vr.ReadObjectID()
	})
	decode(r, func(vr bson.ValueReader) (at time.Time, err error) {
		if vr.Type() != bson.TypeDateTime {
			return at, vr.Skip()
		}
		ms, err := vr.ReadDateTime()
		return time.UnixMilli(ms).UTC(), err
	})
	decode(r, func(vr bson.ValueReader) (plan.Status, error) {
		n, err := readNumber(vr)
		return rules.StatusOf(n, isCode(n)), err
	})
	decode(r, func(vr bson.ValueReader) (plan.Lifecycle, error) {
		if n, err := readNumber(vr); err != nil || isCode(n) {
			return plan.Lifecycle(n), err
		}
		return plan.PlanUnknown, nil
	})
	return r
}

// decode has values of a type read in this way.
func decode[T any](r *bson.Registry, read func(bson.ValueReader) (T, error)) {
	r.RegisterTypeDecoder(reflect.TypeFor[T](), bson.ValueDecoderFunc(func(_ bson.DecodeContext, vr bson.ValueReader, v reflect.Value) error {
		is, err := read(vr)
		v.Set(reflect.ValueOf(is))
		return err
	}))
}

// readNumber reads a number; NaN is no number.
func readNumber(vr bson.ValueReader) (float64, error) {
	switch vr.Type() {
	case bson.TypeInt32:
		n, err := vr.ReadInt32()
		return float64(n), err
	case bson.TypeInt64:
		n, err := vr.ReadInt64()
		return float64(n), err
	case bson.TypeDouble:
		return vr.ReadDouble()
	}
	return math.NaN(), vr.Skip()
}

func isCode(n float64) bool { return n == math.Trunc(n) && n > math.MinInt32 && n <= math.MaxInt32 }

// odd is what a document says that has fields of another type.
type odd interface{ Lacks(fields []string) }

// bounded is what a document says that has numbers, or places, of items or joins.
type bounded interface{ Bound() }

// Within makes such numbers sane, which lists are made by: one that no task can have is read as if it were not there.
func Within(numbers ...*int) {
	for _, n := range numbers {
		if *n < 0 || *n > plan.MaxItems {
			*n = 0
		}
	}
}

// Decode fills v from a document, without the fields that are of another type than v has, or beyond their bounds.
func Decode(raw bson.Raw, v any) error {
	err := decodeFields(raw, v)
	if b, ok := v.(bounded); ok {
		b.Bound()
	}
	return err
}

func decodeFields(raw bson.Raw, v any) error {
	err := unmarshal(raw, v)
	if err == nil {
		return nil
	}
	fits := func(doc bson.Raw) bool {
		return unmarshal(doc, reflect.New(reflect.TypeOf(v).Elem()).Interface()) == nil
	}
	left, fields, broken := sift(raw, fits, func(doc bson.Raw) bson.Raw { return doc })
	if broken != nil {
		return err
	}
	reflect.ValueOf(v).Elem().SetZero()
	if err := unmarshal(left, v); err != nil {
		return err
	}
	if o, ok := v.(odd); ok {
		o.Lacks(fields)
	}
	return nil
}

// unmarshal decodes a document as a value: a decoder of a stream has a buffer of 4 KiB for each document.
func unmarshal(raw bson.Raw, v any) error {
	return bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: raw}.UnmarshalWithRegistry(types, v)
}

// sift returns a document without what does not fit, and the keys of that. whole puts the document back into the one that it is a part of.
func sift(part bson.Raw, fits func(bson.Raw) bool, whole func(bson.Raw) bson.Raw) (left bson.Raw, fields []string, err error) {
	elements, err := part.Elements()
	if err != nil {
		return nil, nil, err
	}
	var kept [][]byte
	for _, e := range elements {
		if fits(whole(bsoncore.BuildDocument(nil, e))) {
			kept = append(kept, e)
			continue
		}
		if inner, ok := e.Value().DocumentOK(); ok {
			around := func(doc bson.Raw) bson.Raw {
				return bsoncore.BuildDocument(nil, bsoncore.AppendDocumentElement(nil, e.Key(), doc))
			}
			some, _, err := sift(inner, fits, func(doc bson.Raw) bson.Raw { return whole(around(doc)) })
			if err == nil && fits(whole(around(some))) {
				kept = append(kept, bsoncore.AppendDocumentElement(nil, e.Key(), some))
			}
		}
		fields = append(fields, e.Key())
	}
	return bsoncore.BuildDocument(nil, kept...), fields, nil
}

// All decodes what a cursor has, and closes it.
func All[T any](ctx context.Context, cursor *mongo.Cursor) (found []T, err error) {
	defer func() { err = cmp.Or(err, cursor.Close(context.WithoutCancel(ctx))) }()
	for cursor.Next(ctx) {
		var v T
		if err := Decode(cursor.Current, &v); err != nil {
			return nil, err
		}
		found = append(found, v)
	}
	return found, cursor.Err()
}
