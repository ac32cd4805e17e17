package v1_test

import (
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

const file = `plan: nightly
params: {level: 3}
tasks:
  list: {plugin: demo}
  count: {plugin: demo, needs: [list]}
`

func (s *site) submit(body, query, key string) (int, string) {
	s.Helper()
	return s.submitAs("application/yaml", body, query, key)
}

func (s *site) submitAs(kind, body, query, key string) (int, string) {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), "POST", s.url+"/plans"+query, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	r.Header.Set("Content-Type", kind)
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
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

func TestAPlanFileIsSubmitted(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		status, text := s.submit(file, "?param=level=4", "")
		var p api.Plan
		if err := json.Unmarshal([]byte(text), &p); err != nil || status != 201 || p.Name != "nightly" || string(p.Params) != `{"level":4}` || p.Counts.Queued != 1 || p.Counts.Held != 1 {
			t.Errorf("%d %s (%v)", status, text, err)
		}
	})
}

// A note on this file has a place in it, or is about an existing queue.
const noted = `plan: noted
params: {level: 3, name: null}
queues: {imap: {threads: 4}}
tasks:
  back-up: {plugin: demo, queue: imap}
  alter: {plugin: demo, needs: back-up}
  check: {plugin: demo, needs: alter}
  roll-back: {plugin: demo, needs: check, when: any_failed}
`

func TestACheckAnswersWhatIsKnownOfAFile(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		if _, err := s.st.CreateQueue(t.Context(), plan.Queue{Name: "imap", Plugin: "demo", Threads: 2}); err != nil {
			t.Fatal(err)
		}
		status, text := s.submit(noted, "?check=true", "")
		var got api.Checked
		if err := json.Unmarshal([]byte(text), &got); err != nil || status != 200 {
			t.Fatalf("%d %s (%v)", status, text, err)
		}
		if got.Name != "noted" || got.Tasks != 4 || got.Needs != 3 || got.Levels != 4 {
			t.Errorf("it is %+v, want 4 tasks in a row", got)
		}
		want := []api.Param{{Name: "level", Default: json.RawMessage("3")}, {Name: "name", Missing: true}}
		if fmt.Sprint(got.Params) != fmt.Sprint(want) {
			t.Errorf("its params are %+v, want %+v", got.Params, want)
		}
		if n := got.Notes; len(n) != 2 || n[0].Line != 8 || n[0].Column != 49 || !strings.Contains(n[0].Message, "any_failed") ||
			n[1].Message != "queue imap is there already and runs 2 at once, not 4; to raise that for all plans" || n[1].Do != "sluice queue set imap --threads 4 --server "+strings.TrimSuffix(s.url, api.Root) || n[1].Line != 0 {
			t.Errorf("its notes are %+v", n)
		}
		for _, word := range []string{`"id"`, `"created"`, `"state"`, "0001-01-01"} {
			if strings.Contains(text, word) {
				t.Errorf("what only a plan has is answered, %s: %s", word, text)
			}
		}
		if _, text = s.submit(noted, "?check=true&fail_fast=true&param=name=x", ""); !strings.Contains(text, "starts nothing more") || strings.Contains(text, "missing") {
			t.Errorf("with a param, and where a failure stops the plan: %s", text)
		}
		if plans, err := s.st.Plans(t.Context(), store.PlanQuery{}); err != nil || len(plans) != 0 {
			t.Errorf("%d plans are there (%v), want none", len(plans), err)
		}
	})
}

