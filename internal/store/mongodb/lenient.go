package mongodb

import (
	"bytes"
	"reflect"
	"strconv"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Other programs write to the same collections, and one document with a field of another type must not keep everybody from reading the
// others. Such a field is read as if it were not there.

// registry decodes ids and dates so.
func registry() *bson.Registry {
	r := bson.NewRegistry()
	r.RegisterTypeDecoder(reflect.TypeFor[bson.ObjectID](), bson.ValueDecoderFunc(
		func(_ bson.DecodeContext, vr bson.ValueReader, v reflect.Value) error {
			if vr.Type() != bson.TypeObjectID {
				v.SetZero()
				return vr.Skip()
			}
			id, err := vr.ReadObjectID()
			v.Set(reflect.ValueOf(id))
			return err
		}))
	r.RegisterTypeDecoder(reflect.TypeFor[time.Time](), bson.ValueDecoderFunc(
		func(_ bson.DecodeContext, vr bson.ValueReader, v reflect.Value) error {
			if vr.Type() != bson.TypeDateTime {
				v.SetZero()
				return vr.Skip()
			}
			ms, err := vr.ReadDateTime()
			v.Set(reflect.ValueOf(time.UnixMilli(ms).UTC()))
			return err
		}))
	return r
}

// document is an embedded document.
type document []byte

// MarshalBSONValue implements bson.ValueMarshaler.
func (d document) MarshalBSONValue() (byte, []byte, error) {
	if len(d) == 0 {
		return byte(bson.TypeNull), nil, nil
	}
	return byte(bson.TypeEmbeddedDocument), d, nil
}

// UnmarshalBSONValue implements bson.ValueUnmarshaler.
func (d *document) UnmarshalBSONValue(typ byte, data []byte) error {
	if *d = nil; bson.Type(typ) == bson.TypeEmbeddedDocument {
		*d = bytes.Clone(data)
	}
	return nil
}

// count is a number that a person set, or null. Older tools write it as text.
type count struct {
	n   int
	set bool
}

// UnmarshalBSONValue implements bson.ValueUnmarshaler.
func (c *count) UnmarshalBSONValue(typ byte, data []byte) error {
	*c = count{}
	v := bson.RawValue{Type: bson.Type(typ), Value: data}
	if n, ok := v.AsInt64OK(); ok {
		*c = count{int(n), true}
	} else if s, ok := v.StringValueOK(); ok {
		n, err := strconv.Atoi(s)
		*c = count{n, err == nil}
	}
	return nil
}
