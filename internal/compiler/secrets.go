package compiler

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-1177d267/sluice/internal/expr"
	"github.com/seed-1177d267/sluice/internal/jsontext"
	"github.com/seed-1177d267/sluice/internal/secret"
	"github.com/seed-1177d267/sluice/plan"
)

// secretsIn is what is secret in the plan that is to be.
func secretsIn(s *plan.Spec) secret.Names { return secret.Names{}.And(s.Secrets) }

// tells reports whether an expression's path leads to what is secret.
func tells(s secret.Names, path string) bool {
	steps, err := expr.Parse(path)
	return err == nil && len(steps) > 1 && slices.ContainsFunc(steps[1:], s.Named)
}

// tellsItem is tells for texts that may be made of a secret item.
func tellsItem(s secret.Names, path string) bool {
	return tells(s, path) || head(path) == "item" && s.Named("item")
}

// renamed adds the keys of a task's params that hold a secret under another name: their text has an
// expression that leads to a secret. It skips lists, as the words of a command, because a secret is
// found there by its text.
func renamed(s secret.Names, v any, names []string) []string {
	switch v := v.(type) {
	case map[string]any:
		for key, inner := range v {
			text, is := inner.(string)
			if is && slices.ContainsFunc(expr.Paths(text), func(path string) bool { return tells(s, path) }) {
				names = append(names, key)
			}
			names = renamed(s, inner, names)
		}
	case []any:
		for _, inner := range v {
			names = renamed(s, inner, names)
		}
	}
	return names
}

// secretsOf returns the names that are secret in a task of the plan, whose params are as the spec has them.
func secretsOf(s *plan.Spec, params json.RawMessage) []string {
	secrets := secretsIn(s)
	if secrets.None() {
		return nil
	}
	var names []string
	if v, err := jsontext.Decode(params); err == nil && expr.MayHold(params) {
		names = renamed(secrets, v, nil)
	}
	return secret.Kept(s.Secrets, names)
}

// validateSecrets checks the secret names, and refuses uses that would show their values: lists of
// tasks show the items of a foreach.
func validateSecrets(s *plan.Spec, add addProblem) {
	for i, n := range s.Secrets {
		if err := secret.CheckName(n); err != nil {
			add(-1, "secrets", i, "%v", err)
		}
	}
	if len(s.Secrets) > secret.MostNames {
		add(-1, "secrets", -1, "at most %d names are secret; a * in a name stands for any letters", secret.MostNames)
	}
	secrets := secretsIn(s)
	if secrets.None() || secrets.Named("item") {
		return
	}
	for i := range s.Tasks {
		t := &s.Tasks[i]
		if t.Foreach == nil {
			continue
		}
		paths := append(expr.Paths(t.Foreach.Lines), expr.Paths(t.Foreach.Glob)...)
		if t.Foreach.Value != "" {
			paths = append(paths, t.Foreach.Value)
		}
		_, _ = expr.EachText(t.Foreach.List, func(_ []string, text string) (json.RawMessage, error) { // what is no JSON is said elsewhere
			paths = append(paths, expr.Paths(text)...)
			return nil, nil
		})
		for _, path := range paths {
			if tells(secrets, path) {
				add(i, "foreach", -1, "task %q: ${{ %s }} is secret, and tasks are listed with their items; add item to secrets, so that these are not shown", t.Name, path).Expr = path
			}
		}
	}
}

// secretNotes tells of names that are secret and that nothing in the plan has: they may be of what tasks return, or mistyped.
func secretNotes(s *plan.Spec) (ps plan.Problems) {
	secrets := secretsIn(s)
	if secrets.None() {
		return nil
	}
	has := map[string]bool{}
	var collect func(v any)
	collect = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, inner := range v {
				has[strings.ToLower(key)] = true
				collect(inner)
			}
		case []any:
			for _, inner := range v {
				collect(inner)
			}
		}
	}
	for name, value := range s.Params {
		has[strings.ToLower(name)] = true
		v, _ := jsontext.Decode(value) // the plan is valid
		collect(v)
	}
	for i := range s.Tasks {
		raw, _ := rawObject(s.Tasks[i].Params)
		v, _ := jsontext.Decode(raw)
		collect(v)
		if f := s.Tasks[i].Foreach; f != nil {
			has["item"] = true
			v, _ := jsontext.Decode(f.List)
			collect(v)
		}
	}
	for i, n := range s.Secrets {
		if strings.Contains(n, "*") || has[strings.ToLower(n)] {
			continue
		}
		ps = append(ps, plan.Problem{Task: -1, Key: "secrets", Item: i, Word: n,
			Message: fmt.Sprintf("no param of the plan or of a task is called %q: it is hidden only where a task returns something of that name", n)})
	}
	return append(ps, shortSecrets(s, secrets)...)
}

// shortSecrets tells of params of the plan whose secret values are too short to be taken out of what commands print.
func shortSecrets(s *plan.Spec, secrets secret.Names) (ps plan.Problems) {
	for _, name := range slices.Sorted(maps.Keys(s.Params)) {
		v, _ := jsontext.Decode(s.Params[name]) // the plan is valid
		if secrets.Short(v, secrets.Named(name)) {
			ps = append(ps, plan.Problem{Task: -1, Key: "params", Item: -1, Word: name,
				Message: fmt.Sprintf("the secret value in the param %q has fewer than %d bytes: it is hidden under its name, and not in what commands print; "+
					"a longer one is", name, secret.Shortest)})
		}
	}
	return ps
}