func TestACheckAnswersWhatParamsMayBe(t *testing.T) {
	const file = `plan: p
params: {site: test, level: , note: ""}
choices: {site: [test, prod], level: [1, true]}
about: {site: Where to, note: For the log}
tasks: {a: {plugin: demo}}
`
	onEachStore(t, func(t *testing.T, s *site) {
		status, text := s.submit(file, "?check=true", "")
		want := `"params":[{"name":"site","default":"test","choices":["test","prod"],"about":"Where to"},{"name":"level","missing":true,"choices":[1,true]},` +
			`{"name":"note","default":"","about":"For the log"}]`
		if status != 200 || !strings.Contains(text, want) {
			t.Errorf("%d %s, want %s", status, text, want)
		}
		for _, query := range []string{"?param=level=1&param=site=prd", "?check=true&param=site=prd"} {
			status, text = s.submit(file, query, "")
			var p api.Problem
			if err := json.Unmarshal([]byte(text), &p); err != nil || status != 422 || len(p.Fields) != 1 || p.Fields[0].Line != 2 || p.Fields[0].Column != 10 ||
				p.Fields[0].Message != `param=site=prd: it is no choice; give one of "test", "prod"; did you mean "prod"?` {
				t.Errorf("%s: %d %s (%v)", query, status, text, err)
			}
		}
		if plans, err := s.st.Plans(t.Context(), store.PlanQuery{}); err != nil || len(plans) != 0 {
			t.Fatalf("%d plans are there (%v), want none", len(plans), err)
		}
		if status, text = s.submit(file, "?param=level=1&param=site=prod", ""); status != 201 || !strings.Contains(text, `"params":{"level":1,"note":"","site":"prod"}`) {
			t.Fatalf("%d %s", status, text)
		}
		var p api.Plan
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			t.Fatal(err)
		}
		status, text = s.ask("POST", "/plans/"+p.ID.String()+"/runs", `{"params":{"site":"live"}}`)
		if status != 422 || !strings.Contains(text, "site=live: it is no choice") {
			t.Errorf("a new run: %d %s", status, text)
		}
		for body, want := range map[string]string{
			`{"params": {"level": 1, "site": "live"}}`:                                "body.params.site: \\\"live\\\" is no choice; give one of \\\"test\\\", \\\"prod\\\"",
			`{"params": {"level": true, "site": "prod", "note": "x"}}`:                "",
			`{"params": {"level": 1, "site": "live"}, "choices": {"site": ["live"]}}`: "", // as another file has it
		} {
			_, text = s.ask("POST", "/plans/"+p.ID.String()+"/retry-with", body)
			if strings.Contains(text, "is no choice") != (want != "") || !strings.Contains(text, want) {
				t.Errorf("a retry with %s: %s, want %s", body, text, want)
			}
		}
	})
}

// Without dir a plan runs in /, which nobody means: it is noted where it matters, by a check and by a submission.
func TestAPlanWithoutAFolderIsNoted(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		const file = "plan: fan\ntasks:\n  list: {plugin: demo}\n  count: {plugin: demo, needs: [list], foreach: {glob: 'data/*.txt'}}\n"
		for query, want := range map[string]int{"?": 1, "?check=true": 1, "?dir=/tmp": 0, "?dir=/tmp&check=true": 0, "?dir=/": 0} {
			status, text := s.submit(file, query, "")
			var got api.Submitted
			if err := json.Unmarshal([]byte(text), &got); err != nil || status/100 != 2 || len(got.Notes) != want {
				t.Fatalf("%s: %d %s (%v), want %d notes", query, status, text, err, want)
			}
			if want == 0 {
				continue
			}
			if n := got.Notes[0]; n.Line != 4 || n.Column != 49 || n.Give != "dir" || !strings.Contains(n.Message, "start there; give one") {
				t.Errorf("%s: it is %+v", query, n)
			}
		}
		if status, text := s.submit(file, "?dir=work", ""); status != 422 || !strings.Contains(text, "not an absolute path") {
			t.Errorf("a relative one: %d %s", status, text)
		}
	})
}

func TestACheckRefusesWhatASubmissionWould(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		if _, err := s.st.CreateQueue(t.Context(), plan.Queue{Name: "imap", Plugin: "demo", Unlimited: true}); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct{ name, file, query, code string }{
			{"a queue without a limit", noted, "?param=name=x", "queue"},
			{"a queue that is not there", "plan: p\ntasks: {a: {plugin: demo, queue: gpu}}\n", "?", "queue"},
			{"a param before one that is empty", file, "?param=&param=level=4", "invalid"},
			{"a list that a param does not give", "plan: p\nparams: {list: {a: 1}}\ntasks: {a: {plugin: demo, foreach: '${{ params.list }}'}}\n", "?", "invalid"},
		} {
			for _, check := range []string{"", "&check=true"} {
				status, text := s.submit(c.file, c.query+check, "")
				var p api.Problem
				if err := json.Unmarshal([]byte(text), &p); err != nil || p.Code != c.code || status == 500 {
					t.Errorf("%s%s: %d %s, want %s", c.name, check, status, text, c.code)
				}
			}
		}
		if status, text := s.submit(noted, "?check=true", ""); status != 409 {
			t.Errorf("with a param that is missing: %d %s", status, text)
		}
	})
}

