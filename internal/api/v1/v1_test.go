package v1_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/api/v1"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/storetest/model"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
	"github.com/seed-1177d267/sluice/plugins/exec"
)

// A site is an API over a store of its own.
type site struct {
	*testing.T
	st  store.Store
	url string
	api *v1.API
	end func() // returns once nothing reads the store any more
}

// serve serves an empty store, for what the store has no part in.
func serve(t *testing.T) *site {
	t.Helper()
	st := model.New(model.Options{})
	return serveStore(t, st, v1.Config{Store: st})
}

func serveStore(t *testing.T, st store.Store, c v1.Config) *site {
	t.Helper()
	a := v1.New(c)
	ctx, stop := context.WithCancel(context.Background())
	ran := make(chan struct{})
	go func() { defer close(ran); a.Run(ctx) }()
	srv := httptest.NewServer(a)
	end := sync.OnceFunc(func() { stop(); <-ran; srv.Close() })
	t.Cleanup(end)
	return &site{t, st, srv.URL + api.Root, a, end}
}

// ask returns the status and body of an answer.
func (s *site) ask(method, path, body string) (int, string) {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		s.Fatal(err)
	}
	return a.StatusCode, string(text)
}

func (s *site) must(method, path, body string, into any) {
	s.Helper()
	status, text := s.ask(method, path, body)
	if status/100 != 2 {
		s.Fatalf("%s %s: %d %s", method, path, status, text)
	}
	if into != nil {
		if err := json.Unmarshal([]byte(text), into); err != nil {
			s.Fatalf("%s %s: %v in %s", method, path, err, text)
		}
	}
}

func TestAPlanIsMadeAndLookedAt(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		var q api.Queue
		s.must("POST", "/queues", `{"name": "demo", "plugin": "demo", "threads": null}`, &q)
		if q.Threads != nil || q.State != "open" {
			t.Errorf("the queue is %+v", q)
		}
		p, list, count := plan.NewID(time.Now()), plan.NewID(time.Now()), plan.NewID(time.Now())
		s.must("PUT", "/plans/"+p.String(), `{"name": "nightly", "params": {"domain": "example.com"}}`, nil)
		s.must("POST", "/plans/"+p.String()+"/tasks", `{"tasks": [
		{"id": "`+list.String()+`", "name": "list", "queue_id": "`+q.ID.String()+`", "timeout": "1m30s"},
		{"id": "`+count.String()+`", "name": "count", "queue_id": "`+q.ID.String()+`", "needs": ["`+list.String()+`"]}]}`, nil)
		s.must("POST", "/plans/"+p.String()+"/ready", "", nil)
		var got api.Plan
		for _, name := range []string{p.String(), "nightly", "nightly%231"} {
			if s.must("GET", "/plans/"+name, "", &got); got.Counts.Queued != 1 || got.Counts.Held != 1 || got.State != "running" || !got.Stalled {
				t.Errorf("GET %s: %+v", name, got)
			}
		}
		var tasks struct{ Tasks []api.Task }
		if s.must("GET", "/plans/nightly/tasks?state=held&with=needs", "", &tasks); len(tasks.Tasks) != 1 || tasks.Tasks[0].Needs[0].ID != list {
			t.Errorf("held: %+v", tasks)
		}
		var reasons struct{ Reasons []api.Reason }
		if s.must("GET", "/tasks/"+count.String()+"/explain", "", &reasons); len(reasons.Reasons) != 2 || reasons.Reasons[1].Name != "list" {
			t.Errorf("why: %+v", reasons)
		}
	})
}

