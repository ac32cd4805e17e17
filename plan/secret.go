package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Hidden is what is shown in the place of a secret.
const Hidden = "***"

// Of a name of secret params, and of the names of a queue.
const (
	longestSecretName = 200
	mostSecretNames   = 200
)

// shortestSecret is how many bytes a secret has that is hidden wherever it stands: what is shorter, much else holds too. It is hidden
// under its name alone. Of one of several lines each line of shortestSecretLine bytes counts by itself.
const (
	shortestSecret     = 4
	shortestSecretLine = 8
)

// CheckSecretNames returns names of secret params as a queue keeps them: in lower case, sorted, each once. A name has no blanks around it.
func CheckSecretNames(names []string) ([]string, error) {
	var out []string
	for _, n := range names {
		if n == "" || len(n) > longestSecretName || strings.TrimSpace(n) != n || strings.ContainsFunc(n, unicode.IsControl) {
			return nil, fmt.Errorf("%q cannot be the name of a param; names have up to %d bytes, and no blanks around them", n, longestSecretName)
		}
		out = append(out, strings.ToLower(n))
	}
	slices.Sort(out)
	if out = slices.Compact(out); len(out) > mostSecretNames {
		return nil, fmt.Errorf("a queue marks at most %d names as secret; a * in a name stands for any letters", mostSecretNames)
	}
	return out, nil
}

// Secrets knows which params are never shown: those that a queue names. Since values travel, from a plan's params into those of its tasks,
// from outputs into children in other queues, what one queue of a store names counts in all of it, at any depth of params and outputs.
// Upper and lower case are the same, and a * in a name stands for any letters, also for none. The zero value knows none.
//
// A secret that has shortestSecret bytes is hidden in the texts beside it, too, as where an expression put it into a command.
type Secrets struct{ names []string }

// SecretsOf returns what these queues, which are all of a store's, name.
func SecretsOf(queues []Queue) Secrets {
	var s Secrets
	for i := range queues {
		for _, n := range queues[i].Secrets {
			s.names = append(s.names, strings.ToLower(n))
		}
	}
	slices.Sort(s.names)
	s.names = slices.Compact(s.names)
	return s
}

// None reports whether nothing is secret.
func (s Secrets) None() bool { return len(s.names) == 0 }

// Named reports whether a param of that name is secret.
func (s Secrets) Named(name string) bool {
	if s.None() {
		return false
	}
	name = strings.ToLower(name)
	return slices.ContainsFunc(s.names, func(pattern string) bool { return fitsPattern(name, pattern) })
}

// fitsPattern reports whether a name is what the pattern says, in which * stands for any letters.
func fitsPattern(name, pattern string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return name == pattern
	}
	first, last := parts[0], parts[len(parts)-1]
	if len(name) < len(first)+len(last) || !strings.HasPrefix(name, first) || !strings.HasSuffix(name, last) {
		return false
	}
	name = name[len(first) : len(name)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		_, rest, found := strings.Cut(name, part)
		if !found {
			return false
		}
		name = rest
	}
	return true
}

// Hide returns a JSON value, as params or an output, without the secrets in it: each is Hidden. What is no JSON is hidden whole. The result
// may be spelled otherwise. values are secrets that were found elsewhere, by Values.
func (s Secrets) Hide(value json.RawMessage, values ...string) json.RawMessage {
	if s.None() && len(values) == 0 || len(bytes.TrimSpace(value)) == 0 {
		return value
	}
	v, err := decodeExactly(value)
	if err != nil {
		v = Hidden
	} else {
		v = s.HideIn(v, append(s.ValuesIn(v), values...)...)
	}
	out, err := marshal(v)
	if err != nil {
		return json.RawMessage(`"` + Hidden + `"`)
	}
	return out
}

func decodeExactly(value json.RawMessage) (v any, err error) {
	dec := json.NewDecoder(bytes.NewReader(value))
	dec.UseNumber()
	if err = dec.Decode(&v); err == nil && dec.More() {
		err = fmt.Errorf("more than one JSON value")
	}
	return v, err
}

// HideIn is Hide for a value as encoding/json decodes it, which it leaves as it is. What is of no such type stays.
func (s Secrets) HideIn(v any, values ...string) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, inner := range v {
			if inner != nil && s.Named(name) {
				out[name] = Hidden
			} else {
				out[HideText(name, values)] = s.HideIn(inner, values...)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, inner := range v {
			out[i] = s.HideIn(inner, values...)
		}
		return out
	case string:
		return HideText(v, values)
	}
	if text, ok := numberText(v); ok && slices.Contains(values, text) {
		return Hidden
	}
	return v
}

// HideText returns a text without the values in it.
func HideText(text string, values []string) string {
	for _, v := range values {
		text = strings.ReplaceAll(text, v, Hidden)
	}
	return text
}