func TestASubmissionAnswersItsNotes(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		if _, err := s.st.CreateQueue(t.Context(), plan.Queue{Name: "imap", Plugin: "demo"}); err != nil {
			t.Fatal(err)
		}
		for _, want := range []int{201, 200} { // also where the answer was lost
			status, text := s.submit(noted, "?param=name=x", "once")
			var got api.Submitted
			if err := json.Unmarshal([]byte(text), &got); err != nil || status != want || got.ID.IsZero() || len(got.Notes) != 2 || !strings.Contains(got.Notes[1].Message, "is paused") {
				t.Errorf("%d %s (%v)", status, text, err)
			}
		}
		if _, text := s.submit(file, "", ""); strings.Contains(text, "notes") {
			t.Errorf("there is nothing to note, and the answer is %s", text)
		}
	})
}

// A form has what is to stand in no URL.
func TestAPlanFileIsSubmittedAsAForm(t *testing.T) {
	form := func(parts ...string) (kind, body string) {
		var b strings.Builder
		w := multipart.NewWriter(&b)
		for i := 0; i < len(parts); i += 2 {
			create := w.CreateFormField
			if parts[i] == "plan" {
				create = func(name string) (io.Writer, error) { return w.CreateFormFile(name, "nightly.yaml") }
			}
			part, err := create(parts[i])
			if err == nil {
				_, err = io.WriteString(part, parts[i+1])
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return w.FormDataContentType(), b.String()
	}
	onEachStore(t, func(t *testing.T, s *site) {
		text := strings.Replace(file, "level: 3", "level: 3, name: x, other: y", 1)
		kind, body := form("plan", text, "param", "name=ä=ö\nü", "param", "level=5")
		status, answer := s.submitAs(kind, body, "?param=other=z", "")
		var p api.Plan
		if err := json.Unmarshal([]byte(answer), &p); err != nil || status != 201 || string(p.Params) != `{"level":5,"name":"ä=ö\nü","other":"z"}` {
			t.Errorf("%d %s (%v)", status, answer, err)
		}
		for _, c := range []struct {
			says  string
			parts []string
		}{
			{"write NAME=VALUE", []string{"plan", file, "param", "hunter22"}},
			{"the form has no such part", []string{"plan", file, "params", "name=hunter22"}},
			{"it is there twice", []string{"plan", file, "plan", file}},
			{"there is nothing", []string{"param", "level=3"}},
			{"there is nothing", []string{"plan", ""}},
			{"level is given twice", []string{"plan", file, "param", "level=3", "param", "level=4"}},
			{"param=name: the value is not UTF-8, or has a NUL", []string{"plan", text, "param", "name=hunter22\xff"}},
			{"param=name: the value is not UTF-8, or has a NUL", []string{"plan", text, "param", "name=hunter22\x00b"}},
		} {
			kind, body := form(c.parts...)
			if status, answer := s.submitAs(kind, body, "", ""); status != 422 || !strings.Contains(answer, c.says) || strings.Contains(answer, "hunter22") {
				t.Errorf("%q: %d %s", c.parts, status, answer)
			}
		}
		for _, kind := range []string{"multipart/form-data", "multipart/form-data; boundary=other"} {
			if status, answer := s.submitAs(kind, body, "", ""); status != 422 || !strings.Contains(answer, "the form cannot be read") {
				t.Errorf("%s: %d %s", kind, status, answer)
			}
		}
	})
}

func TestSecretsOfAPlanFileAreNotAnswered(t *testing.T) {
	const secret = `plan: secret
params: {user: ann, password: hunter22-by-default, key: , n: 1}
secrets: [password, "*key", n]
tasks: {a: {plugin: demo, params: {login: {pass: "${{ params.password }}"}, words: ["${{ params.key }}"]}}}
`
	onEachStore(t, func(t *testing.T, s *site) {
		status, text := s.submit(secret, "?check=true&param=key=hunter22-given", "")
		var got api.Checked
		if err := json.Unmarshal([]byte(text), &got); err != nil || status != 200 || strings.Contains(text, "hunter22") {
			t.Fatalf("%d %s (%v)", status, text, err)
		}
		want := []api.Param{{Name: "user", Default: json.RawMessage(`"ann"`)}, {Name: "password", Secret: true}, {Name: "key", Secret: true}, {Name: "n", Secret: true}}
		if fmt.Sprint(got.Params) != fmt.Sprint(want) {
			t.Errorf("its params are %+v, want %+v", got.Params, want)
		}
		if n := got.Notes; len(n) != 1 || !strings.Contains(n[0].Message, `in the param "n" has fewer than 4 bytes`) || n[0].Line != 2 {
			t.Errorf("its notes are %+v, want that n is too short to be hidden in what is printed", n)
		}
		if status, text = s.submit(secret, "?param=key=hunter22-given&param=n=hunter22", ""); status != 422 || strings.Contains(text, "n=hunter22") {
			t.Errorf("a value of another kind: %d %s", status, text)
		}
		for range 2 {
			var p api.Plan
			status, text = s.submit(secret, "?param=key=hunter22-given", "once")
			if err := json.Unmarshal([]byte(text), &p); err != nil || status/100 != 2 || strings.Contains(text, "hunter22") || fmt.Sprint(p.Secrets) != "[*key n password]" {
				t.Fatalf("%d %s (%v)", status, text, err)
			}
			_, text = s.ask("GET", "/plans/"+p.ID.String()+"/tasks?with=params", "")
			if strings.Contains(text, "hunter22") || !strings.Contains(text, `"words":["***"]`) {
				t.Errorf("its tasks are %s", text)
			}
		}
		if status, text = s.submit(strings.Replace(secret, "[password", "[user", 1), "?param=key=hunter22-given", "once"); status != 422 || !strings.Contains(text, "other secrets") {
			t.Errorf("with the key, and other secrets: %d %s", status, text)
		}
	})
}

// A param that a queue names is secret in the whole store, also in messages about a wrong value,
// and about a default.
func TestSecretsOfAQueueAreNotToldOfAWrongValue(t *testing.T) {
	const ports = "plan: ports\nparams: {port_pw: 2255, port: 1}\ntasks: {a: {plugin: demo}}\n"
	onEachStore(t, func(t *testing.T, s *site) {
		s.must("POST", "/queues", `{"name":"vault","plugin":"exec","threads":1,"secrets":["*_pw"]}`, nil)
		status, text := s.submit(ports, "?param=port_pw=hunter22&param=port=open", "")
		if status != 422 || strings.Contains(text, "hunter22") || !strings.Contains(text, "param=port_pw=***") || !strings.Contains(text, "param=port=open") {
			t.Errorf("%d %s", status, text)
		}
		if status, text = s.submit(ports, "?check=true", ""); status != 200 || strings.Contains(text, "2255") || !strings.Contains(text, `{"name":"port_pw","secret":true}`) {
			t.Errorf("a check: %d %s", status, text)
		}
	})
}

func TestAPlanFileThatIsNotValidIsRefusedWithEachPlace(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		status, text := s.submit("plan: p\ntasks:\n  a: {plugin: demo, needs: [b]}\n  c: {plugn: demo}\n", "", "")
		var p api.Problem
		if err := json.Unmarshal([]byte(text), &p); err != nil || status != 422 || len(p.Fields) != 2 || p.Fields[0].Line != 3 || p.Fields[1].Line != 4 || p.Fields[1].Column != 7 {
			t.Errorf("%d %s (%v)", status, text, err)
		}
		for _, c := range []struct{ body, query string }{{"", ""}, {file, "?dir=here"}, {file, "?param=level"}, {file, "?param=depth=3"}, {"\x00", ""}, {"[1", ""}} {
			if status, text := s.submit(c.body, c.query, ""); status != 422 && (status != 400 || c.body != "") {
				t.Errorf("%q %s: %d %s", c.body, c.query, status, text)
			}
		}
		if plans, err := s.st.Plans(t.Context(), store.PlanQuery{}); err != nil || len(plans) != 0 {
			t.Errorf("%d plans are there (%v), want none", len(plans), err)
		}
	})
}

