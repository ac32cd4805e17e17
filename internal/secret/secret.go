// Package secret owns the names of params that are never shown. It hides their values in JSON, in
// logs, and in the stream that a command prints.
package secret

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/jsontext"
	"github.com/seed-1177d267/sluice/internal/refusal"
	"github.com/seed-1177d267/sluice/plan"
)

// Hidden is what is shown in the place of a secret.
const Hidden = "***"

// The limits of a name of secret params, and of the names of a queue.
const (
	longestSecretName = 200
	MostNames         = 200
)

// Shortest is how many bytes a secret must have to be hidden at every place. Much other text
// holds shorter ones, so these are hidden under their names alone. In a secret of several lines
// each line of shortestLine bytes counts by itself.
const (
	Shortest     = 4
	shortestLine = 8
)

// CheckNames returns names of secret params as a queue and a plan keep them: in lower case, sorted, each once. A name has no blanks
// around it.
func CheckNames(names []string) ([]string, error) {
	for _, n := range names {
		if err := CheckName(n); err != nil {
			return nil, err
		}
	}
	out := Kept(names)
	if len(out) > MostNames {
		return nil, fmt.Errorf("at most %d names are secret; a * in a name stands for any letters", MostNames)
	}
	return out, nil
}

// CheckName refuses a text that cannot be the name of a param.
func CheckName(n string) error {
	if n == "" || len(n) > longestSecretName || strings.TrimSpace(n) != n || strings.ContainsFunc(n, unicode.IsControl) {
		return fmt.Errorf("%q cannot be the name of a param; names have up to %d bytes, and no blanks around them", n, longestSecretName)
	}
	return nil
}