// Values returns the texts by which the secrets in a JSON value can be seen elsewhere, the longest first, also as JSON writes them.
func (s Secrets) Values(value json.RawMessage) []string {
	if s.None() || len(value) == 0 {
		return nil
	}
	v, err := decodeExactly(value)
	if err != nil {
		return nil
	}
	return s.ValuesIn(v)
}

// ValuesIn is Values for a value as encoding/json decodes it.
func (s Secrets) ValuesIn(v any) []string {
	if s.None() {
		return nil
	}
	var found []string
	s.collect(v, false, &found)
	slices.SortFunc(found, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	return slices.Compact(found)
}

func (s Secrets) collect(v any, secret bool, found *[]string) {
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			s.collect(inner, secret || s.Named(name), found)
		}
		return
	case []any:
		for _, inner := range v {
			s.collect(inner, secret, found)
		}
		return
	}
	text, ok := v.(string)
	if !ok {
		text, ok = numberText(v)
	}
	if !ok || !secret {
		return
	}
	add := func(text string, shortest int) {
		if text = strings.TrimSpace(text); len(text) < shortest || text == Hidden {
			return
		}
		*found = append(*found, text)
		for _, html := range []bool{false, true} {
			var b bytes.Buffer
			enc := json.NewEncoder(&b)
			enc.SetEscapeHTML(html)
			if enc.Encode(text) == nil && b.Len() > 3 {
				*found = append(*found, b.String()[1:b.Len()-2])
			}
		}
	}
	add(text, shortestSecret)
	if strings.Contains(text, "\n") {
		for line := range strings.Lines(text) {
			add(line, shortestSecretLine)
		}
	}
}

func numberText(v any) (string, bool) {
	switch v := v.(type) {
	case json.Number:
		return v.String(), true
	case int64:
		return strconv.FormatInt(v, 10), true
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), true
	}
	return "", false
}

// Within reports whether a JSON value has a secret, or a path with dots leads to one, as in params.login.password.
func (s Secrets) Within(value json.RawMessage, path string) bool {
	if s.None() {
		return false
	}
	if slices.ContainsFunc(strings.Split(path, "."), s.Named) {
		return true
	}
	v, err := decodeExactly(value)
	return len(value) > 0 && (err != nil || s.has(v, func(any) bool { return true }))
}

// has reports whether there is a secret in a value of which the condition holds.
func (s Secrets) has(v any, is func(any) bool) bool {
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			if s.Named(name) && is(inner) || s.has(inner, is) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(inner any) bool { return s.has(inner, is) })
	}
	return false
}

// CheckGiven refuses params, as those of what, that have Hidden in the place of a secret: who read them where secrets are not shown would
// write that over the secret. It is an ErrSecret.
func (s Secrets) CheckGiven(what string, params json.RawMessage) error {
	if s.None() || !bytes.Contains(params, []byte(Hidden)) {
		return nil
	}
	v, err := decodeExactly(params)
	if err != nil {
		return nil // who keeps them says so
	}
	var name string
	if find(v, s.Named, &name) {
		return refuse(ErrSecret, "%s: %q is %s, which stands for a secret that is not shown: give its value", what, name, Hidden)
	}
	return nil
}

func find(v any, named func(string) bool, name *string) bool {
	switch v := v.(type) {
	case map[string]any:
		for k, inner := range v {
			if *name = k; inner == Hidden && named(k) || find(inner, named, name) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(inner any) bool { return find(inner, named, name) })
	}
	return false
}

// CheckUnhidden refuses what takes names off a queue's secrets: who may set a queue would see what it hides. With anyway it is let pass.
// It is an ErrSecret.
func CheckUnhidden(was, q *Queue, anyway bool) error {
	if anyway {
		return nil
	}
	for _, n := range was.Secrets {
		if !slices.Contains(q.Secrets, n) {
			return refuse(ErrSecret, "queue %q keeps the param %q secret; only an administrator takes that off", was.Name, n)
		}
	}
	return nil
}

// HideTask takes the secrets out of all that is shown of a task. params are the task's, if they are not among what was read of it.
func (s Secrets) HideTask(t *Task, params json.RawMessage) {
	if s.None() {
		return
	}
	if len(t.Params) > 0 {
		params = t.Params
	}
	values := s.Values(params)
	t.Params, t.Output = s.Hide(t.Params, values...), s.Hide(t.Output, values...)
	t.Detail, t.Description = HideText(t.Detail, values), HideText(t.Description, values)
	t.Foreach = s.HideForeach(t.Foreach, values...)
}

// HideForeach returns a foreach without the secrets in its list.
func (s Secrets) HideForeach(f *Foreach, values ...string) *Foreach {
	if f == nil || s.None() {
		return f
	}
	shown := *f
	shown.List = s.Hide(f.List, values...)
	shown.Lines, shown.Glob = HideText(f.Lines, values), HideText(f.Glob, values)
	return &shown
}
