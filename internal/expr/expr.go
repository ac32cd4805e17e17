// Package expr reads expressions, ${{ path }}, and replaces them by values.
package expr

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-1177d267/sluice/internal/jsontext"
)

// An expression is `${{ path }}`. The path is a word of scope and dotted steps into a JSON value,
// as in `needs.list.mailboxes` or `params.hosts.0`. A string that is one expression takes the
// value's type. Within a longer string, a string is written as it is and any other value as JSON.
// `${{ 'text' }}` is the text itself, as in GitHub Actions, with quotes in it doubled. So an author
// can write text that would otherwise be an expression.
//
// Only what an author wrote is an expression; what expressions lead to, and what comes from elsewhere, is data and never read as one.
// Where data gets into a text whose other expressions are replaced only later, it is put in quotes.
var expression = regexp.MustCompile(`\$\{\{\s*('(?:[^']|'')*'|.*?)\s*\}\}`)

var (
	pathSyntax  = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+|\.\*|\[\d+\])*$`)
	quoteSyntax = regexp.MustCompile(`^'(?:[^']|'')*'$`)
)

// Scope resolves the first of the steps of a path; ok is false for a path that it leaves for later.
type Scope func(steps []string) (value json.RawMessage, ok bool, err error)

// A piece of a text is an expression over a path, or text that is known: written so, or in quotes.
type piece struct {
	source string // as it is written
	over   bool   // it is an expression
	path   string // of the expression
	text   string // that is known
}

func pieces(s string) []piece {
	var all []piece
	from := 0
	for _, m := range expression.FindAllStringSubmatchIndex(s, -1) {
		if m[0] > from {
			all = append(all, piece{source: s[from:m[0]], text: s[from:m[0]]})
		}
		p := piece{source: s[m[0]:m[1]], path: s[m[2]:m[3]], over: true}
		if quoteSyntax.MatchString(p.path) {
			p = piece{source: p.source, text: strings.ReplaceAll(p.path[1:len(p.path)-1], "''", "'")}
		}
		all = append(all, p)
		from = m[1]
	}
	if from < len(s) {
		all = append(all, piece{source: s[from:], text: s[from:]})
	}
	return all
}

// Paths returns the paths of the expressions in a text.
func Paths(s string) []string {
	if !strings.Contains(s, "${{") {
		return nil
	}
	var paths []string
	for _, p := range pieces(s) {
		if p.over {
			paths = append(paths, p.path)
		}
	}
	return paths
}

// Unclosed returns what begins like an expression in a text and has no end, with all behind it; none if nothing does.
func Unclosed(s string) string {
	if !strings.Contains(s, "${{") {
		return ""
	}
	for _, p := range pieces(s) {
		if i := strings.Index(p.source, "${{"); i >= 0 && !p.over && p.text == p.source {
			return p.source[i:]
		}
	}
	return ""
}

// Has reports whether a text holds an expression over a path, or what begins like one and has no end.
func Has(s string) bool {
	return Paths(s) != nil || Unclosed(s) != ""
}

// Lead returns what a text begins with before its first expression.
func Lead(s string) string {
	var b strings.Builder
	for _, p := range pieces(s) {
		if p.over {
			break
		}
		b.WriteString(p.text)
	}
	return b.String()
}

// Quote returns the text so that it comes out as it is where an author's text stands, whatever it holds.
func Quote(s string) string {
	if !strings.Contains(s, "${{") {
		return s
	}
	return "${{ '" + strings.ReplaceAll(s, "'", "''") + "' }}"
}

// QuoteJSON returns a JSON value with Quote of all its texts but keys.
func QuoteJSON(value json.RawMessage) json.RawMessage {
	quoted, err := EachText(value, func(_ []string, s string) (json.RawMessage, error) {
		if q := Quote(s); q != s {
			return jsontext.Marshal(q)
		}
		return nil, nil
	})
	if err != nil {
		return value // no JSON: for others to say
	}
	return quoted
}

