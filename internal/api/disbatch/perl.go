package disbatch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/seed-1177d267/sluice/internal/jsontext"
	"github.com/seed-1177d267/sluice/plan"
)

// object and list are what answers are made of.
type (
	object = map[string]any
	list   = []any
)

// encode writes a value as the JSON of Perl's Cpanel::JSON::XS, with sorted keys. The plain form is
// one line without a newline. The pretty form has an indent of three spaces, blanks around colons,
// and a newline. Ids are {"$oid"}, and instants are 2019-01-23T19:42:56 in UTC.
func encode(v any, pretty bool) []byte {
	e := encoder{pretty: pretty}
	e.value(v, 0)
	if pretty {
		e.b = append(e.b, '\n')
	}
	return e.b
}

type encoder struct {
	b      []byte
	pretty bool
}

func (e *encoder) value(v any, depth int) {
	switch v := v.(type) {
	case nil:
		e.b = append(e.b, "null"...)
	case bool:
		e.b = strconv.AppendBool(e.b, v)
	case string:
		e.text(v)
	case int:
		e.b = strconv.AppendInt(e.b, int64(v), 10)
	case int64:
		e.b = strconv.AppendInt(e.b, v, 10)
	case float64:
		e.float(v)
	case json.Number:
		e.b = append(e.b, v...)
	case json.RawMessage:
		inner, err := jsontext.Decode(v)
		if err != nil {
			inner = nil
		}
		e.value(inner, depth)
	case plan.ID:
		e.value(object{"$oid": v.String()}, depth)
	case time.Time:
		e.text(instant(v))
	case []string:
		e.items(len(v), depth, func(i int) { e.text(v[i]) })
	case [][]string:
		e.items(len(v), depth, func(i int) { e.value(v[i], depth+1) })
	case list:
		e.items(len(v), depth, func(i int) { e.value(v[i], depth+1) })
	case object:
		e.members(v, depth)
	default:
		e.text(fmt.Sprint(v))
	}
}

// instant is how Perl's DateTime prints itself.
func instant(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05") }

func (e *encoder) float(f float64) {
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		e.b = append(e.b, "null"...)
	case math.Abs(f) < 1e15:
		e.b = strconv.AppendFloat(e.b, f, 'f', -1, 64)
	default:
		e.b = strconv.AppendFloat(e.b, f, 'g', -1, 64)
	}
}

func (e *encoder) items(n, depth int, item func(i int)) {
	e.b = append(e.b, '[')
	for i := range n {
		e.next(i, depth+1)
		item(i)
	}
	e.end(n, depth, ']')
}

func (e *encoder) members(v object, depth int) {
	e.b = append(e.b, '{')
	for i, name := range slices.Sorted(maps.Keys(v)) {
		e.next(i, depth+1)
		e.text(name)
		if e.pretty {
			e.b = append(e.b, " : "...)
		} else {
			e.b = append(e.b, ':')
		}
		e.value(v[name], depth+1)
	}
	e.end(len(v), depth, '}')
}

// next begins an item or a member.
func (e *encoder) next(i, depth int) {
	if i > 0 {
		e.b = append(e.b, ',')
	}
	e.line(depth)
}

func (e *encoder) end(n, depth int, closing byte) {
	if n > 0 {
		e.line(depth)
	}
	e.b = append(e.b, closing)
}

func (e *encoder) line(depth int) {
	if e.pretty {
		e.b = append(append(e.b, '\n'), bytes.Repeat([]byte("   "), depth)...)
	}
}

func (e *encoder) text(s string) {
	if !utf8.ValidString(s) {
		s = string([]rune(s)) // in which U+FFFD stands for each byte that is no UTF-8
	}
	e.b = jsontext.AppendText(e.b, s)
}
