// Package jsontext reads, writes, compares and shows JSON values as text.
package jsontext

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Marshal writes JSON without the escapes that HTML would need.
func Marshal(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// AppendText writes a text as JSON, with no escapes but those that JSON needs.
func AppendText(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	if !utf8.ValidString(s) {
		text, _ := Marshal(s) // of nothing that could fail
		return append(b, text...)
	}
	b = append(b, '"')
	from := 0
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[from:i]...)
		from = i + 1
		switch at := strings.IndexByte("\"\\\b\f\n\r\t", c); {
		case at >= 0:
			b = append(b, '\\', `"\bfnrt`[at])
		default:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xF])
		}
	}
	b = append(b, s[from:]...)
	return append(b, '"')
}

// TextOf returns the text that a JSON value is.
func TextOf(value json.RawMessage) (text string, ok bool) {
	value = bytes.TrimSpace(value)
	if len(value) < 2 || value[0] != '"' {
		return "", false
	}
	inner := value[1 : len(value)-1]
	i := 0
	for i < len(inner) && inner[i] >= ' ' && inner[i] <= '~' && inner[i] != '"' && inner[i] != '\\' {
		i++
	}
	if i == len(inner) && value[len(value)-1] == '"' {
		return string(inner), true // mostly
	}
	return text, json.Unmarshal(value, &text) == nil
}

// Same reports whether two texts are the same JSON value, however they spell it: stores may have a spelling of their own. No text at all
// is the same as no other one.
func Same(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var values [2]any
	for i, raw := range []json.RawMessage{a, b} {
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.UseNumber()
		if dec.Decode(&values[i]) != nil {
			return false
		}
	}
	return reflect.DeepEqual(values[0], values[1])
}

// Decode decodes one JSON value, whose numbers stay as they are written.
func Decode(value json.RawMessage) (v any, err error) {
	dec := json.NewDecoder(bytes.NewReader(value))
	dec.UseNumber()
	if err = dec.Decode(&v); err == nil && dec.More() {
		err = fmt.Errorf("more than one JSON value")
	}
	return v, err
}

// Valid reports whether b is one JSON value. That is UTF-8 (RFC 8259, 8.1), which json.Valid does not look at, and which other programs,
// and some stores, insist on.
func Valid(b []byte) bool { return json.Valid(b) && utf8.Valid(b) }

// Whole returns a valid text with \ufffd, the replacement character, for each half of a surrogate pair, such as
// \ud800 alone. encoding/json reads a half so. Other programs, jq among them, refuse the whole text for it.
func Whole(valid []byte) []byte {
	whole := valid
	for i := 0; ; {
		next := bytes.IndexByte(valid[i:], '\\')
		if next < 0 {
			return whole
		}
		i += next
		switch r := escaped(valid[i:]); {
		case !utf16.IsSurrogate(r):
			i += 2 // the digits of a number have no escape
		case utf16.DecodeRune(r, escaped(valid[i+6:])) != utf8.RuneError:
			i += 12
		default:
			if &whole[0] == &valid[0] {
				whole = bytes.Clone(valid)
			}
			i += copy(whole[i:], `\ufffd`)
		}
	}
}

// escaped returns the number that a valid text begins with, as in \u00e4, or -1.
func escaped(valid []byte) rune {
	if !bytes.HasPrefix(valid, []byte(`\u`)) {
		return -1
	}
	n, _ := strconv.ParseUint(string(valid[2:6]), 16, 16)
	return rune(n)
}

// Depth returns how deep arrays and objects lie within each other, or 0 where there are at most so many
// of them.
func Depth(valid []byte, most int) (deepest int) {
	if bytes.Count(valid, []byte("["))+bytes.Count(valid, []byte("{")) <= most {
		return 0
	}
	now, text := 0, false
	for i := 0; i < len(valid); i++ {
		switch c := valid[i]; {
		case c == '"':
			text = !text
		case text && c == '\\':
			i++ // the escaped byte
		case text:
		case c == '[', c == '{':
			now++
			deepest = max(deepest, now)
		case c == ']', c == '}':
			now--
		}
	}
	return deepest
}

// Twice returns the first name that an object in a valid text has twice, at any depth, or "". Such a
// text means one value to one reader and another value to the next (RFC 8259, 4), so requests are
// refused for it.
func Twice(valid []byte) (name string) {
	return TwiceAs(valid, func(name string) string { return name })
}

