package mongodb

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/seed-1177d267/sluice/internal/jsontext"
	"github.com/seed-1177d267/sluice/plan"
)

// Params are a document, as Disbatch has them, so that any program can read and query them. JSON that a document cannot hold without
// loss (numbers that are neither 64-bit integers nor written as a float prints itself, names with dots, and a few rarer things) is kept
// as text beside it, and then the text is what counts.

// maxDepth is how deep documents are nested at most; the server's own limit is 100.
const maxDepth = 80

// encodeParams makes a document of a JSON object. exact is false if the way back would not give the same object.
func encodeParams(params json.RawMessage) (doc document, exact bool, err error) {
	if params = bytes.TrimSpace(params); len(params) == 0 || string(params) == "null" {
		return bsoncore.BuildDocument(nil), true, nil
	}
	dec := json.NewDecoder(bytes.NewReader(params))
	dec.UseNumber()
	if first, err := dec.Token(); err != nil || first != json.Delim('{') {
		return nil, false, fmt.Errorf("params are not a JSON object: %.60q", []byte(params))
	}
	e := encoder{dec: dec, exact: true}
	at, dst := bsoncore.AppendDocumentStart(nil)
	if dst, err = e.object(dst, 1); err != nil {
		return nil, false, fmt.Errorf("params: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, false, fmt.Errorf("params are more than a JSON object: %.60q", []byte(params))
	}
	if dst, err = bsoncore.AppendDocumentEnd(dst, at); err != nil {
		return nil, false, fmt.Errorf("params: %w", err)
	}
	return dst, e.exact, nil
}

type encoder struct {
	dec   *json.Decoder
	exact bool
}

// object appends the members of an object whose opening brace was read.
func (e *encoder) object(dst []byte, depth int) ([]byte, error) {
	var keys map[string]bool
	for e.dec.More() {
		t, err := e.dec.Token()
		if err != nil {
			return nil, err
		}
		key := t.(string) // Decoder makes sure of that
		if keys == nil {
			keys = map[string]bool{}
		}
		if keys[key] || strings.HasPrefix(key, "$") || strings.ContainsAny(key, ".\x00\uFFFD") || depth > maxDepth {
			e.exact = false
			var skipped json.RawMessage
			if err := e.dec.Decode(&skipped); err != nil {
				return nil, err
			}
			continue
		}
		keys[key] = true
		if dst, err = e.value(dst, key, depth); err != nil {
			return nil, err
		}
	}
	_, err := e.dec.Token() // the closing brace
	return dst, err
}

// value appends the next value as an element.
func (e *encoder) value(dst []byte, key string, depth int) ([]byte, error) {
	t, err := e.dec.Token()
	if err != nil {
		return nil, err
	}
	switch v := t.(type) {
	case json.Delim:
		var at int32
		if v == '{' {
			at, dst = bsoncore.AppendDocumentElementStart(dst, key)
			dst, err = e.object(dst, depth+1)
		} else {
			at, dst = bsoncore.AppendArrayElementStart(dst, key)
			dst, err = e.array(dst, depth+1)
		}
		if err != nil {
			return nil, err
		}
		return bsoncore.AppendDocumentEnd(dst, at)
	case string:
		e.exact = e.exact && !strings.ContainsRune(v, utf8.RuneError)
		return bsoncore.AppendStringElement(dst, key, v), nil
	case json.Number:
		return e.number(dst, key, string(v)), nil
	case bool:
		return bsoncore.AppendBooleanElement(dst, key, v), nil
	}
	return bsoncore.AppendNullElement(dst, key), nil
}

func (e *encoder) array(dst []byte, depth int) ([]byte, error) {
	for i := 0; e.dec.More(); i++ {
		if depth > maxDepth {
			e.exact = false
			var skipped json.RawMessage
			if err := e.dec.Decode(&skipped); err != nil {
				return nil, err
			}
			continue
		}
		var err error
		if dst, err = e.value(dst, strconv.Itoa(i), depth); err != nil {
			return nil, err
		}
	}
	_, err := e.dec.Token() // the closing bracket
	return dst, err
}

func (e *encoder) number(dst []byte, key, literal string) []byte {
	if i, err := strconv.ParseInt(literal, 10, 64); err == nil {
		e.exact = e.exact && literal != "-0"
		if i >= math.MinInt32 && i <= math.MaxInt32 {
			return bsoncore.AppendInt32Element(dst, key, int32(i))
		}
		return bsoncore.AppendInt64Element(dst, key, i)
	}
	f, err := strconv.ParseFloat(literal, 64)
	e.exact = e.exact && err == nil && string(appendFloat(nil, f)) == literal
	return bsoncore.AppendDoubleElement(dst, key, f)
}

// appendFloat writes a float so that it is told from an integer.
func appendFloat(out []byte, f float64) []byte {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return append(out, "null"...)
	}
	start := len(out)
	out = strconv.AppendFloat(out, f, 'g', -1, 64)
	if !bytes.ContainsAny(out[start:], ".e") {
		out = append(out, ".0"...)
	}
	return out
}

