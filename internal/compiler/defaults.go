package compiler

import (
	"encoding/json"
	"errors"
	"fmt"
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