// TwiceAs is Twice for names of which several are the same to a reader. It returns the second of them.
func TwiceAs(valid []byte, same func(name string) string) string {
	type object struct {
		names map[string]bool // nil: it is an array
		at    bool            // a name comes next
	}
	var within []object
	for i := 0; i < len(valid); i++ {
		last := len(within) - 1
		switch c := valid[i]; c {
		case '{':
			within = append(within, object{map[string]bool{}, true})
		case '[':
			within = append(within, object{})
		case '}', ']':
			within = within[:last]
		case ',':
			within[last].at = within[last].names != nil
		case '"':
			begin := i
			for i++; valid[i] != '"'; i++ {
				if valid[i] == '\\' {
					i++ // the escaped byte
				}
			}
			if last < 0 || !within[last].at {
				continue // a value
			}
			name, _ := TextOf(valid[begin : i+1])
			if within[last].names[same(name)] {
				return name
			}
			within[last].names[same(name)], within[last].at = true, false
		}
	}
	return ""
}

// TwiceInCase returns a name of a valid object that it has in another case, too, or "". encoding/json takes both
// for the same field. Names in the objects within may be those of data, and are not looked at.
func TwiceInCase(valid []byte) string {
	members, _ := Object(valid) // else it is no object
	seen := map[string]bool{}
	for _, m := range members {
		lower := strings.ToLower(m.Name)
		if seen[lower] {
			return m.Name
		}
		seen[lower] = true
	}
	return ""
}

// Members are those of an object, in their order.
type Members []Member

// A Member is a name of an object and its value.
type Member struct {
	Name  string
	Value json.RawMessage
}

// Get returns the value of a name, the last one if the name is there twice, or nil.
func (m Members) Get(name string) json.RawMessage {
	for _, one := range slices.Backward(m) {
		if one.Name == name {
			return one.Value
		}
	}
	return nil
}

// Object returns the members of an object as encoding/json would read them, and nil for null. They share
// the memory of the text. encoding/json takes thrice as long, and a stack that most goroutines must grow for.
func Object(text json.RawMessage) (Members, error) {
	if !bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("{")) || !json.Valid(text) {
		var none map[string]json.RawMessage
		return nil, json.Unmarshal(text, &none)
	}
	return ObjectOf(text), nil
}

// ObjectOf is Object for a text that is known to be a valid object.
func ObjectOf(text json.RawMessage) Members {
	members := make(Members, 0, 4) // mostly enough
	var name string
	value, depth := 0, 0 // value is where that of the name begins
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '"':
			begin := i
			for i++; text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++ // the escaped byte
				}
			}
			if depth == 1 && value == 0 {
				name, _ = TextOf(text[begin : i+1])
			}
		case ':':
			if depth == 1 {
				value = i + 1
			}
		case '{', '[':
			depth++
		case ',', '}', ']':
			if depth == 1 && value > 0 {
				members, value = append(members, Member{name, bytes.TrimSpace(text[value:i:i])}), 0
			}
			if c != ',' {
				depth--
			}
		}
	}
	return members
}

// mostExcerpt is how many bytes a message shows of a value.
const mostExcerpt = 60

// Excerpt shows what may be anything.
func Excerpt(b []byte) string {
	if len(b) > mostExcerpt {
		return fmt.Sprintf("%q…", b[:mostExcerpt])
	}
	return fmt.Sprintf("%q", b)
}

// Brief shows JSON, as it is written.
func Brief(b []byte) string {
	if len(b) > mostExcerpt {
		return strings.ToValidUTF8(string(b[:mostExcerpt]), "") + "…"
	}
	return string(b)
}

// IsText reports whether a JSON value is a text.
func IsText(v json.RawMessage) bool {
	v = bytes.TrimSpace(v)
	return len(v) > 0 && v[0] == '"'
}

// Open returns params, a JSON object or nil, without some keys and without its end, ready for
// another key. It has room for so many bytes more.
func Open(params json.RawMessage, room int, without ...string) ([]byte, error) {
	params = bytes.TrimSpace(params)
	if len(params) == 0 || string(params) == "null" {
		params = json.RawMessage("{}")
	}
	if params[0] != '{' || params[len(params)-1] != '}' {
		return nil, fmt.Errorf("params are not a JSON object: %s", Excerpt(params))
	}
	if slices.ContainsFunc(without, func(key string) bool { return bytes.Contains(params, []byte(`"`+key+`"`)) }) {
		var m map[string]json.RawMessage
		if err := json.Unmarshal(params, &m); err != nil {
			return nil, fmt.Errorf("params are not a JSON object: %w", err)
		}
		for _, key := range without {
			delete(m, key)
		}
		params, _ = json.Marshal(m) // a map of raw values that were just decoded
	}
	out := append(make([]byte, 0, len(params)+room), params[:len(params)-1]...)
	if len(bytes.TrimSpace(out)) > 1 {
		out = append(out, ',')
	}
	return out, nil
}
