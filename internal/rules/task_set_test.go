package rules_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

func TestATaskThatWaitsIsChanged(t *testing.T) {
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	at, passed, read := now.Add(time.Hour), now.Add(-time.Hour), now.Add(-time.Minute)
	minute, none := time.Minute, time.Duration(0)
	held := func(until time.Time) plan.Task {
		return plan.Task{Name: "t", Status: plan.Held, NotBefore: until, Modified: read, Params: json.RawMessage(`{"a":1}`)}
	}
	queued := plan.Task{
		Name: "t", Status: plan.Queued, Modified: read, Needs: []plan.TaskID{{}}, Params: json.RawMessage(`{"a":1,"needs":{"p":2},"args":[2]}`),
		Definition: plan.Definition{Timeout: time.Hour, Retry: plan.Retry{Attempts: 2, Delay: time.Second}, Template: true},
	}
	with := func(t plan.Task, change func(*plan.Task)) plan.Task {
		change(&t)
		return t
	}
	for _, c := range []struct {
		name    string
		task    plan.Task
		busy    bool
		change  rules.TaskChange
		changes bool
		back    bool
		until   time.Time
		refused string
	}{
		{name: "another instant", task: held(at), change: rules.TaskChange{NotBefore: &passed}, changes: true},
		{name: "a later instant", task: held(now.Add(time.Minute)), change: rules.TaskChange{NotBefore: &at}, changes: true, until: at},
		{name: "the same instant", task: held(at), change: rules.TaskChange{NotBefore: &at}, until: at},
		{name: "the same instant, to the millisecond", task: held(at), change: rules.TaskChange{NotBefore: ptr(at.Add(999 * time.Microsecond))}, until: at},
		{name: "no instant, where none is", task: held(time.Time{}), change: rules.TaskChange{NotBefore: &passed}},
		{name: "now is no instant to come", task: held(at), change: rules.TaskChange{NotBefore: &now}, changes: true},
		{name: "an instant of a queued task", task: queued, change: rules.TaskChange{NotBefore: &at}, changes: true, back: true, until: at},
		{name: "a passed instant of a queued task", task: queued, change: rules.TaskChange{NotBefore: &passed}},
		{name: "attempts", task: queued, change: rules.TaskChange{Attempts: 3}, changes: true},
		{name: "the same attempts", task: queued, change: rules.TaskChange{Attempts: 2}},
		{name: "a timeout", task: queued, change: rules.TaskChange{Timeout: &minute}, changes: true},
		{name: "no timeout", task: queued, change: rules.TaskChange{Timeout: &none}, changes: true},
		{name: "no timeout, where none is", task: held(at), change: rules.TaskChange{Timeout: &none}, until: at},
		{name: "a subject", task: queued, change: rules.TaskChange{Subject: ptr("order 7")}, changes: true},
		{name: "no subject, where none is", task: queued, change: rules.TaskChange{Subject: ptr("")}},
		{name: "params", task: held(at), change: rules.TaskChange{Params: json.RawMessage(`{"a":2}`)}, changes: true, until: at},
		{name: "the same params, spelled otherwise", task: held(at), change: rules.TaskChange{Params: json.RawMessage(` {"a" : 1}`)}, until: at},
		{name: "the same params beside inputs", task: queued, change: rules.TaskChange{Params: json.RawMessage(`{"a":1}`), Template: true}},
		{name: "the same params, which are data now", task: queued, change: rules.TaskChange{Params: json.RawMessage(`{"a":1}`)}, changes: true},
		{name: "nothing", task: queued},
		{name: "as it was read", task: queued, change: rules.TaskChange{Attempts: 3, Modified: read}, changes: true},
		{name: "not as it was read", task: queued, change: rules.TaskChange{Attempts: 3, Modified: now}, refused: "task t was changed since it was read"},
		{name: "not as it was read, and as it is to be", task: queued, change: rules.TaskChange{Attempts: 2, Modified: now}},
		{name: "of a plan", task: with(queued, func(t *plan.Task) { t.Plan.ID[0] = 1 }), refused: "task t is of a plan"},
		{name: "claimed", task: with(queued, func(t *plan.Task) { t.Status = plan.Claimed }), refused: "task t is starting: only a task that waits can be changed"},
		{name: "running", task: with(queued, func(t *plan.Task) { t.Status = plan.Running }), refused: "task t is running: only"},
		{name: "skipped", task: with(queued, func(t *plan.Task) { t.Status, t.Reason = plan.Cancelled, plan.ReasonSkipped }), refused: "task t is skipped: only"},
		{name: "of a status that is no code", task: with(queued, func(t *plan.Task) { t.Status = -9 }), refused: "only a task that waits"},
		{name: "that another call has in hand", task: queued, busy: true, refused: "try again"},
	} {
		s, changes, err := rules.SetTask(&c.task, c.busy, &c.change, now)
		if c.refused != "" {
			if !errors.Is(err, plan.ErrConflict) || !strings.Contains(err.Error(), c.refused) || changes {
				t.Errorf("%s: changes %v, error %v; want a conflict that says %q", c.name, changes, err, c.refused)
			}
			continue
		}
		if err != nil || changes != c.changes || s.Back != c.back || !s.NotBefore.Equal(c.until) {
			t.Errorf("%s: changes %v, back %v, until %v, error %v; want %v, %v, %v", c.name, changes, s.Back, s.NotBefore, err, c.changes, c.back, c.until)
		}
		if s.Back && (s.Step.Status != plan.Held || !s.Step.Keep || s.Step.Delay != time.Hour) {
			t.Errorf("%s: the step is %+v", c.name, s.Step)
		}
		if (s.Params != nil) != (c.name == "params") {
			t.Errorf("%s: new params %s", c.name, s.Params)
		}
		d := s.Definition
		if c.change.Attempts > 0 && (d.Retry.Attempts != c.change.Attempts || d.Retry.Delay != c.task.Retry.Delay) || c.change.Timeout != nil && d.Timeout != *c.change.Timeout {
			t.Errorf("%s: the definition is %+v", c.name, d)
		}
	}
}

