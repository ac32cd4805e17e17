package v1_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/api"
	v1 "github.com/seed-1177d267/sluice/internal/api/v1"
	"github.com/seed-1177d267/sluice/internal/auth"
	"github.com/seed-1177d267/sluice/internal/store/storetest/model"
	"github.com/seed-1177d267/sluice/plan"
)

// newPlain adds a task of no plan to the queue, and returns its path.
func (s *site) newPlain(queue, fields string) string {
	s.Helper()
	var q api.Queue
	s.must("GET", "/queues/"+queue, "", &q)
	id := plan.NewID(time.Now()).String()
	s.must("POST", "/tasks", fmt.Sprintf(`{"tasks": [{"id": %q, "queue_id": %q%s}]}`, id, q.ID, fields), nil)
	return "/tasks/" + id
}

func TestATaskThatWaitsIsChanged(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		s.must("POST", "/queues", `{"name": "q", "plugin": "demo", "threads": 3, "secrets": ["token"]}`, nil)
		path := s.newPlain("q", `, "params": {"token": "hunter22", "a": 1}, "retry": {"attempts": 2, "delay": "5s"}, "not_before": "2099-01-01T00:00:00Z"`)
		read := func() (got api.Task) {
			t.Helper()
			s.must("GET", path, "", &got)
			return got
		}
		change := func(want int, tag, body, says string) (etag string) {
			t.Helper()
			status, etag, text := s.match(tag, "PATCH", path, body)
			if status != want || !strings.Contains(text, says) || strings.Contains(text, "hunter22") {
				t.Errorf("%s with %q: %d %s, want %d and %q", body, tag, status, text, want, says)
			}
			return etag
		}
		_, first, _ := s.match("", "GET", path, "")
		second := change(200, first, `{"attempts": 4}`, `"state":"held"`)
		if first == "" || second == "" || first == second {
			t.Errorf("the ETags are %q and %q", first, second)
		}
		change(200, first, `{"attempts": 4}`, second[1:3]) // asked again, since an answer was lost
		change(412, first, `{"attempts": 5}`, "was changed since it was read")
		change(412, `"x"`, `{"attempts": 5}`, "was changed since it was read")
		change(200, "*", `{}`, `"attempts":4`)
		if got := read(); got.Retry.Attempts != 4 || time.Duration(got.Retry.Delay) != 5*time.Second || got.NotBefore.Year() != 2099 || !strings.Contains(string(got.Params), `"***"`) {
			t.Errorf("the task is %+v", got)
		}
		change(422, "", `{"params": {"token": "***"}}`, "stands for a secret that is not shown")
		change(200, "", `{"params": {"token": "other-token", "a": "${{ x }}"}}`, `"***"`)
		change(200, "", `{"timeout": "1m0s", "not_before": "2098-01-01T00:00:00.1239Z"}`, `"not_before":"2098-01-01T00:00:00.123Z"`)
		if got := read(); got.Template || got.Timeout != api.Duration(time.Minute) || got.Retry.Attempts != 4 {
			t.Errorf("the task is %+v", got)
		}
		change(200, "", `{"not_before": null, "timeout": null}`, `"state":"queued"`)
		third := change(200, "", `{"not_before": "2098-01-01T00:00:00Z"}`, `"state":"held"`)
		change(200, third, `{"not_before": "2001-01-01T00:00:00Z"}`, `"state":"queued"`)
		if got := read(); got.Timeout != 0 || !got.NotBefore.IsZero() {
			t.Errorf("the task is %+v", got)
		}
		_, last, _ := s.match("", "GET", path, "")
		s.must("POST", path+"/cancel", "", nil)
		for _, tag := range []string{"", last, first} {
			change(409, tag, `{"attempts": 7}`, "is cancelled: only a task that waits can be changed")
		}
		if status, text := s.submit("plan: p\ntasks: {a: {plugin: demo, queue: q}}\n", "", ""); status != 201 {
			t.Fatal(status, text)
		}
		var of struct{ Tasks []api.Task }
		s.must("GET", "/plans/p/tasks", "", &of)
		path = "/tasks/" + of.Tasks[0].ID.String()
		change(409, "", `{"attempts": 7}`, "is of a plan: a task of a plan changes by a retry of the plan with a mended file: sluice plan retry PLAN --with FILE")
	})
}