func TestProblemsNameThePlaceAndTheCode(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		for _, c := range []struct {
			method, path, body string
			status             int
			code, location     string
		}{
			{"GET", "/plans/none", "", 404, "not_found", ""},
			{"GET", "/plans/" + strings.Repeat("0", 24), "", 404, "not_found", ""},
			{"GET", "/plans/a%23b", "", 422, "invalid", ""},
			{"GET", "/plans?limit=many", "", 422, "invalid", "query.limit"},
			{"GET", "/plans?limti=3", "", 422, "invalid", "query.limti"},
			{"GET", "/plans?state=odd", "", 422, "invalid", "query.state"},
			{"GET", "/tasks?state=odd", "", 422, "invalid", ""},
			{"GET", "/tasks?queue[$ne]=x", "", 422, "invalid", "query.queue[$ne]"},
			{"GET", "/tasks/xyz", "", 422, "invalid", "path.task"},
			{"GET", "/nowhere", "", 404, "not_found", ""},
			{"POST", "/plans/nightly/cancel", "", 422, "invalid", "path.plan"},
			{"POST", "/plans/" + strings.Repeat("1", 24) + "/retry", "", 404, "not_found", ""},
			{"PATCH", "/nowhere", "", 404, "not_found", ""},
			{"DELETE", "/queues", "", 405, "method_not_allowed", ""},
			{"PATCH", "/plans", "", 405, "method_not_allowed", ""},
			{"POST", "/queues", `{"name": {"$gt": ""}, "plugin": "demo", "threads": 1}`, 422, "invalid", "body.name"},
			{"POST", "/queues", `{"name": "q", "plugin": "demo", "threads": 1, "thread": 2}`, 422, "invalid", "body.thread"},
			{"POST", "/queues", `{"name": "q", "plugin": "demo", "threads": -1}`, 422, "invalid", "body.threads"},
			{"PUT", "/queues/q", `{"threads": -1}`, 422, "invalid", "body.threads"},
			{"POST", "/queues", `{"name": "q", "plugin": "demo", "threads": 1, "weight": 0}`, 422, "invalid", "body.weight"},
			{"POST", "/queues", `{"name": "q", "plugin": "demo", "threads": 1, "weight": 1001}`, 422, "invalid", "body.weight"},
			{"POST", "/queues", `{"name": "q", "plugin": "demo", "threads": 1, "rate": {"starts": 0, "per": "1s"}}`, 422, "invalid", "body.rate.starts"},
			{"POST", "/queues", `{"name": "q", "plugin": "demo", "threads": 1, "rate": {"starts": 1, "per": "1s", "burst": 0}}`, 422, "invalid", "body.rate.burst"},
			{"POST", "/queues", `{"name": "q", "plugin": "demo", "threads": 1, "defaults": {"retry": {"attempts": 0}}}`, 422, "invalid", "body.defaults.retry.attempts"},
			{"POST", "/queues", `{"name": "q", "plugin": "demo", "threads": 1, "keep": {"failed": "-1d"}}`, 422, "invalid", "body.keep"},
			{"POST", "/groups", `{"name": ""}`, 422, "invalid", "body.name"},
			{"POST", "/tasks", `{"tasks": [{"id": "` + strings.Repeat("1", 24) + `", "queue_id": "` + strings.Repeat("1", 24) + `", "params": {"a": 1e999}}]}`, 400, "invalid", "body"},
			{"POST", "/groups", `{"name": "g", "keep": {"failed": "-1d"}}`, 422, "invalid", "body.keep"},
			{"PUT", "/plans/" + strings.Repeat("1", 24), `{"name": "a", "keep": "-1d"}`, 422, "invalid", "body.keep"},
			{"PUT", "/nodes/n1", `{"maxthreads": -1}`, 422, "invalid", "body.maxthreads"},
			{"POST", "/queues", `{"name": "q", "plugin": "demo", "threads": 1000001}`, 422, "invalid", "body.threads"},
			{"POST", "/queues", `{"name": "q", "plugin": "demo", "threads": 1, "node_threads": 1000001}`, 422, "invalid", "body.node_threads"},
			{"PUT", "/nodes/n1", `{"maxthreads": 1000001}`, 422, "invalid", "body.maxthreads"},
			{"POST", "/queues", `{"name": "q", "plugin": "demo", "threads": 1, "secrets": [""]}`, 422, "invalid", "body.secrets"},
			{"PUT", "/plans/" + strings.Repeat("1", 24), `{"name": "a", "secrets": [""]}`, 422, "invalid", "body.secrets"},
			{"POST", "/queues", `{"name": "q", "plugin": "demo", "threads": 1e308}`, 422, "invalid", "body.threads"},
			{"POST", "/queues", `{"name": `, 400, "invalid", "body"},
			{"POST", "/queues", `{"name": "` + strings.Repeat("q", 201) + `", "plugin": "demo", "threads": 1}`, 422, "invalid", "body.name"},
			{"POST", "/queues", `{"name": "q", "plugin": "` + strings.Repeat("q", 201) + `", "threads": 1}`, 422, "invalid", "body.plugin"},
			{"POST", "/queues", `{"name": "a\u0000b", "plugin": "demo", "threads": 1}`, 422, "invalid", "body.name"},
			{"POST", "/queues", `{"name": "a b", "plugin": "demo", "threads": 1}`, 422, "invalid", "body.name"},
			{"POST", "/queues", `{"name": "a[0]", "plugin": "demo", "threads": 1}`, 422, "invalid", "body.name"},
			{"POST", "/queues", `{"name": "-a", "plugin": "demo", "threads": 1}`, 422, "invalid", "body.name"},
			{"POST", "/queues", `{"name": ".", "plugin": "demo", "threads": 1}`, 422, "invalid", "body.name"},
			{"POST", "/queues", `{"name": "..", "plugin": "demo", "threads": 1}`, 422, "invalid", "body.name"},
			{"POST", "/queues", `{"name": "` + strings.Repeat("a1", 12) + `", "plugin": "demo", "threads": 1}`, 422, "invalid", "body.name"},
			{"POST", "/queues", `{"name": "q", "plugin": "de mo", "threads": 1}`, 422, "invalid", "body.plugin"},
			{"POST", "/queues", `{"name": "q", "plugin": "a.b-c", "threads": 1}`, 422, "invalid", "body.plugin"},
			{"POST", "/queues", `{"name": "q", "plugin": "demo", "threads": 1, "pin": [""]}`, 422, "invalid", "body.pin"},
			{"POST", "/queues", `{"name": "q", "plugin": "demo", "threads": 1, "ignore": ["n1", "a,b"]}`, 422, "invalid", "body.ignore"},
			{"PUT", "/nodes/a,b", `{"maxthreads": 1}`, 422, "invalid", "path.node"},
			{"PUT", "/nodes/%20a", `{"maxthreads": 1}`, 422, "invalid", "path.node"},
			{"PUT", "/nodes/a," + strings.Repeat("x", 9000), `{"maxthreads": 1}`, 422, "invalid", "path.node"},
			{"POST", "/plans/prune", `{"keep": "-1h"}`, 422, "invalid", "body.keep"},
			{"POST", "/queues", `{"name": "` + strings.Repeat("x", 2<<20) + `"}`, 413, "too_large", ""},
			{"PUT", "/plans/" + strings.Repeat("1", 24), `{"name": "a b"}`, 422, "invalid", "body.name"},
			{"PUT", "/plans/" + strings.Repeat("1", 24), `{"name": "a", "params": [1]}`, 422, "invalid", "body.params"},
			{"PUT", "/plans/" + strings.Repeat("1", 24), `{"name": "a", "params": {"x": "` + strings.Repeat("x", 1<<20) + `"}}`, 422, "too_large_to_keep", ""},
			{"POST", "/plans/" + strings.Repeat("1", 24) + "/retry-with", `{"params": {"x": "` + strings.Repeat("x", 1<<20) + `"}}`, 422, "too_large_to_keep", ""},
			{"POST", "/plans/" + strings.Repeat("1", 24) + "/ready", "", 404, "not_found", ""},
			{"PATCH", "/plans/" + strings.Repeat("1", 24), `{"priority": 2}`, 404, "not_found", ""},
			{"PATCH", "/plans/" + strings.Repeat("1", 24), `{"priority": 0}`, 422, "invalid", "body.priority"},
			{"PATCH", "/plans/" + strings.Repeat("1", 24), `{"priority": 101}`, 422, "invalid", "body.priority"},
			{"PATCH", "/plans/" + strings.Repeat("1", 24), `{}`, 422, "invalid", "body"},
			{"PATCH", "/tasks/" + strings.Repeat("1", 24), `{"attempts": 2}`, 404, "not_found", ""},
			{"PATCH", "/tasks/" + strings.Repeat("1", 24), `{"params": {"a": 1}}`, 404, "not_found", ""},
			{"PATCH", "/tasks/" + strings.Repeat("1", 24), `{"attempts": 0}`, 422, "invalid", "body.attempts"},
			{"PATCH", "/tasks/" + strings.Repeat("1", 24), `{"attempts": 3000000000}`, 422, "invalid", "body.attempts"},
			{"PATCH", "/tasks/" + strings.Repeat("1", 24), `{"timeout": "-1s"}`, 422, "invalid", "body.timeout"},
			{"PATCH", "/tasks/" + strings.Repeat("1", 24), `{"timeout": "soon"}`, 422, "invalid", "body.timeout"},
			{"PATCH", "/tasks/" + strings.Repeat("1", 24), `{"params": [1]}`, 422, "invalid", "body.params"},
			{"PATCH", "/tasks/" + strings.Repeat("1", 24), `{"params": null}`, 422, "invalid", "body.params"},
			{"PATCH", "/tasks/" + strings.Repeat("1", 24), `{"not_before": "tomorrow"}`, 422, "invalid", "body.not_before"},
			{"PATCH", "/tasks/" + strings.Repeat("1", 24), `{"not_before": "2099-02-29T00:00:00Z"}`, 422, "invalid", "body.not_before"},
			{"PATCH", "/tasks/" + strings.Repeat("1", 24), `{"not_before": "9999-12-31T23:00:00-05:00"}`, 422, "invalid", "body.not_before"},
			{"PATCH", "/tasks/" + strings.Repeat("1", 24), `{"queue": "other"}`, 422, "invalid", "body.queue"},
			{"PATCH", "/tasks/xyz", `{}`, 422, "invalid", "path.task"},
			{"PATCH", "/tasks/" + strings.Repeat("1", 24), `{"subject": "a\nb"}`, 422, "invalid", "body.subject"},
			{"POST", "/tasks", `{"tasks": [{"id": "` + strings.Repeat("1", 24) + `", "queue_id": "` + strings.Repeat("1", 24) + `", "subject": "` + strings.Repeat("x", 201) + `"}]}`, 422, "invalid", "body.tasks[0].subject"},
			{"POST", "/tasks", `{"tasks": [{"id": "` + strings.Repeat("1", 24) + `", "queue_id": "` + strings.Repeat("1", 24) + `", "secrets": [""]}]}`, 422, "invalid", "body.tasks[0].secrets"},
			{"POST", "/tasks/retry-with", `{"replace": [{"id": "` + strings.Repeat("1", 24) + `", "queue_id": "` + strings.Repeat("1", 24) + `", "secrets": [" x"]}]}`, 422, "invalid", "body.replace[0].secrets"},
			{"POST", "/tasks/matching/cancel", `{}`, 422, "invalid", "body"},
			{"POST", "/tasks/matching/cancel", `{"filter": {}}`, 422, "invalid", "body.filter"},
			{"POST", "/tasks/matching/cancel", `{"filter": {"colour": "red"}}`, 422, "invalid", "body.filter.colour"},
			{"POST", "/tasks/matching/cancel", `{"filter": {"state": ["runing"]}}`, 422, "invalid", "body.filter.state"},
			{"POST", "/tasks/matching/retry", `{"filter": {"reason": ["300"]}}`, 422, "invalid", "body.filter.reason"},
			{"POST", "/tasks/matching/retry", `{"filter": {"older_than": "-1h"}}`, 422, "invalid", "body.filter.older_than"},
			{"POST", "/tasks/matching/retry", `{"filter": {"subject": "` + strings.Repeat("x", 201) + `"}}`, 422, "invalid", "body.filter.subject"},
			{"POST", "/tasks/matching/retry", `{"filter": {"queue": "none"}}`, 404, "not_found", ""},
			{"POST", "/tasks/matching/retry", `{"filter": {"state": ["failed"]}, "after": "x"}`, 422, "invalid", "body.after"},
			{"POST", "/tasks/matching/set", `{"filter": {"state": ["queued"]}}`, 422, "invalid", "body.change"},
			{"POST", "/tasks/matching/set", `{"filter": {"state": ["queued"]}, "change": {"attempts": 0}}`, 422, "invalid", "body.change.attempts"},
			{"POST", "/tasks/matching/set", `{"filter": {"state": ["queued"]}, "change": {"params": [1]}}`, 422, "invalid", "body.change.params"},
			{"POST", "/tasks/matching/set", `{"filter": {"state": ["running"]}, "change": {"attempts": 2}}`, 422, "invalid", "body.filter.state"},
		} {
			status, text := s.ask(c.method, c.path, c.body)
			var p api.Problem
			if err := json.Unmarshal([]byte(text), &p); err != nil || status != c.status || p.Status != c.status || p.Code != c.code || p.Detail == "" || len(text) > 2000 {
				t.Errorf("%s %.60s: %d %s, want %d %s", c.method, c.path, status, text, c.status, c.code)
				continue
			}
			if c.location != "" && (len(p.Fields) == 0 || p.Fields[0].Location != c.location) {
				t.Errorf("%s %.60s: %+v, want %s", c.method, c.path, p.Fields, c.location)
			}
			if strings.Contains(text, "expected number") || strings.Contains(text, "expected length") || strings.Contains(text, "Go value") { // a rule knows the remedy too
				t.Errorf("%s %.60s: %s", c.method, c.path, text)
			}
		}
	})
}