func ptr[T any](v T) *T { return &v }

func TestAChangeOfNoTaskIsRefused(t *testing.T) {
	negative := -time.Second
	for _, c := range []rules.TaskChange{
		{Attempts: -1}, {Timeout: &negative}, {Params: json.RawMessage("[]")}, {Params: json.RawMessage("null")}, {Params: json.RawMessage("")}, {Params: json.RawMessage(`{"a"`)},
	} {
		if rules.CheckTaskChange(&c) == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
	if err := rules.CheckTaskChange(&rules.TaskChange{Params: json.RawMessage(`{}`), Timeout: new(time.Duration)}); err != nil {
		t.Error(err)
	}
}

func TestParamsKeepWhatTheirTaskWasGiven(t *testing.T) {
	given, err := rules.Deliver(json.RawMessage(`{"a":1,"args":"own"}`), []plan.Input{{Name: "p", Output: json.RawMessage(`1.50`)}, {Name: "q"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ params, was, want string }{
		{`{"b":2}`, string(given), `{"b":2,"needs":{"p":1.50,"q":null},"args":[1.50,null]}`},
		{`{"needs":"own"}`, string(given), `{"needs":{"p":1.50,"q":null},"args":[1.50,null]}`},
		{`{"b":2}`, `{"a":1,"needs":"own"}`, `{"b":2}`},
		{`{"b":2}`, `not JSON`, `{"b":2}`},
		{`{"b":2}`, ``, `{"b":2}`},
	} {
		if got, err := rules.KeepInputs(json.RawMessage(c.params), json.RawMessage(c.was)); err != nil || string(got) != c.want {
			t.Errorf("%s in place of %s: %s, %v; want %s", c.params, c.was, got, err, c.want)
		}
	}
	if got := rules.WithoutInputs(given); string(got) != `{"a":1}` {
		t.Errorf("without inputs: %s", got)
	}
}
