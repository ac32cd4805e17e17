package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// An expression is `${{ path }}`, the path a word of scope and dotted steps into a JSON value, as in `needs.list.mailboxes` or
// `params.hosts.0`. A string that is one expression takes the value's type; within a longer string a value is written as it is if
// it is a string, else as JSON.
var expression = regexp.MustCompile(`\$\{\{\s*(.*?)\s*\}\}`)

var pathSyntax = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+|\[\d+\])*$`)

// Scope resolves the first word of a path; ok is false for a word that it leaves for later.
type Scope func(word string) (value json.RawMessage, ok bool, err error)

// Expressions returns the paths of the expressions in a text.
func Expressions(s string) []string {
	var paths []string
	for _, m := range expression.FindAllStringSubmatch(s, -1) {
		paths = append(paths, m[1])
	}
	return paths
}

// HasExpressions reports whether a JSON text holds any.
func HasExpressions(j []byte) bool { return bytes.Contains(j, []byte("${{")) }

// Substitute replaces the expressions in all strings of a JSON value whose scope knows the first word.
func Substitute(value json.RawMessage, scope Scope) (json.RawMessage, error) {
	if !HasExpressions(value) {
		return value, nil
	}
	dec := json.NewDecoder(bytes.NewReader(value))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	v, err := substitute(v, scope)
	if err != nil {
		return nil, err
	}
	return marshal(v)
}

// marshal writes JSON without the escapes that HTML would need.
func marshal(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

func substitute(v any, scope Scope) (any, error) {
	var err error
	switch v := v.(type) {
	case string:
		return substituteString(v, scope)
	case []any:
		for i := range v {
			if v[i], err = substitute(v[i], scope); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for k := range v {
			if v[k], err = substitute(v[k], scope); err != nil {
				return nil, fmt.Errorf("%s: %w", k, err)
			}
		}
	}
	return v, nil
}

func substituteString(s string, scope Scope) (any, error) {
	if !strings.Contains(s, "${{") {
		return s, nil
	}
	if m := expression.FindStringSubmatchIndex(s); m != nil && m[0] == 0 && m[1] == len(s) {
		value, ok, err := Lookup(s[m[2]:m[3]], scope)
		if err != nil || !ok {
			return s, err
		}
		return value, nil // json.RawMessage: kept as it is
	}
	var failed error
	out := expression.ReplaceAllStringFunc(s, func(match string) string {
		value, ok, err := Lookup(expression.FindStringSubmatch(match)[1], scope)
		if err != nil && failed == nil {
			failed = err
		}
		if err != nil || !ok {
			return match
		}
		var text string
		if json.Unmarshal(value, &text) == nil && len(value) > 0 && value[0] == '"' {
			return text
		}
		return string(value)
	})
	return out, failed
}

// Lookup resolves a path; ok is false if the scope leaves it for later.
func Lookup(path string, scope Scope) (value json.RawMessage, ok bool, err error) {
	steps, err := parsePath(path)
	if err != nil {
		return nil, false, err
	}
	value, ok, err = scope(steps[0])
	if err != nil || !ok {
		return nil, ok, err
	}
	for i, step := range steps[1:] {
		if value, err = descend(value, step); err != nil {
			return nil, false, fmt.Errorf("${{ %s }}: %s %w", path, strings.Join(steps[:i+1], "."), err)
		}
	}
	return value, true, nil
}

func parsePath(path string) ([]string, error) {
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
	return nil, fmt.Errorf("is %s: it has no %q", excerpt(value), step)
}

// Resolve returns params as the plugin gets them: expressions over needs and item, which are only known once a task runs, replaced
// by what params hold of them. The shell line of an exec task is left as it is, since a value in it could be read as commands: exec
// refuses a line with expressions.
func Resolve(plugin string, params json.RawMessage) (json.RawMessage, error) {
	if !HasExpressions(params) {
		return params, nil
	}
	var own map[string]json.RawMessage
	if err := json.Unmarshal(params, &own); err != nil {
		return nil, fmt.Errorf("params are not a JSON object: %w", err)
	}
	scope := func(word string) (json.RawMessage, bool, error) {
		switch word {
		case "needs", "item":
			value, ok := own[word]
			if !ok {
				return nil, false, fmt.Errorf("${{ %s }}: the task has none", word)
			}
			return value, true, nil
		}
		return nil, false, fmt.Errorf("${{ %s… }} is not known here: it is one of params, needs, item, plan, task", word)
	}
	for k, v := range own {
		// What parents returned is data: a text in it that looks like an expression is none.
		if k == "needs" || k == "args" || k == "item" || k == shellLine && plugin == DefaultPlugin && isText(v) {
			continue
		}
		v, err := Substitute(v, scope)
		if err != nil {
			return nil, fmt.Errorf("params.%s: %w", k, err)
		}
		own[k] = v
	}
	return marshal(own)
}

// shellLine is the param of an exec task that is a line for a shell if it is a text.
const shellLine = "run"

func isText(v json.RawMessage) bool {
	v = bytes.TrimSpace(v)
	return len(v) > 0 && v[0] == '"'
}

var errNotList = errors.New("is not a list")
