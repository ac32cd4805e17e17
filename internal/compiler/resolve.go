package compiler

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/expr"
	"github.com/seed-1177d267/sluice/internal/jsontext"
	"github.com/seed-1177d267/sluice/internal/secret"
	"github.com/seed-1177d267/sluice/plan"
)

// A PlanState returns the state of a task's plan, as plan.state has it. It is asked only where an
// expression needs it. It is nil where nobody knows the plan.
type PlanState func() (string, error)

// Resolve returns params as the plugin gets them. If they are a template, it replaces the
// expressions over what is known only now by their values: those over plan.state, and over needs,
// results, failures and item, whose values are in params. It refuses an expression in a shell line or a
// script of an exec task, because a value could be read as commands.
func Resolve(t *protocol.ClaimedTask, params json.RawMessage, state PlanState) (json.RawMessage, error) {
	if !t.Template {
		return params, nil
	}
	var own map[string]json.RawMessage
	if err := json.Unmarshal(params, &own); err != nil {
		return nil, fmt.Errorf("params are not a JSON object: %w", err)
	}
	if err := readAsCode(t.Plugin, own); err != nil {
		return nil, fmt.Errorf("params.run: %w", err)
	}
	scope := func(steps []string) (json.RawMessage, bool, error) {
		value, ok, err := delivered(own, steps, state)
		switch {
		case err != nil || ok:
			return value, ok, err
		case !slices.Contains(later, steps[0]):
			return nil, false, fmt.Errorf("${{ %s… }} is not known here: it is one of %s", steps[0], strings.Join(firstWords, ", "))
		}
		return nil, false, fmt.Errorf("${{ %s }}: the task has none", steps[0])
	}
	return expr.EachText(params, func(keys []string, s string) (json.RawMessage, error) {
		if given(keys) {
			return nil, nil
		}
		v, err := expr.Evaluate(s, scope, false)
		if err == nil {
			err = mayBe(t.Plugin, keys, v)
		}
		return v, expr.Under(slices.Concat([]string{"params." + keys[0]}, keys[1:]), secret.OfClaim(t).Uncited(strconv.Quote(s), err))
	})
}

// readAsCode refuses the command of a task if an expression is in a part that a program reads as code.
func readAsCode(plugin string, params map[string]json.RawMessage) error {
	if plugin != plan.DefaultPlugin {
		return nil
	}
	if i, why := expr.InScript(params[shellLine]); i >= 0 {
		return fmt.Errorf("argument %d: ${{ }} %s", i, why)
	}
	if line, is := jsontext.TextOf(params[shellLine]); is && expr.Has(line) {
		return errors.New(`${{ }} in a shell line could be read as commands; pass the value by env, and write "$NAME" in the line`)
	}
	return nil
}

// UnusedShell is why a command cannot have a shell.
const UnusedShell = "shell is for a line, and run is a list here, which no shell sees; drop shell, or write run: as a line"

// absolute matches the paths that are absolute on any system. A node may have another system than who adds its tasks.
var absolute = regexp.MustCompile(`^(?:[/\\]|[A-Za-z]:[/\\])`)

// CheckParams returns which of the params of a compiled task is wrong whatever its parents give, and why; nil if
// none is. template says that they hold expressions.
func CheckParams(plugin string, params json.RawMessage, template bool) (name string, err error) {
	var own map[string]json.RawMessage
	if len(params) == 0 || json.Unmarshal(params, &own) != nil {
		return "", nil // no object is refused elsewhere
	}
	shell, _ := jsontext.TextOf(own["shell"])
	if run := own[shellLine]; plugin == plan.DefaultPlugin && shell != "" && len(run) > 0 && run[0] == '[' {
		return "shell", errors.New(UnusedShell)
	}
	if dir, is := jsontext.TextOf(own["dir"]); plugin == plan.DefaultPlugin && is && dir != "" && !(template && expr.Has(dir)) && !absolute.MatchString(dir) {
		return "dir", fmt.Errorf("%q starts from the folder of the node that runs the task, and each node has another one; give an absolute path", dir)
	}
	if !template {
		return "", nil
	}
	if err := readAsCode(plugin, own); err != nil {
		return shellLine, err
	}
	_, err = expr.EachText(params, func(keys []string, s string) (json.RawMessage, error) {
		if given(keys) {
			return nil, nil
		}
		for _, path := range expr.Paths(s) {
			steps, err := expr.Parse(path)
			if err == nil && !waits(strings.Join(steps, ".")) {
				err = fmt.Errorf("${{ %s }} is not known when the task runs; it takes %s and %s, and else the value itself", path, strings.Join(later, ", "), planState)
			}
			if err != nil {
				name = keys[0]
				return nil, err
			}
		}
		return nil, nil
	})
	return name, err
}