func TestAPathSaysWhichMethodsItTakes(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		for path, want := range map[string]string{"/queues/q": "GET, HEAD, PUT, DELETE", "/plans": "GET, HEAD, POST", "/plans/p/cancel": "POST"} {
			r, _ := http.NewRequestWithContext(t.Context(), "PATCH", s.url+path, nil)
			a, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			a.Body.Close()
			if got := a.Header.Get("Allow"); a.StatusCode != 405 || got != want {
				t.Errorf("PATCH %s: %s, Allow: %s, want %s", path, a.Status, got, want)
			}
		}
	})
}

func TestAQueueHasALongNameAtMost(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		longest := strings.Repeat("q", plan.MaxQueueName)
		s.must("POST", "/queues", `{"name": "`+longest+`", "plugin": "demo", "threads": 1}`, nil)
		var q api.Queue
		if s.must("GET", "/queues/"+longest, "", &q); q.Name != longest {
			t.Errorf("its name is %s", q.Name)
		}
		if status, text := s.ask("POST", "/queues", `{"name": "q`+longest+`", "plugin": "demo", "threads": 1}`); status != 422 || !strings.Contains(text, "at most 200 bytes") {
			t.Errorf("%d %s", status, text)
		}
	})
}

// Other programs may have made queues of names that no queue is given here. They are read, set and served by their ids.
func TestQueuesOfOtherNamesAreRead(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		for _, name := range []string{".", "..", "a b", strings.Repeat("a1", 12), strings.Repeat("q", 201)} {
			made, err := s.st.CreateQueue(t.Context(), plan.Queue{Name: name, Plugin: "demo", Threads: 1})
			if err != nil {
				t.Fatal(err)
			}
			at := "/queues/" + made.ID.String()
			var q api.Queue
			s.must("PUT", at, `{"threads": 2}`, nil)
			s.must("POST", "/tasks", fmt.Sprintf(`{"tasks": [{"id": %q, "queue_id": %q}]}`, plan.NewID(time.Now()), made.ID), nil)
			if s.must("GET", at, "", &q); q.Name != name || *q.Threads != 2 || q.Queued != 1 {
				t.Errorf("%.30q: %+v", name, q)
			}
		}
	})
}

