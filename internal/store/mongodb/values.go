package mongodb

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/plan"
)

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
	if n, ok := v.AsFloat64OK(); ok && !math.IsNaN(n) {
		*c = count{int(min(max(n, math.MinInt32), math.MaxInt32)), true}
	} else if s, ok := v.StringValueOK(); ok {
		n, err := strconv.Atoi(s)
		*c = count{n, err == nil}
	}
	return nil
}

// word is text that a person chose. Some programs write text that looks like a number as a number.
type word string

// UnmarshalBSONValue implements bson.ValueUnmarshaler.
func (w *word) UnmarshalBSONValue(typ byte, data []byte) error {
	*w = ""
	v := bson.RawValue{Type: bson.Type(typ), Value: data}
	if s, ok := v.StringValueOK(); ok {
		*w = word(s)
	} else if n, ok := v.AsFloat64OK(); ok {
		*w = word(strconv.FormatFloat(n, 'f', -1, 64))
	}
	return nil
}

// nodeNames is a list of names of nodes, or a single one as people write it. Values that are not
// text are left out.
type nodeNames []plan.NodeName

// UnmarshalBSONValue implements bson.ValueUnmarshaler.
func (l *nodeNames) UnmarshalBSONValue(typ byte, data []byte) error {
	*l = nil
	v := bson.RawValue{Type: bson.Type(typ), Value: data}
	if s, ok := v.StringValueOK(); ok {
		*l = nodeNames{plan.NodeName(s)}
		return nil
	}
	list, ok := v.ArrayOK()
	if !ok {
		return nil
	}
	items, err := list.Values()
	for _, item := range items {
		if s, ok := item.StringValueOK(); ok {
			*l = append(*l, plan.NodeName(s))
		}
	}
	return err
}

// given is the params of a task: an embedded document, or what another program wrote instead.
type given struct {
	document
	other bson.RawValue
}

// MarshalBSONValue implements bson.ValueMarshaler.
func (g given) MarshalBSONValue() (byte, []byte, error) {
	if len(g.document) == 0 && g.other.Type != 0 {
		return byte(g.other.Type), g.other.Value, nil
	}
	return g.document.MarshalBSONValue()
}

// UnmarshalBSONValue implements bson.ValueUnmarshaler.
func (g *given) UnmarshalBSONValue(typ byte, data []byte) error {
	if g.other = (bson.RawValue{}); bson.Type(typ) != bson.TypeEmbeddedDocument {
		g.other = bson.RawValue{Type: bson.Type(typ), Value: bytes.Clone(data)}
	}
	return g.document.UnmarshalBSONValue(typ, data)
}

// isNone reports whether there are no params at all.
func (g *given) isNone() bool {
	return len(g.document) == 0 && (g.other.Type == 0 || g.other.Type == bson.TypeNull || g.other.Type == bson.TypeUndefined)
}

// json returns the params as JSON, also if they are no object; none as nil.
func (g *given) json() (json.RawMessage, error) {
	if g.isNone() {
		return nil, nil
	}
	if len(g.document) > 0 {
		return decodeParams(g.document)
	}
	if s, ok := g.other.StringValueOK(); ok && isObject([]byte(s)) { // as JSON, which programs in Perl may have to begin with
		return json.RawMessage(s), nil
	}
	return appendValue(nil, g.other)
}

// isObject reports whether a text is a JSON object.
func isObject(s []byte) bool {
	return bytes.HasPrefix(bytes.TrimSpace(s), []byte("{")) && json.Valid(s)
}
