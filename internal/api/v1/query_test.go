package v1_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// All values of a repeated list count. A parameter with one value may not be repeated, because one
// of the values would be ignored.
func TestAFilterGivenTwiceIsHeededTwiceOrRefused(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		p := s.large(t, "p", 4)
		s.run(t, p, func(name string, e *protocol.Ending) {
			if name == "t-1" {
				e.Status = plan.Failed
			}
		})
		s.large(t, "q", 2)
		for path, want := range map[string]string{
			"/tasks?state=failed&state=queued":                            "t-1 t-0",
			"/tasks?state=failed&state=held,queued":                       "t-1 t-0 t-1",
			"/plans/p/tasks?state=failed&state=2&state=held":              "t-1",
			"/plans/p/search?state=failed&state=succeeded&text=t":         "t-0 t-1 t-2 t-3",
			"/plans/q/tasks?with=needs&with=params&state=held&limit=5000": "t-1",
		} {
			var found struct{ Tasks []api.Task }
			s.must("GET", path, "", &found)
			var names []string
			for _, f := range found.Tasks {
				names = append(names, f.Name)
			}
			if got := strings.Join(names, " "); got != want {
				t.Errorf("%s: %s, want %s", path, got, want)
			}
		}
		for path, locations := range map[string][]string{
			"/plans?state=failed&state=running":           {"query.state"},
			"/plans?name=p&name=p":                        {"query.name"},
			"/tasks?queue=a&queue=b&limit=1&limit=2":      {"query.limit", "query.queue"},
			"/tasks?state=failed&state=held&limit=&limit": {"query.limit"},
			"/search/plans?text=a&text=b":                 {"query.text"},
			"/changes?wait=1s&wait=2s":                    {"query.wait"},
		} {
			status, text := s.ask("GET", path, "")
			var p api.Problem
			if err := json.Unmarshal([]byte(text), &p); err != nil || status != 422 || p.Code != "invalid" || !strings.Contains(p.Detail, "ask once for each") {
				t.Errorf("%s: %d %s", path, status, text)
				continue
			}
			var got []string
			for _, f := range p.Fields {
				got = append(got, f.Location)
			}
			if slices.Sort(got); !slices.Equal(got, locations) {
				t.Errorf("%s is refused for %v, want %v", path, got, locations)
			}
		}
	})
}

// The command refuses an empty key, which is mostly a variable that is not set. The API does too, and
// so for every header that would be a condition.
func TestAHeaderThatIsEmptyOrGivenTwiceIsRefused(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		q, err := s.st.CreateQueue(t.Context(), plan.Queue{Name: "imap", Plugin: "demo", Threads: 2})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			name, method, path, kind, body, header string
			values                                 []string
			want                                   string
		}{
			{"an empty key", "POST", "/plans", "application/yaml", file, "Idempotency-Key", []string{""}, "header.Idempotency-Key: it has no value"},
			{"two keys", "POST", "/plans", "application/yaml", file, "Idempotency-Key", []string{"a", "b"}, "header.Idempotency-Key: it is given 2 times"},
			{"an empty condition", "PUT", "/queues/" + q.ID.String(), "application/json", `{"threads":3}`, "If-Match", []string{""}, "header.If-Match: it has no value"},
		} {
			r, err := http.NewRequestWithContext(t.Context(), c.method, s.url+c.path, strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", c.kind)
			r.Header[c.header] = c.values
			a, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(a.Body)
			a.Body.Close()
			if err != nil || a.StatusCode != 422 || !strings.Contains(string(text), c.want) {
				t.Errorf("%s: %d %s (%v), want %q", c.name, a.StatusCode, text, err, c.want)
			}
		}
		if plans, err := s.st.Plans(t.Context(), store.PlanQuery{}); err != nil || len(plans) > 0 {
			t.Errorf("there are %d plans (%v), want none", len(plans), err)
		}
	})
}

// JSON leaves open which of two values of one name counts. So neither counts.
func TestANameThatIsTwiceInABodyIsRefused(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		for body, path := range map[string]string{
			`{"name":"imap","plugin":"demo","threads":1,"threads":2}`:            "/queues",
			`{"name":"imap","plugin":"demo","threads":1,"Threads":2}`:            "/queues",
			`{"tasks":[{"queue":"exec","params":{"run":"true","run":"false"}}]}`: "/tasks",
		} {
			if status, text := s.ask("POST", path, body); status != 400 || !strings.Contains(text, `twice in one object`) {
				t.Errorf("%s: %d %s", path, status, text)
			}
		}
		queues, err := s.st.Queues(t.Context())
		if err != nil || slices.ContainsFunc(queues, func(q plan.Queue) bool { return q.Name == "imap" }) {
			t.Errorf("there are the queues %+v (%v)", queues, err)
		}
	})
}

// An answer to what is wrong has a bound, whatever the request has of it.
func TestAnAnswerIsBounded(t *testing.T) {
	long := strings.Repeat("a", 20_000)
	var names strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&names, `,"k%d":1`, i)
	}
	onEachStore(t, func(t *testing.T, s *site) {
		for _, c := range []struct{ method, path, body string }{
			{"GET", "/plans/" + long, ""},
			{"GET", "/plans?" + long + "=1", ""},
			{"GET", "/tasks/" + long, ""},
			{"GET", "/plans?before=" + long, ""},
			{"POST", "/queues", `{"` + strings.Repeat("a", 900_000) + `":1}`},
			{"POST", "/queues", `{"name":"q"` + names.String() + `}`},
			{"POST", "/plans", "plan: a\ntasks:\n" + strings.Repeat("  b: {rum: x}\n", 5_000)},
		} {
			if status, text := s.ask(c.method, c.path, c.body); status/100 != 4 || len(text) > 16<<10 {
				t.Errorf("%s %.20s %.20s: %d with %d bytes: %.100s", c.method, c.path, c.body, status, len(text), text)
			}
		}
		_, text := s.ask("POST", "/queues", `{"name":"q"`+names.String()+`}`)
		if !strings.Contains(text, `{"message":"and 19952 more"}`) {
			t.Errorf("it says …%s", text[max(0, len(text)-200):])
		}
	})
}