// A plugin refuses params of a change as it does those of a new task.
func TestAPluginLooksAtChangedParams(t *testing.T) {
	st := model.New(model.Options{})
	s := serveStore(t, st, v1.Config{Store: st, Check: func(spec *plan.Spec) (problems plan.Problems) {
		if p := spec.Tasks[0]; strings.Contains(fmt.Sprintf("%s", p.Params), "wrong") {
			problems = append(problems, plan.Problem{Key: "params", Message: "plugin " + p.Plugin + ": wrong"})
		}
		return problems
	}})
	s.must("POST", "/queues", `{"name": "q", "plugin": "demo", "threads": 3}`, nil)
	path := s.newPlain("q", "")
	for _, c := range []struct{ method, path, body, at string }{
		{"PATCH", path, `{"params": {"a": "wrong"}}`, "body.params"},
		{"POST", "/tasks/matching/set", `{"filter": {"state": ["queued"]}, "change": {"params": {"a": "wrong"}}}`, "body.change.params"},
	} {
		status, text := s.ask(c.method, c.path, c.body)
		var p api.Problem
		if err := json.Unmarshal([]byte(text), &p); err != nil || status != 422 || len(p.Fields) != 1 || p.Fields[0].Location != c.at || !strings.Contains(p.Detail, "plugin demo: wrong") {
			t.Errorf("%s: %d %s", c.path, status, text)
		}
	}
	s.must("PATCH", path, `{"params": {"a": "right"}}`, nil)
}

// Params are what a task does, so that to change them takes the scope submit as well.
func TestParamsOfATaskAreChangedByWhoMaySubmit(t *testing.T) {
	s := serve(t)
	s.must("POST", "/queues", `{"name": "q", "plugin": "demo", "threads": 3}`, nil)
	path := s.newPlain("q", "")
	ask := guarded(t, s)
	const matching = "/tasks/matching"
	for _, c := range []struct {
		scopes, method, path, body string
		code                       int
	}{
		{"operate", "PATCH", path, `{"attempts":3,"not_before":"2099-01-01T00:00:00Z"}`, 200},
		{"operate", "PATCH", path, `{"attempts":4,"params":{"a":1}}`, 403},
		{"submit", "PATCH", path, `{"attempts":5}`, 403},
		{"operate,submit", "PATCH", path, `{"params":{"a":2}}`, 200},
		{"operate", "POST", matching + "/set", `{"filter":{"queue":"q"},"change":{"timeout":"1m"}}`, 200},
		{"operate", "POST", matching + "/set", `{"filter":{"queue":"q"},"change":{"params":{"a":3}}}`, 403},
		{"operate,submit", "POST", matching + "/set", `{"filter":{"queue":"q"},"change":{"params":{"a":4}}}`, 200},
		{"submit", "POST", matching + "/cancel", `{"filter":{"queue":"q"}}`, 403},
		{"submit", "POST", matching + "/retry", `{"filter":{"queue":"q"}}`, 403},
		{"operate", "POST", matching + "/retry", `{"filter":{"queue":"q"}}`, 200},
	} {
		code, text := ask(c.scopes, c.method, api.Root+c.path, c.body)
		if code != c.code || c.code == 403 && !strings.Contains(text, `"code":"forbidden"`) {
			t.Errorf("%s %s with %s: %d %s, want %d", c.path, c.body, c.scopes, code, text, c.code)
		}
	}
	var got api.Task
	if s.must("GET", path, "", &got); got.Retry.Attempts != 3 || string(got.Params) != `{"a":4}` || time.Duration(got.Timeout) != time.Minute {
		t.Errorf("the task is %+v", got)
	}
}

// guarded returns a function that asks the site with tokens of some scopes: read, operate, submit, or
// operate,submit.
func guarded(t *testing.T, s *site) func(scopes, method, path, body string) (code int, text string) {
	t.Helper()
	file, tokens := filepath.Join(t.TempDir(), "access.json"), map[string]string{}
	err := auth.Edit(file, true, func(a *auth.Access) error {
		for _, scopes := range []auth.Scopes{{auth.Read}, {auth.Operate}, {auth.Submit}, {auth.Operate, auth.Submit}} {
			token, hash := auth.NewToken()
			tokens[scopes.String()] = token
			a.Tokens = append(a.Tokens, auth.Token{ID: fmt.Sprint("t", len(tokens)), SHA256: hash, Scopes: scopes})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	access, err := auth.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	guard, err := auth.New(auth.Config{Access: access, Listen: "127.0.0.1:0", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	handler := guard.Wrap(s.api, s.api.Scope)
	return func(scopes, method, path, body string) (int, string) {
		r := httptest.NewRequest(method, "http://127.0.0.1"+path, strings.NewReader(body))
		if body != "" {
			r.Header.Set("Content-Type", "application/json")
		}
		r.Header.Set("Authorization", "Bearer "+tokens[scopes])
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
}
