package compiler

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/internal/expr"
	"github.com/seed-1177d267/sluice/internal/jsontext"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// CheckDefaults returns why a queue cannot have such defaults for its tasks; nil if it can.
func CheckDefaults(d *plan.TaskDefaults) error {
	if p := CheckDefinition(&plan.Definition{Retry: d.Retry.Retry(), Timeout: time.Duration(d.Timeout)}); p != nil {
		return errors.New(p.Message)
	}
	if d.Retry != (plan.RetryText{}) && d.Retry.Attempts == 0 {
		return errors.New("retry does not say how often; add attempts, which counts the first too")
	}
	if len(d.Params) == 0 {
		return nil
	}
	var params map[string]json.RawMessage
	if err := json.Unmarshal(d.Params, &params); err != nil || params == nil {
		return errors.New("params is not an object")
	}
	for _, key := range []string{"needs", "args"} {
		if _, has := params[key]; has {
			return fmt.Errorf("params.%s is what a task has of its parents; choose another name", key)
		}
	}
	v, err := jsontext.Decode(d.Params)
	if err != nil {
		return err
	}
	plain, err := jsontext.Marshal(v) // without escapes
	if err != nil {
		return err
	}
	if expr.Has(string(plain)) {
		return errors.New("params has an expression, and a queue has none; write the value itself")
	}
	return rules.CheckNULIn("params", d.Params)
}

// CheckSaid returns why the text is not meant to be the defaults that it was read as: it sets nothing, and is not the
// object without keys that removes them. It is nil for null.
func CheckSaid(d *plan.TaskDefaults, text json.RawMessage) error {
	if word := strings.Trim(string(text), "{} \t\r\n"); reflect.ValueOf(*d).IsZero() && word != "" && word != "null" {
		return errors.New("it says nothing; {} removes the setting")
	}
	return nil
}

// bySelf are params that tasks of a plugin say themselves, and on which others depend.
var bySelf = map[string][]string{plan.DefaultPlugin: {"run"}, pluginHTTP: {"url", "body"}, pluginDisco: {"worker", "dir"}}

// RefusedDefault returns which of the params among the defaults of a queue no task can have, and why. check asks
// plugins, and nil asks none. A task says itself what the defaults lack. So only plugins are asked of which it is
// known what that is.
func RefusedDefault(q *plan.Queue, check func(*plan.Spec) plan.Problems) (name string, err error) {
	names, known := bySelf[q.Plugin]
	if !known || check == nil || len(q.Defaults.Params) == 0 {
		return "", nil
	}
	own := map[string]string{}
	for _, name := range names {
		own[name] = "${{ params." + name + " }}" // whose value is not known
	}
	open, err := jsontext.Marshal(own)
	if err != nil {
		return "", err
	}
	params := rules.FillParams(&plan.TaskDefaults{Params: open}, q.Defaults.Params)
	for _, p := range check(&plan.Spec{Tasks: []plan.TaskSpec{{Plugin: q.Plugin, Params: params}}}) {
		return p.Word, errors.New(strings.TrimPrefix(p.Message, `task "": `))
	}
	return "", nil
}