func TestABalanceDocumentHasToBeOneToWorkBy(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		for _, c := range []struct {
			settings string
			status   int
		}{
			{`{"queues": [["a"]]}`, 422}, // there is no max_tasks then
			{`{"queues": "a", "max_tasks": {"* 07:00": 5}}`, 422},
			{`{"disabled": "soon"}`, 422},
			{`{"queues": [["a"]], "max_tasks": {"* 07:00": 5}}`, 204},
			{`{"max_tasks": {"* 7": 5}}`, 422},
			{`{"max_tasks": {"* 07:00": 9}}`, 204},
			{`{"a\u0000b": 1}`, 422}, // a database cannot keep it
			{`{"note": [{"a\u0000b": 1}]}`, 422},
			{`{"note": ["a\u0000b"]}`, 204},
			{`{"disabled": 1900000000}`, 204},
		} {
			status, text := s.ask("PATCH", "/balance", c.settings)
			if status != c.status || status == 422 && !strings.Contains(text, `"code":"malformed_balance"`) {
				t.Errorf("PATCH %s: %d %s, want %d", c.settings, status, text, c.status)
			}
		}
		if err := s.st.(store.Balance).SetBalance(t.Context(), json.RawMessage(`{"queues": "rubbish"}`)); err != nil {
			t.Fatal(err)
		}
		if status, text := s.ask("PATCH", "/balance", `{"disabled": null}`); status != 204 {
			t.Errorf("to enable what is malformed: %d %s", status, text)
		}
	})
}