// A caller over HTTP gives params in the query, and has no flags.
func TestParamsAreNamedAsTheyWereGiven(t *testing.T) {
	s := serve(t)
	const open = "plan: p\nparams: {level: 3, day: null}\ntasks: {a: {plugin: demo}}\n"
	for query, want := range map[string]api.Field{
		"":                         {Message: `param "day" has no default; give it a value: param=day=VALUE`, Location: "body", Line: 2, Column: 20},
		"?param=day=x&param=dya=x": {Message: `param=dya: the plan has no such param; did you mean "day"?`, Location: "query.param"},
		"?param=day=x&param=level=x": {Message: "param=level=x: its default in the file is a number, so its value must be JSON of that kind, as in 42", Location: "body",
			Line: 2, Column: 10},
	} {
		status, text := s.submit(open, query, "")
		var p api.Problem
		if err := json.Unmarshal([]byte(text), &p); err != nil || status != 422 || len(p.Fields) != 1 || p.Fields[0] != want || strings.Contains(text, "--param") {
			t.Errorf("%s: %d %s (%v), want %+v", query, status, text, err, want)
		}
	}
	if status, text := s.submit(open, "?param=day=x&param=day=y", ""); status != 422 || !strings.Contains(text, "day is given twice") {
		t.Errorf("given twice: %d %s", status, text)
	}
}