func TestABodyThatCannotBeReadIsRefusedForItsPlace(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		for _, c := range []struct {
			path, body, location string
			status               int
		}{
			{"/queues", `{"name":"imap","plugin":"demo","threads":99999999999999999999}`, "body.threads", 422},
			{"/queues", `{"name":"imap","plugin":"demo","threads":1e400}`, "body.threads", 400},
			{"/queues", `{"name":"imap",`, "body", 400},
			{"/queues", `null`, "body", 422},
			{"/tasks/retry", `null`, "body", 422},
			{"/queues", "\ufeff" + `{"name":"imap"}`, "body", 422},
		} {
			status, text := s.ask("POST", c.path, c.body)
			var p api.Problem
			if err := json.Unmarshal([]byte(text), &p); err != nil || status != c.status || len(p.Fields) == 0 || p.Fields[0].Location != c.location {
				t.Errorf("%s with %s: %d %s (%v), want %d at %s", c.path, c.body, status, text, err, c.status, c.location)
			}
		}
		r, err := http.NewRequestWithContext(t.Context(), "POST", s.url+"/queues", strings.NewReader(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "text/plain; charset=utf-8")
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Body.Close()
		var p api.Problem
		if err := json.NewDecoder(a.Body).Decode(&p); err != nil || a.StatusCode != 415 || p.Fields[0].Message != "unknown content type: text/plain" {
			t.Errorf("a body that is text: %d %+v (%v)", a.StatusCode, p, err)
		}
	})
}

// A query string is refused whole if net/url would read it only partly, or if a store would read
// something else. So no request submits a plan that was to be checked, and no list answers more
// than was asked for.
func TestAQueryThatIsNotReadWholeIsRefused(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		for query, want := range map[string]struct{ pair, remedy, location string }{
			"?check=true%":                         {"pair 1, check=…", "%25", "query.check"},
			"?check=%zz":                           {"pair 1, check=…", "%25", "query.check"},
			"?param=level=5;check=true":            {"pair 1, param=level=…", "%3B", "query.param=level"},
			"?dir=/tmp&param=level=hunter2%off":    {"pair 2, param=level=…", "%25", "query.param=level"},
			"?dir=/tmp%zz":                         {"pair 1, dir=…", "%25", "query.dir"},
			"?fail_fast=true%":                     {"pair 1, fail_fast=…", "%25", "query.fail_fast"},
			"?check%zz=true":                       {"pair 1, check%zz=…", "%25", "query.check%zz"},
			"?param=level=hunter2%ff%feb":          {"pair 1, param=level=…", "UTF-8", "query.param=level"},
			"?param=level=hunter2%00b":             {"pair 1, param=level=…", "NUL", "query.param=level"},
			"?param=":                              {"query.param", "leave it out", "query.param"},
			"?check=":                              {"query.check", "leave it out", "query.check"},
			"?check":                               {"query.check", "leave it out", "query.check"},
			"?dir=&fail_fast=true&param=level%3D4": {"query.dir", "leave it out", "query.dir"},
		} {
			status, text := s.submit(file, query, "")
			refusedFor(t, query, status, text, want.location, want.pair, want.remedy)
			if strings.Contains(text, "hunter2") {
				t.Errorf("%s: the value is told, which may be a secret: %s", query, text)
			}
		}
		var found struct{ Plans []api.Plan }
		if s.must("GET", "/plans", "", &found); len(found.Plans) > 0 {
			t.Errorf("%d plans were submitted", len(found.Plans))
		}
		for path, location := range map[string]string{
			"/tasks?state=failed%zz":           "query.state",
			"/tasks?name=%zz":                  "query.name",
			"/plans?limit=1&name=nosuch%":      "query.name",
			"/tasks?ids=":                      "query.ids",
			"/tasks?state=":                    "query.state",
			"/tasks?state=failed&state=":       "query.state",
			"/search/plans?text=":              "query.text",
			"/plans?name=":                     "query.name",
			"/nosuch?name=%zz":                 "query.name",
			"/plans/nosuch/tasks?prefix&queue": "query.prefix",
		} {
			status, text := s.ask("GET", path, "")
			refusedFor(t, path, status, text, location)
		}
		for path, want := range map[string]int{"/tasks?ids=,": 200, "/tasks?state=,": 422} { // lists of nothing
			if status, text := s.ask("GET", path, ""); status != want || strings.Contains(text, `"id"`) {
				t.Errorf("%s: %d %s", path, status, text)
			}
		}
		if status, text := s.submit(file, "?&param=level%3D4&&dir=/a%25b%3B%C3%A4&", ""); status != 201 || !strings.Contains(text, `"level":4`) {
			t.Errorf("a query that is well-formed: %d %s", status, text)
		}
	})
}

// refusedFor checks that an answer is the problem of a place, and says all that.
func refusedFor(t *testing.T, asked string, status int, text, location string, says ...string) {
	t.Helper()
	var p api.Problem
	if err := json.Unmarshal([]byte(text), &p); err != nil || status != 422 || p.Code != "invalid" || len(p.Fields) == 0 || p.Fields[0].Location != location {
		t.Errorf("%s: %d %s", asked, status, text)
		return
	}
	for _, part := range says {
		if !strings.Contains(p.Detail, part) {
			t.Errorf("%s: %q does not say %q", asked, p.Detail, part)
		}
	}
}