func TestAWaitEndsWithThePlan(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		p, err := s.st.CreatePlan(t.Context(), plan.Plan{ID: plan.PlanID{ID: plan.NewID(time.Now())}, Name: "p"})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan api.Plan, 1)
		go func() {
			defer close(ended)
			var got api.Plan
			s.must("GET", "/plans/p/wait?timeout=50s", "", &got)
			ended <- got
		}()
		time.Sleep(10 * time.Millisecond) // either order is right; this one is the rarer
		if err := s.st.Ready(t.Context(), p.ID); err != nil {
			t.Fatal(err)
		}
		if got := <-ended; got.State != "succeeded" {
			t.Errorf("it is %s", got.State)
		}
		var got api.Plan
		p, _ = s.st.CreatePlan(t.Context(), plan.Plan{ID: plan.PlanID{ID: plan.NewID(time.Now())}, Name: "p"})
		if s.must("GET", "/plans/"+p.ID.String()+"/wait?timeout=10ms", "", &got); got.State != "submitting" {
			t.Errorf("it is %s", got.State)
		}
	})
}

func TestWhatAQueueIsSetToIsNotOverwritten(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		s.must("POST", "/queues", `{"name": "q", "plugin": "demo", "threads": 3}`, nil)
		var refused string
		put := func(match string, threads string) (int, string) {
			r, _ := http.NewRequestWithContext(t.Context(), "PUT", s.url+"/queues/q", strings.NewReader(`{"threads": `+threads+`}`))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("If-Match", match)
			a, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer a.Body.Close()
			text, _ := io.ReadAll(a.Body)
			refused = string(text)
			return a.StatusCode, a.Header.Get("ETag")
		}
		r, err := http.Get(s.url + "/queues/q")
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		first := r.Header.Get("ETag")
		status, second := put(first, "5")
		if status != 200 || second == first || second == "" {
			t.Fatalf("%d %s after %s", status, second, first)
		}
		if status, _ = put(first, "7"); status != 412 {
			t.Errorf("set with an old version: %d", status)
		}
		if status, _ = put(second, "7"); status != 200 {
			t.Errorf("set with the present version: %d", status)
		}
		if status, _ = put(`"mine"`, "9"); status != 412 || !strings.Contains(refused, "or never had that version") {
			t.Errorf("set with no version at all: %d %s", status, refused)
		}
	})
}

// A queue is set to no more tasks than the command line takes, and keeps a higher limit that another program set.
func TestAQueueIsSetToALimitThatACommandTakes(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		const high = plan.MaxThreads + 1
		_, err := s.st.CreateQueue(t.Context(), plan.Queue{Name: "q", Plugin: "demo", Threads: high, NodeThreads: high})
		if err != nil {
			t.Fatal(err)
		}
		var q api.Queue
		s.must("PUT", "/queues/q", fmt.Sprintf(`{"threads": %d, "node_threads": %d, "sort": "fifo"}`, high, high), &q)
		if q.Sort != plan.SortFIFO || q.Threads == nil || *q.Threads != high || q.NodeThreads != high {
			t.Errorf("it is set to %+v", q)
		}
		for key, body := range map[string]string{"threads": `{"threads": %d}`, "node_threads": `{"threads": 1, "node_threads": %d}`} {
			status, text := s.ask("PUT", "/queues/q", fmt.Sprintf(body, high+1))
			want := fmt.Sprintf("body.%s: %s is %d; it is at most 1000000: lower it, or set no limit", key, key, high+1)
			if status != 422 || !strings.Contains(text, want) {
				t.Errorf("%s: %d %s, want %s", key, status, text, want)
			}
		}
		s.must("PUT", "/queues/q", `{"threads": 1000000, "node_threads": 1000000}`, nil)
		s.must("PUT", "/queues/q", `{"threads": null}`, nil)
	})
}

// A task is refused if a plan file with the same words would be refused.
func TestTasksOfWordsThatNothingKnowsAreRefused(t *testing.T) {
	s := serve(t)
	var q api.Queue
	s.must("POST", "/queues", `{"name": "q", "plugin": "demo", "threads": 3}`, &q)
	task := func(more string) string {
		return fmt.Sprintf(`{"tasks": [{"id": %q, "queue_id": %q%s}]}`, plan.NewID(time.Now()), q.ID, more)
	}
	for more, location := range map[string]string{
		`, "when": "zz"`: "body.tasks[0].when", `, "on_lost": "zz"`: "body.tasks[0].on_lost", `, "retry": {"attempts": -5}`: "body.tasks[0].retry.attempts",
		`, "retry": {"attempts": 0}`: "body.tasks[0].retry.attempts", `, "max_rescues": 0`: "body.tasks[0].max_rescues",
		`, "timeout": "-1h"`: "body.tasks[0].timeout", `, "name": "a\u001bb"`: "body.tasks[0].name", `, "name": "` + strings.Repeat("x", 1001) + `"`: "body.tasks[0].name",
		`, "name": "a b"`: "body.tasks[0].name", `, "name": "a[0]"`: "body.tasks[0].name", `, "name": "-a"`: "body.tasks[0].name",
		`, "when": "any_failed"`: "body.tasks[0].when", `, "retry": {"attempts": 10000000000000}`: "body.tasks[0].retry", `, "max_rescues": -1`: "body.tasks[0].max_rescues",
		`, "foreach": {}`: "body.tasks[0].foreach", `, "foreach": {"glob": "["}`: "body.tasks[0].foreach", `, "foreach": {"list": 5}`: "body.tasks[0].foreach",
		`, "template": true, "params": {"print": "${{ needs.x }}"}`: "body.tasks[0].params.print",
	} {
		if status, text := s.ask("POST", "/tasks", task(more)); status != 422 || !strings.Contains(text, `"location":"`+location+`"`) {
			t.Errorf("%.40s: %d %s", more, status, text)
		}
	}
	s.must("POST", "/tasks", task(`, "template": true, "params": {"print": "${{ needs.x }}", "needs": {"x": 1}}`), nil)
	s.must("POST", "/tasks", task(`, "name": "cafe", "when": "all_done", "on_lost": "fail", "retry": {"attempts": 5}, "timeout": "1h"`), nil)
}

