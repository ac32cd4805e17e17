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