func TestARequestThatIsRepeatedSubmitsOnce(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		// The race detector reports the types whose encoders package encoding/json makes at their first use
		// by two requests at once. This plan makes the encoders before.
		for range 2 {
			s.submit("plan: earlier\ntasks: {a: {run: 'true'}, b: {needs: [a], run: 'true'}}", "", "earlier")
		}
		var wg sync.WaitGroup
		statuses := make([]int, 6)
		for i := range statuses {
			wg.Go(func() { statuses[i], _ = s.submit(file, "", "nightly of today") })
		}
		wg.Wait()
		created := 0
		for _, status := range statuses {
			if status == 201 {
				created++
			} else if status != 200 {
				t.Errorf("one got %d", status)
			}
		}
		if created != 1 {
			t.Errorf("%d were told that they created it", created)
		}
		plans, err := s.st.Plans(t.Context(), store.PlanQuery{Name: "nightly"})
		if err != nil || len(plans) != 1 || plans[0].Counts.Total() != 2 || plans[0].State != plan.PlanRunning {
			t.Errorf("there are %+v (%v), want one plan of 2 tasks", plans, err)
		}
		if status, text := s.submit(file, "?param=level=5", "nightly of today"); status != 422 || !strings.Contains(text, `"repeated"`) {
			t.Errorf("another plan with the key: %d %s", status, text)
		}
		const one, two = "plan: e\ntasks: {a: {run: echo one}}", "plan: e\ntasks: {a: {run: echo two}}"
		for i, r := range []struct {
			file, query string
			status      int
		}{{one, "?dir=/tmp", 201}, {one, "?dir=/tmp", 200}, {two, "?dir=/tmp", 422}, {one, "?dir=/", 422}, {one, "?dir=/tmp&fail_fast=true", 422}} {
			if status, text := s.submit(r.file, r.query, "echo"); status != r.status || status == 422 && !strings.Contains(text, `"repeated"`) {
				t.Errorf("request %d with the key: %d, want %d: %s", i+1, status, r.status, text)
			}
		}
		if status, _ := s.submit(file, "", "nightly of tomorrow"); status != 201 {
			t.Errorf("another key: %d", status)
		}
	})
}

func TestARequestGoesOnWithWhatItsFirstLeftHalfWay(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		half, err := s.st.CreatePlan(t.Context(), plan.Plan{ID: plan.PlanID{ID: plan.NewID(time.Now())}, Name: "nightly", Params: json.RawMessage(`{"level":3}`), Size: 2, Key: "k"})
		if err != nil {
			t.Fatal(err)
		}
		status, text := s.submit(file, "", "k")
		var p api.Plan
		if err := json.Unmarshal([]byte(text), &p); err != nil || status != 200 || p.ID != half.ID || p.State != "running" || p.Counts.Total() != 2 {
			t.Errorf("%d %s (%v)", status, text, err)
		}
	})
}