// CheckCited returns which of the params of a compiled task without needs cites an output, and why it cannot; nil if
// none does, or if the params have needs themselves.
func CheckCited(params json.RawMessage) (name string, err error) {
	var own map[string]json.RawMessage
	if len(params) == 0 || json.Unmarshal(params, &own) != nil || own["needs"] != nil {
		return "", nil
	}
	_, err = expr.EachText(params, func(keys []string, s string) (json.RawMessage, error) {
		for _, path := range expr.Paths(s) {
			if steps, err := expr.Parse(path); err == nil && steps[0] == "needs" {
				name = keys[0]
				return nil, fmt.Errorf("${{ %s }}: the task needs nothing; add needs", path)
			}
		}
		return nil, nil
	})
	return name, err
}

// withSecrets are the params of a plugin in which an object names a secret of the node.
var withSecrets = map[string][]string{plan.DefaultPlugin: {"env"}, "http": {"headers", "query", "sign"}, "disco": {"env"}}

// mayBe refuses data that would speak for the author: where an object names a secret of the node.
func mayBe(plugin string, keys []string, v json.RawMessage) error {
	if v = bytes.TrimSpace(v); slices.Contains(withSecrets[plugin], keys[0]) && len(v) > 0 && (v[0] == '{' || v[0] == '[') {
		kind, takes := "an object", keys[0]+" takes only texts, numbers and booleans of expressions"
		if v[0] == '[' {
			kind = "a list"
		}
		if plugin == plan.DefaultPlugin {
			takes = "a variable takes a text, a number or a boolean, and the rest is in $SLUICE_PARAMS"
		}
		return fmt.Errorf("the expression gives %s, %s; %s", kind, jsontext.Brief(v), takes)
	}
	return nil
}

// givenParams are the keys of params that come from parents and a foreach; later are those of them that expressions begin with.
var (
	givenParams = []string{"needs", "args", "item", "results", "failures"}
	later       = []string{"needs", "item", "results", "failures"}
)

// planState is the path of the state of the plan, as an attempt finds it.
const planState = "plan.state"

// waits reports whether a path leads to what is known only as the task runs.
func waits(path string) bool { return path == planState || slices.Contains(later, head(path)) }

// delivered resolves the first of the steps of such a path. own are the params of the task that runs.
func delivered(own map[string]json.RawMessage, steps []string, state PlanState) (value json.RawMessage, ok bool, err error) {
	if state != nil && strings.Join(steps, ".") == planState {
		is, err := state()
		value, _ = jsontext.Marshal(map[string]string{"state": is}) // of texts
		return value, true, err
	}
	value, ok = own[steps[0]]
	return value, ok && slices.Contains(later, steps[0]), nil
}

// given reports whether what is under the keys of params comes from parents and a foreach, and not from the task's author.
func given(keys []string) bool {
	return len(keys) > 0 && slices.Contains(givenParams, keys[0])
}

// unquoteGiven takes the quotes off what is under such keys, where Resolve does not look.
func unquoteGiven(params json.RawMessage) (json.RawMessage, error) {
	return expr.EachText(params, func(keys []string, s string) (json.RawMessage, error) {
		if !given(keys) {
			return nil, nil
		}
		return expr.Evaluate(s, expr.Nothing, false)
	})
}

// shellLine is the param of an exec task that is a line for a shell if it is a text.
const shellLine = "run"
