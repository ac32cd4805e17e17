package secret_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/jsontext"
	"github.com/seed-1177d267/sluice/internal/secret"
	"github.com/seed-1177d267/sluice/plan"
)

func TestATaskIsAddedAgainOnlyAsItWas(t *testing.T) {
	parent, other := plan.TaskID{ID: plan.NewID(time.Now())}, plan.TaskID{ID: plan.NewID(time.Now())}
	first := plan.Task{
		ID: plan.TaskID{ID: plan.NewID(time.Now())}, Name: "a", Queue: plan.QueueID{ID: plan.NewID(time.Now())}, Needs: []plan.TaskID{parent},
		Params: json.RawMessage(`{"x": 1, "password": "pw"}`), Definition: plan.Definition{Timeout: time.Minute},
	}
	secrets := secret.Of([]plan.Queue{{QueueSettings: plan.QueueSettings{Secrets: []string{"password"}}}})
	for _, c := range []struct {
		name   string
		there  func(*plan.Task)
		again  func(*plan.Task)
		refuse string // "": it is the same
	}{
		{name: "the same"},
		{name: "spelled otherwise", again: func(t *plan.Task) { t.Params = json.RawMessage(`{"password":"pw","x":1}`) }},
		{name: "its default said", again: func(t *plan.Task) { t.When = plan.AllSucceeded }},
		{name: "later", again: func(t *plan.Task) { t.Created, t.NotBefore = time.Now(), time.Now() }},
		{name: "with what its parents returned", there: func(t *plan.Task) {
			t.Params = json.RawMessage(`{"args":[7],"needs":{"p":7},"password":"pw","x":1}`)
		}},
		{name: "with another secret", again: func(t *plan.Task) { t.Params = json.RawMessage(`{"x": 1, "password": "guess"}`) }},
		{name: "other params", again: func(t *plan.Task) { t.Params = json.RawMessage(`{"x": 2, "password": "pw"}`) }, refuse: "other params;"},
		{name: "no params", again: func(t *plan.Task) { t.Params = nil }, refuse: "other params;"},
		{name: "another queue", again: func(t *plan.Task) { t.Queue = plan.QueueID{ID: plan.NewID(time.Now())} }, refuse: "other queue;"},
		{name: "another name", again: func(t *plan.Task) { t.Name = "b" }, refuse: "other name;"},
		{name: "other needs", again: func(t *plan.Task) { t.Needs = []plan.TaskID{other} }, refuse: "other needs;"},
		{name: "another plan", again: func(t *plan.Task) { t.Plan = plan.PlanID{ID: plan.NewID(time.Now())} }, refuse: "other plan;"},
		{name: "another timeout", again: func(t *plan.Task) { t.Timeout = time.Hour }, refuse: "other definition;"},
		{name: "more than one thing", again: func(t *plan.Task) { t.Params, t.When = nil, plan.AllDone }, refuse: "other params, definition;"},
	} {
		t.Run(c.name, func(t *testing.T) {
			there, again := first, first
			if c.there != nil {
				c.there(&there)
			}
			if c.again != nil {
				c.again(&again)
			}
			err := secret.CheckSame(&there, &again, secrets)
			switch {
			case c.refuse == "" && err != nil:
				t.Error(err)
			case c.refuse != "" && (!errors.Is(err, plan.ErrExists) || !strings.Contains(err.Error(), c.refuse) || !strings.Contains(err.Error(), first.ID.String())):
				t.Errorf("%v, want an ErrExists that names the task and its %s", err, c.refuse)
			}
		})
	}
}

func TestJSONIsComparedByItsValue(t *testing.T) {
	for _, c := range []struct {
		name, a, b string
		same       bool
	}{
		{"keys in another order, other blanks", `{"a": 1, "b": [true]}`, `{"b":[true],"a":1}`, true},
		{"a character that is escaped", `"é"`, `"\u00e9"`, true},
		{"a list in another order", `[1,2]`, `[2,1]`, false},
		{"large numbers that differ in the last digit", `9007199254740993`, `9007199254740992`, false},
		{"nothing at all, twice", ``, ``, true},
		{"nothing at all and null", ``, `null`, false},
		{"what is no JSON", `{`, `[`, false},
	} {
		for _, turned := range []bool{false, true} {
			a, b := json.RawMessage(c.a), json.RawMessage(c.b)
			if turned {
				a, b = b, a
			}
			if got := jsontext.Same(a, b); got != c.same {
				t.Errorf("%s: %s and %s are the same: %v, want %v", c.name, a, b, got, c.same)
			}
		}
	}
}