// Kept returns names as they are kept.
func Kept(lists ...[]string) []string {
	var out []string
	for _, n := range slices.Concat(lists...) {
		out = append(out, strings.ToLower(n))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Names knows the names of params that are never shown, from a queue or a plan. Values travel:
// from a plan's params into its tasks, and from outputs into children in other queues. So a name of
// one queue counts in the whole store, at any depth of params and outputs. A name of a plan counts
// in that plan; see And. Names match in upper and lower case. A * in a name stands for any letters,
// or for none. The zero value knows none.
//
// A secret of at least Shortest bytes is also hidden in other texts, as when an expression
// put it into a command.
type Names struct{ names []string }

// Of returns the names that the queues of a store keep secret.
func Of(queues []plan.Queue) Names {
	var names []string
	for i := range queues {
		names = append(names, queues[i].Secrets...)
	}
	return Names{Kept(names)}
}

// And returns what is secret where these names are secret, too: those of a plan, or of one of its tasks.
func (s Names) And(names []string) Names {
	if len(names) == 0 {
		return s
	}
	return Names{Kept(s.names, names)}
}

// All returns the names.
func (s Names) All() []string { return s.names }

// None reports whether nothing is secret.
func (s Names) None() bool { return len(s.names) == 0 }

// Named reports whether a param of that name is secret.
func (s Names) Named(name string) bool {
	if s.None() {
		return false
	}
	name = strings.ToLower(name)
	return slices.ContainsFunc(s.names, func(pattern string) bool { return fitsPattern(name, pattern) })
}

// fitsPattern reports whether a name matches the pattern, in which * stands for any letters.
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

// Hide returns a JSON value, as params or an output, in which each secret is Hidden. Text that is
// not JSON is hidden whole. The result may be spelled otherwise. values are secrets that Values
// found elsewhere.
func (s Names) Hide(value json.RawMessage, values ...string) json.RawMessage {
	if s.None() && len(values) == 0 || len(bytes.TrimSpace(value)) == 0 {
		return value
	}
	v, err := jsontext.Decode(value)
	if err != nil {
		v = Hidden
	} else {
		v = s.HideIn(v, LongestFirst(append(s.ValuesIn(v), values...))...)
	}
	out, err := jsontext.Marshal(v)
	if err != nil {
		return json.RawMessage(`"` + Hidden + `"`)
	}
	return out
}

// HideIn is Hide for a value that encoding/json decoded. It does not change that value. Values of
// other types stay.
func (s Names) HideIn(v any, values ...string) any {
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

// HideText returns a text without the values in it. It replaces the longest first.
func HideText(text string, values []string) string {
	for _, v := range values {
		text = strings.ReplaceAll(text, v, Hidden)
	}
	return text
}

// Values returns the texts by which the secrets in a JSON value can be seen elsewhere, the longest
// first. They include the spellings of each secret.
func (s Names) Values(value json.RawMessage) []string {
	if s.None() || len(value) == 0 {
		return nil
	}
	v, err := jsontext.Decode(value)
	if err != nil {
		return nil
	}
	return s.ValuesIn(v)
}

// ValuesIn is Values for a value as encoding/json decodes it.
func (s Names) ValuesIn(v any) []string {
	if s.None() {
		return nil
	}
	var found []string
	s.eachText(v, false, func(text string) bool {
		for text := range parts([]string{text}, shortestLine) {
			if len(text) >= Shortest && text != Hidden {
				found = append(append(found, text), Spellings(text)...)
			}
		}
		return true
	})
	return LongestFirst(found)
}

// LongestFirst sorts values as HideText needs them, as one may be within another, and has each once. The slice that it is handed is used up.
func LongestFirst(values []string) []string {
	slices.SortFunc(values, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	return slices.Compact(values)
}

// eachText hands do the texts and the numbers that are secret in a value that encoding/json decoded, until do returns false. With secret, all
// of them are. It returns what do returned last.
func (s Names) eachText(v any, secret bool, do func(text string) (more bool)) (more bool) {
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			if !s.eachText(inner, secret || s.Named(name), do) {
				return false
			}
		}
		return true
	case []any:
		return !slices.ContainsFunc(v, func(inner any) bool { return !s.eachText(inner, secret, do) })
	}
	text, ok := v.(string)
	if !ok {
		text, ok = numberText(v)
	}
	return !ok || !secret || do(text)
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
func (s Names) Within(value json.RawMessage, path string) bool {
	if s.None() {
		return false
	}
	if slices.ContainsFunc(strings.Split(path, "."), s.Named) {
		return true
	}
	v, err := jsontext.Decode(value)
	_, found := s.find(v, func(any) bool { return true })
	return len(value) > 0 && (err != nil || found)
}

// CheckGiven refuses params that have Hidden in the place of a secret; what names them in the
// error. A person who read such params where secrets are hidden would overwrite the secret. The
// error is an ErrSecret.
func (s Names) CheckGiven(what string, params json.RawMessage) error {
	if s.None() || !bytes.Contains(params, []byte(Hidden)) {
		return nil
	}
	v, err := jsontext.Decode(params)
	if err != nil {
		return nil // who keeps them says so
	}
	if name, found := s.find(v, func(value any) bool { return value == Hidden }); found {
		return refusal.New(plan.ErrSecret, "%s: %q is %s, which stands for a secret that is not shown: give its value", what, name, Hidden)
	}
	return nil
}

// find returns the first secret name in a value that encoding/json decoded whose value fulfils the condition.
func (s Names) find(v any, is func(any) bool) (name string, found bool) {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if s.Named(key) && is(v[key]) {
				return key, true
			}
			if name, found = s.find(v[key], is); found {
				return name, true
			}
		}
	case []any:
		for _, inner := range v {
			if name, found = s.find(inner, is); found {
				return name, true
			}
		}
	}
	return "", false
}

// CheckUnhidden refuses a change that removes names of a queue's secrets. Otherwise everybody who
// may set a queue could see the hidden values. anyway permits it. The error is an ErrSecret.
func CheckUnhidden(was, q *plan.Queue, anyway bool) error {
	if anyway {
		return nil
	}
	for _, n := range was.Secrets {
		if !slices.Contains(q.Secrets, n) {
			return refusal.New(plan.ErrSecret, "queue %q keeps the param %q secret; only an administrator takes that off", was.Name, n)
		}
	}
	return nil
}

// CheckDefaults refuses defaults of queues that have a secret. Everybody who may read a queue sees
// them. The error is an ErrSecret.
func CheckDefaults(queues []plan.Queue) error {
	s := Of(queues)
	for i := range queues {
		if name := s.In(queues[i].Defaults.Params); name != "" {
			return refusal.New(plan.ErrSecret, "queue %q has %q among its defaults, which everybody may read, and a queue names it secret: give that param in each task", queues[i].Name, name)
		}
	}
	return nil
}

// In returns a secret name in a JSON value; "" if it has none, or is no JSON.
func (s Names) In(value json.RawMessage) string {
	if len(value) == 0 {
		return ""
	}
	v, err := jsontext.Decode(value)
	if err != nil {
		return ""
	}
	name, _ := s.find(v, func(any) bool { return true })
	return name
}

// HideTask removes the secrets from all shown fields of a task, including the task's own. values
// are secrets that Values found elsewhere: in the plan's params, and in the task's if the caller
// has not read them into t.
func (s Names) HideTask(t *plan.Task, values ...string) {
	if s = s.And(t.Secrets); s.None() {
		return
	}
	values = LongestFirst(append(s.Values(t.Params), values...))
	t.Params, t.Output = s.Hide(t.Params, values...), s.Hide(t.Output, values...)
	for _, text := range []*string{&t.Detail, &t.Description, &t.Subject, &t.If, &t.ItemKey} {
		*text = HideText(*text, values)
	}
	if p := t.Progress; p != nil {
		t.Progress = &plan.Progress{Fraction: p.Fraction, Text: HideText(p.Text, values)}
	}
	if a := t.Approve; a != nil {
		t.Approve = &plan.Approval{Question: HideText(a.Question, values), NotSubmitter: a.NotSubmitter}
	}
	t.Foreach = s.HideForeach(t.Foreach, values...)
}

// HideForeach returns a foreach without the secrets in its list, which are all of it where items are secret.
func (s Names) HideForeach(f *plan.Foreach, values ...string) *plan.Foreach {
	if f == nil || s.None() {
		return f
	}
	shown := *f
	shown.List = s.Hide(f.List, values...)
	if len(f.List) > 0 && s.Named("item") {
		shown.List = json.RawMessage(`["` + Hidden + `"]`)
	}
	shown.Lines, shown.Glob = HideText(f.Lines, values), HideText(f.Glob, values)
	return &shown
}

// Keep gives tasks of the plan its names of secrets.
func Keep(p *plan.Plan, tasks []plan.Task) {
	for i := range tasks {
		if t := &tasks[i]; len(p.Secrets) > 0 {
			t.Secrets = Kept(t.Secrets, p.Secrets)
		}
	}
}

// OfClaim returns the secrets in the params of a claimed task that its node must know: those with
// names of its queue and its plan.
func OfClaim(c *protocol.ClaimedTask) Names { return Names{}.And(c.Settings.Secrets).And(c.Secrets) }

// Uncited returns what is wrong with what something with expressions comes to, without citing that where it may be secret, or a part of it.
func (s Names) Uncited(what string, err error) error {
	if err == nil || s.None() {
		return err
	}
	return fmt.Errorf("%s gives a value that is not allowed there; the value is not shown, because it may hold a secret", what)
}

// Short reports whether a value has a secret that ValuesIn leaves out as too short; none at all needs no
// hiding.
func (s Names) Short(v any, secret bool) bool {
	return !s.eachText(v, secret, func(text string) bool {
		text = strings.TrimSpace(text)
		return text == "" || len(text) >= Shortest
	})
}