// decodeParams makes a JSON object of a document. Values that JSON does not have (dates, ids)
// become MongoDB's extended JSON.
func decodeParams(doc document) (json.RawMessage, error) {
	if len(doc) == 0 {
		return nil, nil
	}
	return appendDocument(make([]byte, 0, len(doc)), bson.Raw(doc), '{', '}')
}

func appendDocument(out []byte, doc bson.Raw, left, right byte) ([]byte, error) {
	elements, err := doc.Elements()
	if err != nil {
		return nil, fmt.Errorf("params: %w", err)
	}
	out = append(out, left)
	for i, e := range elements {
		if i > 0 {
			out = append(out, ',')
		}
		if left == '{' {
			out = append(appendString(out, e.Key()), ':')
		}
		if out, err = appendValue(out, e.Value()); err != nil {
			return nil, err
		}
	}
	return append(out, right), nil
}

func appendValue(out []byte, v bson.RawValue) ([]byte, error) {
	switch v.Type {
	case bson.TypeEmbeddedDocument:
		return appendDocument(out, v.Document(), '{', '}')
	case bson.TypeArray:
		return appendDocument(out, bson.Raw(v.Array()), '[', ']')
	case bson.TypeString:
		return appendString(out, v.StringValue()), nil
	case bson.TypeInt32:
		return strconv.AppendInt(out, int64(v.Int32()), 10), nil
	case bson.TypeInt64:
		return strconv.AppendInt(out, v.Int64(), 10), nil
	case bson.TypeDouble:
		return appendFloat(out, v.Double()), nil
	case bson.TypeBoolean:
		return strconv.AppendBool(out, v.Boolean()), nil
	case bson.TypeNull, bson.TypeUndefined:
		return append(out, "null"...), nil
	}
	if text := v.String(); json.Valid([]byte(text)) {
		return append(out, text...), nil
	}
	return append(out, "null"...), nil
}

func appendString(out []byte, s string) []byte {
	text, _ := jsontext.Marshal(s) // a string is always JSON
	return append(out, text...)
}

// text is bytes that are text nearly always, JSON or what a task printed: kept as a string if they are, else as binary data.
type text []byte

// MarshalBSONValue implements bson.ValueMarshaler.
func (t text) MarshalBSONValue() (byte, []byte, error) {
	if utf8.Valid(t) {
		return byte(bson.TypeString), bsoncore.AppendString(nil, string(t)), nil
	}
	return byte(bson.TypeBinary), bsoncore.AppendBinary(nil, 0, t), nil
}

// UnmarshalBSONValue implements bson.ValueUnmarshaler.
func (t *text) UnmarshalBSONValue(typ byte, data []byte) error {
	switch v := (bson.RawValue{Type: bson.Type(typ), Value: data}); v.Type {
	case bson.TypeString:
		*t = text(v.StringValue())
	case bson.TypeBinary:
		_, b := v.Binary()
		*t = bytes.Clone(b)
	default:
		*t = nil
	}
	return nil
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