// UnquoteJSON is the reverse of QuoteJSON; ok is false if the value holds expressions over paths.
func UnquoteJSON(value json.RawMessage) (unquoted json.RawMessage, ok bool) {
	unquoted, err := EachText(value, func(_ []string, s string) (json.RawMessage, error) {
		if Paths(s) != nil {
			return nil, errNotKnown
		}
		return Evaluate(s, Nothing, false)
	})
	return unquoted, err == nil
}

var errNotKnown = errors.New("not known yet")

// Nothing is a scope that leaves everything for later.
func Nothing([]string) (json.RawMessage, bool, error) { return nil, false, nil }

// Substitute replaces the expressions in all texts of a JSON value, except its keys, whose scope knows the first word. The result still
// is an author's: what was put in is quoted where it could be read as an expression.
func Substitute(value json.RawMessage, scope Scope) (json.RawMessage, error) {
	return EachText(value, func(keys []string, s string) (json.RawMessage, error) {
		v, err := Evaluate(s, scope, true)
		return v, Under(keys, err)
	})
}

// Under says under which keys of a value something is wrong.
func Under(keys []string, err error) error {
	if err == nil || len(keys) == 0 {
		return err
	}
	return fmt.Errorf("%s: %w", strings.Join(keys, ": "), err)
}

// Evaluate returns the value of a text as JSON, or nil if it stays as it is. Expressions that its
// scope leaves for later stay. The known parts of such a text have to be quoted.
func Evaluate(s string, scope Scope, quote bool) (json.RawMessage, error) {
	if !strings.Contains(s, "${{") {
		return nil, nil
	}
	all := pieces(s)
	var out, known strings.Builder
	flush := func() {
		if quote {
			out.WriteString(Quote(known.String()))
		} else {
			out.WriteString(known.String())
		}
		known.Reset()
	}
	changed := false
	for _, p := range all {
		if !p.over {
			known.WriteString(p.text)
			changed = changed || p.text != p.source
			continue
		}
		value, ok, err := Lookup(p.path, scope)
		switch {
		case err != nil:
			return nil, err
		case !ok:
			flush()
			out.WriteString(p.source)
			continue
		case len(all) == 1 && quote:
			return QuoteJSON(value), nil
		case len(all) == 1:
			return value, nil
		}
		changed = true
		if text, is := jsontext.TextOf(value); is {
			known.WriteString(text)
		} else {
			known.Write(value)
		}
	}
	if !changed {
		return nil, nil
	}
	flush()
	return jsontext.Marshal(out.String())
}

// MayHold reports whether a text in the JSON can hold an expression. JSON can write its signs as escapes, too.
func MayHold(j []byte) bool {
	return bytes.Contains(j, []byte("${{")) || bytes.Contains(j, []byte(`\u00`))
}

// EachText calls f with each text of a JSON value that could hold an expression, with the keys that
// lead to it. Keys themselves are not passed. EachText returns the value with the results of f; nil
// leaves a text as it is. All else stays to the byte.
func EachText(value json.RawMessage, f func(keys []string, s string) (json.RawMessage, error)) (json.RawMessage, error) {
	if !MayHold(value) {
		return value, nil
	}
	if !json.Valid(value) {
		return nil, json.Unmarshal(value, new(json.RawMessage))
	}
	var out []byte
	var keys []string  // of the objects around, the innermost last
	var objects []bool // whether what is around is an object or a list, the innermost last
	from, key := 0, false
	for i := 0; i < len(value); i++ {
		switch value[i] {
		case '{':
			objects, keys, key = append(objects, true), append(keys, ""), true
		case '[':
			objects, key = append(objects, false), false
		case '}':
			objects, keys = objects[:len(objects)-1], keys[:len(keys)-1]
		case ']':
			objects = objects[:len(objects)-1]
		case ',':
			key = objects[len(objects)-1]
		case ':':
			key = false
		case '"':
			end := endOfText(value, i)
			raw := value[i:end]
			switch {
			case key:
				if err := json.Unmarshal(raw, &keys[len(keys)-1]); err != nil {
					return nil, err
				}
			case MayHold(raw):
				var s string
				if err := json.Unmarshal(raw, &s); err != nil {
					return nil, err
				}
				v, err := f(keys, s)
				if err != nil {
					return nil, err
				}
				if v != nil {
					out = append(append(out, value[from:i]...), v...)
					from = end
				}
			}
			i = end - 1
		}
	}
	if from == 0 {
		return value, nil
	}
	return append(out, value[from:]...), nil
}