// A task whose params its plugin refuses is not added, as part of a plan file or alone.
func TestWhatAPluginRefusesIsNotAdded(t *testing.T) {
	st := model.New(model.Options{})
	s := serveStore(t, st, v1.Config{Store: st, Check: func(spec *plan.Spec) (problems plan.Problems) {
		for i, t := range spec.Tasks {
			if params, _ := t.Params.(json.RawMessage); t.Plugin == "demo" && strings.Contains(string(params), "bad") {
				problems = append(problems, plan.Problem{Task: i, Key: "params", Word: "print", Item: -1, Message: "params.print: it is bad"})
			}
		}
		return problems
	}})
	var q api.Queue
	s.must("POST", "/queues", `{"name": "q", "plugin": "demo", "threads": 3}`, &q)
	tasks := func(params string) string {
		return fmt.Sprintf(`{"tasks": [{"id": %q, "queue_id": %q}, {"id": %q, "queue_id": %q, "params": %s}]}`,
			plan.NewID(time.Now()), q.ID, plan.NewID(time.Now()), q.ID, params)
	}
	if status, text := s.ask("POST", "/tasks", tasks(`{"print": "bad"}`)); status != 422 || !strings.Contains(text, "body.tasks[1].params.print: params.print: it is bad") {
		t.Errorf("%d %s", status, text)
	}
	s.must("POST", "/tasks", tasks(`{"print": "good"}`), nil)
	again := fmt.Sprintf(`{"replace": [{"id": %q, "queue_id": %q, "params": {"print": "bad"}}]}`, plan.NewID(time.Now()), q.ID)
	for path, body := range map[string]string{
		"/plans/" + plan.NewID(time.Now()).String() + "/tasks": tasks(`{"print": "bad"}`),
		"/tasks/retry-with": again, "/plans/" + plan.NewID(time.Now()).String() + "/retry-with": again,
	} {
		if status, text := s.ask("POST", path, body); status != 422 || !strings.Contains(text, ".params.print: params.print: it is bad") {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	status, text := s.submit("plan: p\ntasks:\n  a: {plugin: demo, params: {print: bad}}\n", "", "")
	var p api.Problem
	if err := json.Unmarshal([]byte(text), &p); err != nil || status != 422 || len(p.Fields) != 1 || p.Fields[0].Line != 3 || p.Fields[0].Column != 37 {
		t.Errorf("%d %s (%v)", status, text, err)
	}
}

// A task that comes compiled is held to what plan files are.
func TestExpressionsThatNoAttemptCouldReadAreRefused(t *testing.T) {
	st := model.New(model.Options{})
	s := serveStore(t, st, v1.Config{Store: st})
	var q api.Queue
	s.must("POST", "/queues", `{"name": "q", "plugin": "exec", "threads": 3}`, &q)
	in := "/plans/" + plan.NewID(time.Now()).String()
	s.must("PUT", in, `{"name": "p"}`, nil)
	for _, c := range []struct{ template, params, name, want string }{
		{"true", `{"run": "echo ${{ needs.x }}"}`, "run", "${{ }} in a shell line could be read as commands; pass the value by env"},
		{"true", `{"run": ["sh", "-c", "echo ${{ needs.x }}"]}`, "run", "argument 2: ${{ }} in a script of sh could be read as code"},
		{"true", `{"run": ["echo", "${{ bogus.x }}"]}`, "run", "${{ bogus.x }} is not known when the task runs; it takes needs, item, results, failures and plan.state, and else the value itself"},
		{"true", `{"run": "true", "env": {"A": ["${{ params.x }}"]}}`, "env", "${{ params.x }} is not known when the task runs"},
		{"true", `{"run": "true", "dir": "${{ needs.x y }}"}`, "dir", "an expression is a dotted path"},
		{"false", `{"run": "true", "dir": "work"}`, "dir", "each node has another one; give an absolute path"},
		{"true", `{"run": "true", "dir": "../${{ task.name }}"}`, "dir", "is not known"},
		{"false", `{"run": "true", "dir": "C:\\work"}`, "", ""},
		{"false", `{"run": ["true"], "shell": "bash"}`, "shell", "shell is for a line, and run is a list here"},
		{"true", `{"run": ["echo", "${{ needs.x }}", "${{ plan.state }}"], "needs": {"x": "${{ bogus }}"}}`, "", ""},
		{"false", `{"run": "echo ${{ bogus.x }}"}`, "", ""}, // text
	} {
		for _, path := range []string{"/tasks", in + "/tasks"} {
			status, text := s.ask("POST", path, fmt.Sprintf(`{"tasks": [{"id": %q, "queue_id": %q, "name": %q, "template": %s, "params": %s}]}`,
				plan.NewID(time.Now()), q.ID, "a"+plan.NewID(time.Now()).String(), c.template, c.params))
			if c.want == "" && status != 204 || c.want != "" && (status != 422 || !strings.Contains(text, c.want) || !strings.Contains(text, `"location":"body.tasks[0].params.`+c.name+`"`)) {
				t.Errorf("%s: %d %s, want %s", c.params, status, text, c.want)
			}
		}
	}
	path := s.newPlain("q", `, "params": {"run": "true"}, "not_before": "2099-01-01T00:00:00Z"`)
	if status, text := s.ask("PATCH", path, `{"template": true, "params": {"run": "echo ${{ needs.x }}"}}`); status != 422 || !strings.Contains(text, `"location":"body.params.run"`) {
		t.Errorf("%d %s", status, text)
	}
}

// The defaults of a queue have nothing that no task can have. Defaults of before stay.
func TestDefaultsThatNoTaskCanHaveAreRefused(t *testing.T) {
	registry := plugins.NewRegistry()
	registry.Register(exec.Name, exec.New(exec.Options{}))
	st := model.New(model.Options{})
	s := serveStore(t, st, v1.Config{Store: st, Check: registry.Refused})
	const bad = `{"params": {"env": {"SLUICE_X": "1"}}}`
	var of api.Queue
	s.must("POST", "/queues", `{"name": "q", "plugin": "exec", "threads": 3}`, &of)
	old, err := st.CreateQueue(t.Context(), plan.Queue{Name: "old", Plugin: "exec", QueueSettings: plan.QueueSettings{Defaults: plan.TaskDefaults{Params: json.RawMessage(`{"env":{"SLUICE_X":"1"}}`)}}})
	if err != nil {
		t.Fatal(err)
	}
	s.must("PUT", "/queues/old", `{"threads": 4, "defaults": `+bad+`}`, nil)
	s.must("PUT", "/queues/q", `{"threads": 4, "defaults": {"params": {"env": {"X": "1"}}}}`, nil)
	task := `{"tasks": [{"id": "` + plan.NewID(time.Now()).String() + `", "queue_id": "` + old.ID.String() + `", "params": {"run": "true"}}]}`
	for _, c := range []struct{ method, path, body, location, want string }{
		{"PUT", "/queues/q", `{"threads": 4, "defaults": ` + bad + `}`, "body.defaults.params.env", `no task of queue \"q\" can have it: params.env: SLUICE_X: names that begin`},
		{"PUT", "/queues/q", `{"threads": 4, "defaults": {"retry": {}}}`, "body.defaults", "it says nothing; {} removes the setting"},
		{"POST", "/queues", `{"name": "r", "plugin": "exec", "threads": 3, "defaults": ` + bad + `}`, "body.defaults.params.env", `no task of queue \"r\" can have it`},
		{"POST", "/tasks", task, "body.tasks[0].params.env", `with the defaults of queue \"old\": task \"\": params.env: SLUICE_X`},
	} {
		if status, text := s.ask(c.method, c.path, c.body); status != 422 || !strings.Contains(text, c.want) || !strings.Contains(text, `"location":"`+c.location+`"`) {
			t.Errorf("%s %s: %d %s, want %s", c.method, c.path, status, text, c.want)
		}
	}
}

// No process can be started with a NUL byte, so no such command is added.
func TestACommandWithANULByteIsNotAdded(t *testing.T) {
	registry := plugins.NewRegistry()
	registry.Register(exec.Name, exec.New(exec.Options{}))
	st := model.New(model.Options{})
	s := serveStore(t, st, v1.Config{Store: st, Check: registry.Refused})
	var q api.Queue
	s.must("POST", "/queues", `{"name": "q", "plugin": "exec", "threads": 3}`, &q)
	for params, want := range map[string]string{
		`{"run": "a\u0000b"}`:                      "params.run has a NUL byte, and no process can be given one; remove it",
		`{"run": ["a", "b\u0000"]}`:                "params.run: argument 1 has a NUL byte",
		`{"run": ["a", "${{ task.name }}\u0000"]}`: "params.run: argument 1 has a NUL byte",
		`{"run": "a", "env": {"A": "\u0000"}}`:     "params.env A has a NUL byte",
	} {
		status, text := s.ask("POST", "/tasks", fmt.Sprintf(`{"tasks": [{"id": %q, "queue_id": %q, "params": %s}]}`, plan.NewID(time.Now()), q.ID, params))
		if status != 422 || !strings.Contains(text, want) || !strings.Contains(text, `"location":"body.tasks[0].params.`) {
			t.Errorf("%s: %d %s, want %s", params, status, text, want)
		}
	}
	for run, column := range map[string]int{`"a\0b"`: 12, `[a, "b\0"]`: 16} {
		var p api.Problem
		status, text := s.submit("plan: p\ntasks:\n  a: {run: "+run+"}\n", "", "")
		if err := json.Unmarshal([]byte(text), &p); err != nil || status != 422 || len(p.Fields) != 1 || p.Fields[0].Line != 3 || p.Fields[0].Column != column ||
			!strings.Contains(p.Fields[0].Message, "has a NUL byte, and no process") {
			t.Errorf("%s: %d %s (%v)", run, status, text, err)
		}
	}
}

func TestANodeIsToldWithItsLimit(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		for _, name := range []plan.NodeName{"n1", "n2"} {
			if err := s.st.Register(t.Context(), plan.Instance{ID: plan.InstanceID{ID: plan.NewID(time.Now())}, Node: name, Host: "h", Lease: time.Minute}); err != nil {
				t.Fatal(err)
			}
		}
		s.must("PUT", "/nodes/n1", `{"maxthreads": 0}`, nil)
		var found struct{ Nodes []api.Node }
		s.must("GET", "/nodes", "", &found)
		for _, n := range found.Nodes {
			if limited := n.Most != nil; limited != (n.Name == "n1") || limited && *n.Most != 0 {
				t.Errorf("%s has maxthreads %v", n.Name, n.Most)
			}
		}
		if len(found.Nodes) != 2 {
			t.Errorf("there are %d nodes", len(found.Nodes))
		}
	})
}

