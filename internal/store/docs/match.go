package docs

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/internal/jsontext"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// Matches reports whether a document meets all conditions.
func Matches(doc store.Document, where []store.Condition) bool {
	for _, c := range where {
		if !holds(at(doc, strings.Split(c.Field, ".")), &c) {
			return false
		}
	}
	return true
}

// holds reports whether a condition holds of what was found at its field.
func holds(found []any, c *store.Condition) bool {
	one := slices.ContainsFunc(c.Any, func(want any) bool { return is(found, want) })
	switch c.Op {
	case store.AnyOf:
		return one
	case store.NoneOf:
		return !one
	case store.Exists:
		return (len(found) > 0) == (c.Any[0] == true)
	}
	return slices.ContainsFunc(found, func(v any) bool {
		order, comparable := compare(v, c.Any[0])
		switch {
		case !comparable:
			return false
		case c.Op == store.Above:
			return order > 0
		case c.Op == store.AtLeast:
			return order >= 0
		case c.Op == store.Below:
			return order < 0
		}
		return order <= 0
	})
}

// compare orders two numbers, texts, instants or ids. Values of two kinds, and of any other kind, have no order.
func compare(a, b any) (order int, comparable bool) {
	if x, ok := number(a); ok {
		y, ok := number(b)
		if !ok {
			return 0, false
		}
		return x.Cmp(y), true
	}
	switch a := a.(type) {
	case string:
		b, ok := b.(string)
		return cmp.Compare(a, b), ok
	case time.Time:
		b, ok := b.(time.Time)
		return cmp.Compare(a.UnixMilli(), b.UnixMilli()), ok
	case plan.ID:
		b, ok := b.(plan.ID)
		return bytes.Compare(a[:], b[:]), ok
	}
	return 0, false
}

// at returns what stands at a path, in each element of the lists on the way.
func at(v any, path []string) []any {
	switch v := v.(type) {
	case map[string]any:
		if len(path) > 0 {
			inner, there := v[path[0]]
			if !there {
				return nil
			}
			return at(inner, path[1:])
		}
	case []any:
		var found []any
		if len(path) == 0 {
			found = append(found, any(v))
		}
		for _, e := range v {
			if _, list := e.([]any); !list {
				found = append(found, at(e, path)...)
			}
		}
		return found
	}
	if len(path) > 0 {
		return nil
	}
	return []any{v}
}

func is(found []any, want any) bool {
	if want == nil {
		return len(found) == 0 || slices.Contains(found, nil)
	}
	return slices.ContainsFunc(found, func(v any) bool { return equal(v, want) })
}

// equal compares values as a database of documents does: numbers by what they are worth, everything else only with its own kind.
func equal(a, b any) bool {
	if text, ok := b.(json.RawMessage); ok {
		if _, ok := a.(map[string]any); !ok {
			return false
		}
		v, err := jsontext.Decode(text)
		return err == nil && equal(a, v)
	}
	if x, ok := number(a); ok {
		y, ok := number(b)
		return ok && x.Cmp(y) == 0
	}
	switch a := a.(type) {
	case time.Time:
		b, ok := b.(time.Time)
		return ok && a.UnixMilli() == b.UnixMilli()
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, equal)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equal)
	case plan.ID, string, bool, nil:
		return a == b
	}
	return reflect.DeepEqual(a, b)
}

// number returns the value of a number, or nil for a number with an expensive exponent.
func number(v any) (*big.Rat, bool) {
	switch v := v.(type) {
	case int64:
		return new(big.Rat).SetInt64(v), true
	case float64:
		r := new(big.Rat).SetFloat64(v)
		return r, r != nil
	case json.Number:
		if i := strings.IndexAny(string(v), "eE"); i >= 0 && len(v)-i > 5 || len(v) > 400 {
			return nil, false
		}
		return new(big.Rat).SetString(string(v))
	}
	return nil, false
}

// Project returns a document with the fields that a query wants.
func Project(doc store.Document, fields map[string]bool) store.Document {
	if len(fields) == 0 {
		return doc
	}
	if !Only(fields) {
		return cut(doc, fields, "")
	}
	out := store.Document{}
	for name, in := range fields {
		if in {
			pick(out, doc, strings.Split(name, "."))
		}
	}
	if in, said := fields["_id"]; in || !said {
		pick(out, doc, []string{"_id"})
	}
	return out
}

// cut copies what is not left out.
func cut(doc map[string]any, fields map[string]bool, before string) map[string]any {
	out := make(map[string]any, len(doc))
	for name, v := range doc {
		path := before + name
		if in, said := fields[path]; said && !in {
			continue
		}
		out[name] = cutInner(v, fields, path+".")
	}
	return out
}

func cutInner(v any, fields map[string]bool, before string) any {
	switch v := v.(type) {
	case map[string]any:
		return cut(v, fields, before)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = cutInner(v[i], fields, before)
		}
		return out
	}
	return v
}

// pick copies what stands at a path.
func pick(to, from map[string]any, path []string) {
	v, there := from[path[0]]
	switch inner, isDoc := v.(map[string]any); {
	case !there:
	case len(path) == 1:
		to[path[0]] = v
	case isDoc:
		into, _ := to[path[0]].(map[string]any)
		if into == nil {
			into = map[string]any{}
			to[path[0]] = into
		}
		pick(into, inner, path[1:])
	}
}

func sortedNames[K ~string, V any](m map[K]V) []K {
	return slices.SortedFunc(maps.Keys(m), func(a, b K) int { return cmp.Compare(a, b) })
}