// endOfText returns where the JSON text ends that begins at the byte.
func endOfText(j []byte, at int) int {
	for at++; j[at] != '"'; at++ {
		if j[at] == '\\' {
			at++
		}
	}
	return at + 1
}

// Lookup resolves a path; ok is false if the scope leaves it for later.
func Lookup(path string, scope Scope) (value json.RawMessage, ok bool, err error) {
	steps, err := Parse(path)
	if err != nil {
		return nil, false, err
	}
	value, ok, err = scope(steps)
	if err != nil || !ok {
		return nil, ok, err
	}
	if value, err = walk(value, steps, 1); err != nil {
		return nil, false, fmt.Errorf("${{ %s }}: %w", path, err)
	}
	return value, true, nil
}

// walk follows a path from the value at its step i - 1 on.
func walk(value json.RawMessage, steps []string, i int) (_ json.RawMessage, err error) {
	for ; i < len(steps); i++ {
		if steps[i] == "*" {
			return each(value, steps, i)
		}
		if value, err = descend(value, steps[i]); err != nil {
			return nil, fmt.Errorf("%s %w", strings.Join(steps[:i], "."), err)
		}
	}
	return value, nil
}

// each follows the rest of a path from each element of a list, and returns a list of the values: one
// level of a list of lists is flattened. Elements that are null give nothing: they are outputs of items
// that failed.
func each(value json.RawMessage, steps []string, i int) (json.RawMessage, error) {
	var elements []json.RawMessage
	if json.Unmarshal(value, &elements) != nil || elements == nil {
		return nil, fmt.Errorf("%s is no list, which .* goes over, but %s", strings.Join(steps[:i], "."), jsontext.Excerpt(bytes.TrimSpace(value)))
	}
	out := []byte{'['}
	add := func(v json.RawMessage) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, v...)
	}
	at := slices.Clone(steps)
	for n, element := range elements {
		if string(bytes.TrimSpace(element)) == "null" {
			continue
		}
		at[i] = strconv.Itoa(n) // for an error
		v, err := walk(element, at, i+1)
		if err != nil {
			return nil, err
		}
		var inner []json.RawMessage
		if json.Unmarshal(v, &inner) != nil || inner == nil {
			add(v)
			continue
		}
		for _, one := range inner {
			add(one)
		}
	}
	return append(out, ']'), nil
}

// Parse returns the steps of a path. A step * is each element of a list.
func Parse(path string) ([]string, error) {
	if !pathSyntax.MatchString(path) {
		return nil, fmt.Errorf("${{ %s }}: an expression is a dotted path, as in needs.list.files, and nothing else", path)
	}
	path = strings.ReplaceAll(strings.ReplaceAll(path, "[", "."), "]", "")
	return strings.Split(path, "."), nil
}

func descend(value json.RawMessage, step string) (json.RawMessage, error) {
	value = bytes.TrimSpace(value)
	switch {
	case len(value) > 0 && value[0] == '{':
		var m map[string]json.RawMessage
		if err := json.Unmarshal(value, &m); err != nil {
			return nil, err
		}
		v, ok := m[step]
		if !ok {
			return nil, fmt.Errorf("has no %q", step)
		}
		return v, nil
	case len(value) > 0 && value[0] == '[':
		var l []json.RawMessage
		if err := json.Unmarshal(value, &l); err != nil {
			return nil, err
		}
		i, err := strconv.Atoi(step)
		if err != nil || i < 0 || i >= len(l) {
			return nil, fmt.Errorf("is a list of %d: it has no %q", len(l), step)
		}
		return l[i], nil
	case len(value) == 0 || string(value) == "null":
		return nil, fmt.Errorf("is null: it has no %q", step)
	}
	return nil, fmt.Errorf("is %s: it has no %q", jsontext.Excerpt(value), step)
}