func TestAQueueIsDeleted(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		var q api.Queue
		s.must("POST", "/queues", `{"name": "q", "plugin": "demo", "threads": 3}`, &q)
		p, err := s.st.CreatePlan(t.Context(), plan.Plan{ID: plan.PlanID{ID: plan.NewID(time.Now())}, Name: "p"})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.st.AddTasks(t.Context(), p.ID, []plan.Task{{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Name: "t", Queue: q.Domain().ID}}); err != nil {
			t.Fatal(err)
		}
		if status, text := s.ask("DELETE", "/queues/q", ""); status != 409 || !strings.Contains(text, `has task \"t\"`) {
			t.Errorf("with a task of a plan in it: %d %s", status, text)
		}
		if err := s.st.CancelPlan(t.Context(), p.ID, false); err != nil {
			t.Fatal(err)
		}
		s.must("DELETE", "/queues/q", "", nil)
		if status, text := s.ask("DELETE", "/queues/q", ""); status != 404 {
			t.Errorf("once more: %d %s", status, text)
		}
	})
}

// TestEachEntryOfALogSaysWhoPrintedIt has a task run whose log has entries of each stream.
func TestEachEntryOfALogSaysWhoPrintedIt(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		ctx := t.Context()
		var q api.Queue
		s.must("POST", "/queues", `{"name": "demo", "plugin": "demo", "threads": null}`, &q)
		task := plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Queue: q.Domain().ID}
		if err := s.st.AddTasks(ctx, plan.PlanID{}, []plan.Task{task}); err != nil {
			t.Fatal(err)
		}
		i := plan.InstanceID{ID: plan.NewID(time.Now())}
		if err := s.st.Register(ctx, plan.Instance{ID: i, Node: "n", Plugins: []string{"demo"}}); err != nil {
			t.Fatal(err)
		}
		did, err := s.st.Turn(ctx, protocol.Turn{Instance: i, Slots: 1, Plugins: []string{"demo"}, Start: true})
		if err != nil || len(did.Claimed) != 1 {
			t.Fatal(did, err)
		}
		words := map[plan.Stream]string{plan.Stdout: "stdout", plan.Stderr: "stderr", plan.System: "system", plan.Runner: "runner"}
		var entries []plan.LogEntry
		for stream, word := range words {
			entries = append(entries, plan.LogEntry{At: time.Now(), Attempt: 1, Stream: stream, Text: word})
		}
		if err := s.st.AppendLog(ctx, did.Claimed[0].Claim, entries); err != nil {
			t.Fatal(err)
		}
		var log struct{ Entries []api.LogEntry }
		s.must("GET", "/tasks/"+task.ID.String()+"/log", "", &log)
		if len(log.Entries) != len(words) {
			t.Fatalf("there are %d entries, want %d", len(log.Entries), len(words))
		}
		for _, e := range log.Entries {
			if e.Stream != e.Text || words[e.Domain().Stream] != e.Text {
				t.Errorf("what %s printed is told as of %q, and read as of stream %v", e.Text, e.Stream, e.Domain().Stream)
			}
		}
	})
}

