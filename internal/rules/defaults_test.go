package rules_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

func TestATaskHasTheDefaultsOfItsQueue(t *testing.T) {
	for _, c := range []struct{ defaults, params, want string }{
		{``, `{"a":1}`, `{"a":1}`},
		{``, ``, ``},
		{`{"a":1}`, ``, `{"a":1}`},
		{`{"a":1}`, `{}`, `{"a":1}`},
		{`{"a":1,"b":{"x":1}}`, `{"b":{"y":2},"c":3}`, `{"a":1,"b":{"y":2},"c":3}`},
		{`{"a":1}`, `{"a":null}`, `{"a":null}`},
		{`{"a":12345678901234567890}`, `{"b":"<é>"}`, `{"a":12345678901234567890,"b":"<é>"}`},
		{`{"a":1}`, `[1]`, `[1]`}, // which other programs may write
		{`{"a":1}`, `null`, `null`},
		{`[1]`, `{"b":1}`, `{"b":1}`},
	} {
		if got := string(rules.FillParams(&plan.TaskDefaults{Params: json.RawMessage(c.defaults)}, json.RawMessage(c.params))); got != c.want {
			t.Errorf("params %s by default %s are %s, want %s", c.params, c.defaults, got, c.want)
		}
	}
	for _, c := range []struct {
		defaults, params string
		want             bool
	}{
		{`{"a":1}`, `{}`, true}, {`{"a":1}`, ``, true}, {`{"a":1}`, `{"a":2}`, false}, {`{"b":1}`, `{}`, false}, {``, `{}`, false},
	} {
		if got := rules.ByDefault(&plan.TaskDefaults{Params: json.RawMessage(c.defaults)}, json.RawMessage(c.params), "a"); got != c.want {
			t.Errorf("params %s have a by default %s: %v", c.params, c.defaults, got)
		}
	}
	said := plan.TaskDefaults{Retry: plan.RetryText{Attempts: 3, Delay: plan.Duration(time.Second)}, Timeout: plan.Duration(time.Minute)}
	silent := protocol.ClaimedTask{Settings: plan.QueueSettings{Defaults: said}}
	if rules.FillDefaults(&silent); silent.Retry != (plan.Retry{Attempts: 3, Delay: time.Second}) || silent.Timeout != time.Minute {
		t.Errorf("a task that says nothing has %+v and %v", silent.Retry, silent.Timeout)
	}
	own := protocol.ClaimedTask{
		Settings: plan.QueueSettings{Defaults: said}, Definition: plan.Definition{Retry: plan.Retry{Attempts: 1}, Timeout: time.Hour},
	}
	if rules.FillDefaults(&own); own.Retry != (plan.Retry{Attempts: 1}) || own.Timeout != time.Hour {
		t.Errorf("a task with its own has %+v and %v", own.Retry, own.Timeout)
	}
}