func TestAPlanWhoseQueueDoesNotDoIsRefused(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		if _, err := s.st.CreateQueue(t.Context(), plan.Queue{Name: "demo", Plugin: "exec", Unlimited: true}); err != nil {
			t.Fatal(err)
		}
		if status, text := s.submit(file, "", ""); status != 409 || !strings.Contains(text, `"code":"queue"`) || !strings.Contains(text, `queue \"demo\" runs plugin \"exec\"`) {
			t.Errorf("%d %s", status, text)
		}
	})
}

func TestTheFileOfAPlanIsKeptWithIt(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		secret := "secrets: [pin]\n" + strings.Replace(file, "level: 3", "level: 3, pin: 12345", 1)
		if status, text := s.submit(secret, "?dir=/srv/nightly", ""); status != 201 {
			t.Fatalf("%d %s", status, text)
		}
		var got plan.File
		if s.must("GET", "/plans/nightly/file", "", &got); got.Dir != "/srv/nightly" || got.Text != strings.Replace(secret, "12345", `"***"`, 1) {
			t.Errorf("the file is %+v", got)
		}
		large := file + strings.Repeat("#", plan.MaxFile)
		if status, text := s.submit(large, "", ""); status != 201 {
			t.Fatalf("%d %s", status, text)
		}
		var none plan.File
		if s.must("GET", "/plans/nightly%232/file", "", &none); none != (plan.File{}) {
			t.Errorf("of a large file %+v is kept", none)
		}
	})
}

func TestThePlanFileIsSubmittedAgain(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		again := "secrets: [pin]\n" + strings.Replace(file, "level: 3", "level: 3, pin: 12345, word: a", 1)
		status, text := s.submit(again, "?dir=/srv/nightly&param=pin=67890&param=level=4&fail_fast=true", "")
		var first, second api.Plan
		if err := json.Unmarshal([]byte(text), &first); err != nil || status != 201 {
			t.Fatalf("%d %s", status, text)
		}
		s.must("POST", "/plans/"+first.ID.String()+"/runs", `{"params": {"word": "b"}}`, &second)
		if second.Run != 2 || second.OnFailure != plan.Stop || string(second.Params) != `{"level":4,"pin":"***","word":"b"}` {
			t.Errorf("the new run is %+v with %s", second, second.Params)
		}
		if p, err := s.st.Plan(t.Context(), second.ID); err != nil || string(p.Params) != `{"level":4,"pin":67890,"word":"b"}` {
			t.Errorf("in the store it has %s (%v)", p.Params, err)
		}
		var kept plan.File
		if s.must("GET", "/plans/"+second.ID.String()+"/file", "", &kept); kept.Dir != "/srv/nightly" || !strings.Contains(kept.Text, "word: a") {
			t.Errorf("its file is %+v", kept)
		}
		if status, text := s.ask("POST", "/plans/"+first.ID.String()+"/runs", `{"params": {"level": "high"}}`); status != 422 || !strings.Contains(text, "level") {
			t.Errorf("a value of another kind: %d %s", status, text)
		}
		built := s.create("built")
		if status, text := s.ask("POST", "/plans/"+built.ID.String()+"/runs", ""); status != 409 || !strings.Contains(text, "was not kept") {
			t.Errorf("a plan without a file: %d %s", status, text)
		}
	})
}

func TestARetryIsForeseen(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		s.submit(file, "", "")
		var p api.Plan
		s.must("GET", "/plans/nightly", "", &p)
		if err := s.st.CancelPlan(t.Context(), p.ID, false); err != nil {
			t.Fatal(err)
		}
		var n plan.Instance
		n.ID.ID = plan.NewID(time.Now())
		n.Node = "n1"
		if err := s.st.Register(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		if _, err := s.st.Sweep(t.Context(), protocol.Sweep{Instance: n.ID}); err != nil {
			t.Fatal(err)
		}
		var would struct{ Tasks []api.Retried }
		s.must("POST", "/plans/"+p.ID.String()+"/retry", `{"check": true}`, &would)
		if s.must("GET", "/plans/nightly", "", &p); len(would.Tasks) != 2 || p.State != "cancelled" || p.Edits != 0 {
			t.Errorf("%d tasks would run, and the plan is %s with %d edits", len(would.Tasks), p.State, p.Edits)
		}
	})
}