// RFC 3339 ends with the year 9999. A task with a later time would make every answer with that task
// fail.
func TestTimesThatCannotBeWritten(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		var q api.Queue
		s.must("POST", "/queues", `{"name": "demo", "plugin": "demo", "threads": null}`, &q)
		for _, c := range []string{
			`"created": "9999-12-31T23:59:59-01:00"`, `"created": "0000-12-31T23:59:59Z"`, `"not_before": "9999-12-31T23:59:59-23:59"`,
		} {
			body := `{"tasks": [{"id": "` + plan.NewID(time.Now()).String() + `", "queue_id": "` + q.ID.String() + `", ` + c + `}]}`
			if status, text := s.ask("POST", "/tasks", body); status != 422 || !strings.Contains(text, "body.tasks[0].") {
				t.Errorf("%s: %d %s", c, status, text)
			}
		}
		if status, text := s.ask("POST", "/tasks", `{"tasks": [{"id": "`+strings.Repeat("0", 24)+`", "queue_id": "`+q.ID.String()+`"}]}`); status != 422 {
			t.Errorf("no id: %d %s", status, text)
		}
		odd := plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Queue: q.ID, Status: plan.Held, Created: time.Date(12026, 1, 1, 0, 0, 0, 0, time.UTC)}
		if err := s.st.AddTasks(t.Context(), plan.PlanID{}, []plan.Task{odd}); err != nil { // as another program may
			t.Fatal(err)
		}
		var list struct{ Tasks []api.Task }
		if s.must("GET", "/tasks", "", &list); len(list.Tasks) != 1 || list.Tasks[0].Created.Year() != 9999 {
			t.Errorf("%+v", list)
		}
	})
}
