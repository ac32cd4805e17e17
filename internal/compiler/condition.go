package compiler

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/expr"
	"github.com/seed-1177d267/sluice/plan"
)

// compileIf replaces the paths of a condition that are known at submission by their values.
func compileIf(text string, scope expr.Scope) (string, error) {
	if text == "" {
		return "", nil
	}
	c, err := expr.ParseCondition(text)
	if err == nil {
		text, err = c.Known(scope)
	}
	if err != nil {
		return "", fmt.Errorf("if: %w", err)
	}
	if _, err := expr.ParseCondition(text); err != nil { // which a large param may make too long
		return "", fmt.Errorf("if, with the values of params: %w", err)
	}
	return text, nil
}

// Unmet returns why the condition of a task does not hold, with the values that decided; "" if it holds.
// params are as the plugin gets them. The error says which value the condition cannot be asked of.
func Unmet(t *protocol.ClaimedTask, params json.RawMessage, state PlanState) (why string, err error) {
	c, err := expr.ParseCondition(t.If)
	if err != nil {
		return "", fmt.Errorf("if: %w", err)
	}
	var own map[string]json.RawMessage
	if err := json.Unmarshal(params, &own); err != nil {
		return "", fmt.Errorf("params are not a JSON object: %w", err)
	}
	holds, decided, err := c.Holds(func(steps []string) (json.RawMessage, bool, error) { return delivered(own, steps, state) })
	switch {
	case err != nil:
		return "", fmt.Errorf("if: %w", err) // a secret value in it is hidden as in any detail
	case holds:
		return "", nil
	case len(decided) > 0:
		return fmt.Sprintf("if %s does not hold: %s", t.If, strings.Join(decided, ", ")), nil
	}
	return fmt.Sprintf("if %s does not hold", t.If), nil
}

// validateIf reports what is wrong with a condition, and uses that would show a secret: people see the
// condition with the values that decided.
func validateIf(s *plan.Spec, i int, add addProblem) {
	t := &s.Tasks[i]
	if t.If == "" {
		return
	}
	c, err := expr.ParseCondition(t.If)
	if err != nil {
		add(i, "if", -1, "task %q: if: %v", t.Name, err)
		return
	}
	secrets := secretsIn(s)
	for _, path := range c.Paths() {
		if tells(secrets, path) {
			add(i, "if", -1, "task %q: if: %s is secret, and people see the values that decide a condition; decide by it in the command", t.Name, path)
			continue
		}
		var found []*plan.Problem
		validatePath(s, i, "if", path, func(task int, key string, item int, format string, args ...any) *plan.Problem {
			found = append(found, add(task, key, item, format, args...))
			return found[len(found)-1]
		})
		for _, p := range found { // a condition has its paths without the braces that other texts need
			p.Expr, p.Message = "", strings.Replace(p.Message, "${{ "+path+" }}", "if: "+path, 1)
		}
	}
}

// CheckSkipOn returns why causes cannot be those of a task's skip_on.
func CheckSkipOn(c plan.Causes) error {
	if slices.ContainsFunc(c.List(), func(word string) bool { return word == plan.CauseTimeout || word == plan.CauseSignal }) {
		return errors.New("skip_on takes exit statuses alone, as in [75]: what is stopped has not said that there is nothing to do")
	}
	return nil
}
