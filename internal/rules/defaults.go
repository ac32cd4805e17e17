package rules

import (
	"bytes"
	"encoding/json"
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
	defaults, err := jsontext.Object(d.Params)
	if err != nil || defaults == nil {
		return params
	}
	if len(params) == 0 {
		return d.Params
	}
	own, err := jsontext.Object(params)
	if err != nil || own == nil {
		return params
	}
	if len(own) == 0 {
		return d.Params
	}
	filled := append(make([]byte, 0, len(d.Params)+len(params)), '{')
	for _, m := range defaults {
		if own.Get(m.Name) == nil {
			filled = append(jsontext.AppendText(filled, m.Name), ':')
			filled = append(append(filled, m.Value...), ',')
		}
	}
	_, members, _ := bytes.Cut(params, []byte("{"))
	return append(filled, members...)
}
