package rules

import (
	"encoding/json"
	"maps"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/jsontext"
	"github.com/seed-1177d267/sluice/plan"
)

// FillDefaults gives a claimed task what the defaults of its queue say and the task does not: params
// as FillParams says, Retry and Timeout.
func FillDefaults(t *protocol.ClaimedTask) {
	d := &t.Settings.Defaults
	t.Params = FillParams(d, t.Params)
	if t.Retry == (plan.Retry{}) {
		t.Retry = d.Retry.Retry()
	}
	if t.Timeout == 0 {
		t.Timeout = time.Duration(d.Timeout)
	}
}

// ByDefault reports whether a task has the param by the defaults of its queue, and not by its own params.
func ByDefault(d *plan.TaskDefaults, params json.RawMessage, name string) bool {
	var filled, own map[string]json.RawMessage
	_ = json.Unmarshal(d.Params, &filled) // none, if they are no object
	_ = json.Unmarshal(params, &own)
	return filled[name] != nil && own[name] == nil
}

// FillParams returns the params of a task with each key of the defaults that they lack. Params that
// are not an object stay as they are.
func FillParams(d *plan.TaskDefaults, params json.RawMessage) json.RawMessage {
	if len(d.Params) == 0 {
		return params
	}
	var filled, own map[string]json.RawMessage
	if json.Unmarshal(d.Params, &filled) != nil || filled == nil {
		return params
	}
	if len(params) > 0 && (json.Unmarshal(params, &own) != nil || own == nil) {
		return params
	}
	maps.Copy(filled, own)
	text, err := jsontext.Marshal(filled)
	if err != nil { // values that were just read can be written
		return params
	}
	return text
}
