package v1_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/api"
	v1 "github.com/seed-1177d267/sluice/internal/api/v1"
	"github.com/seed-1177d267/sluice/internal/auth"
	"github.com/seed-1177d267/sluice/internal/schedule"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

const (
	hourly   = `"cron": "0 * * * *", "task": {"queue": "q", "params": {"run": "true"}}`
	planned  = `"cron": "@daily", "plan": {"file": {"text": "plan: p\nsecrets: [token]\nparams: {token: hunter2}\ntasks: {a: {run: 'true'}}\n", "dir": "/srv"}}`
	makeExec = `{"name": "q", "plugin": "exec", "threads": 4}`
)

// match asks with If-Match, and returns the status, the ETag and the body.
func (s *site) match(tag, method, path, body string) (status int, etag, text string) {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if tag != "" {
		r.Header.Set("If-Match", tag)
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer a.Body.Close()
	var b strings.Builder
	if err := a.Write(&b); err != nil {
		s.Fatal(err)
	}
	return a.StatusCode, a.Header.Get("ETag"), b.String()
}

func TestASchedule(t *testing.T) {
	onSQLite(t, func(t *testing.T, s *site) {
		s.must("POST", "/queues", makeExec, nil)
		status, tag, text := s.match("", "POST", "/schedules", `{"name": "x", `+hourly+`, "applied_from": "/srv"}`)
		if status != 201 || len(tag) < 3 || !strings.Contains(text, "\r\nLocation: /api/v1/schedules/x\r\n") {
			t.Fatalf("POST answers %d %s %s", status, tag, text)
		}
		var is plan.Schedule
		s.must("GET", "/schedules/x", "", &is)
		if is.Cron != "0 * * * *" || is.Overlap != plan.OverlapSkip || is.Missed != plan.MissedOne || is.Next.IsZero() || is.Applied != "/srv" || string(is.Task.Params) != `{"run":"true"}` {
			t.Errorf("GET answers %+v", is)
		}
		var o plan.Occurrence
		s.must("POST", "/schedules/x/run", "", &o)
		if o.Kind != plan.ByRun || o.State != plan.OccurrenceStarting {
			t.Errorf("run answers %+v", o)
		}
		// A node starts the task and it ends, which no node has noted yet.
		me := plan.Instance{ID: plan.InstanceID{ID: plan.NewID(time.Now())}, Node: "n", Lease: time.Minute, Plugins: []string{"exec"}}
		if err := s.st.Register(t.Context(), me); err != nil {
			t.Fatal(err)
		}
		st, _ := schedule.StoreOf(s.st)
		if _, _, err := schedule.NewFirer(st, nil).Fire(t.Context(), me.ID); err != nil {
			t.Fatal(err)
		}
		did, err := s.st.Turn(t.Context(), protocol.Turn{Instance: me.ID, Plugins: me.Plugins, Slots: 1, Start: true})
		if err != nil || len(did.Claimed) != 1 {
			t.Fatalf("%v, claimed %d", err, len(did.Claimed))
		}
		if _, err := s.st.Turn(t.Context(), protocol.Turn{Instance: me.ID, Ended: []protocol.Ending{{Claim: did.Claimed[0].Claim, Status: plan.Succeeded}}}); err != nil {
			t.Fatal(err)
		}
		var list api.ScheduleList
		s.must("GET", "/schedules", "", &list)
		if last := list.Schedules[0].Last; len(last) != 1 || last[0].State != plan.OccurrenceSucceeded || last[0].Task != did.Claimed[0].Task {
			t.Errorf("the list has %+v", list)
		}
		var n api.BackfilledAnswer
		for _, dry := range []bool{true, false} {
			s.must("POST", "/schedules/x/backfill", fmt.Sprintf(`{"from": "2026-01-01T00:00:00Z", "to": "2026-01-01T05:00:00Z", "dry": %v}`, dry), &n)
			is = plan.Schedule{}
			s.must("GET", "/schedules/x", "", &is)
			if n.Instants != 6 || (len(is.Backfills) == 0) != dry {
				t.Errorf("a backfill, dry: %v, of %d leaves %+v", dry, n.Instants, is.Backfills)
			}
		}
		is = plan.Schedule{}
		s.must("POST", "/schedules/x/pause", `{"why": "a holiday"}`, &is)
		if is.Paused == nil || is.Paused.Why != "a holiday" || !is.Next.IsZero() {
			t.Errorf("paused, it is %+v", is)
		}
		is = plan.Schedule{}
		s.must("POST", "/schedules/x/resume", "", &is)
		if is.Paused != nil || is.Next.IsZero() {
			t.Errorf("resumed, it is %+v", is)
		}
		if status, text := s.ask("DELETE", "/schedules/x", ""); status != 204 {
			t.Errorf("DELETE answers %d %s", status, text)
		}
		if status, _ := s.ask("GET", "/schedules/x", ""); status != 404 {
			t.Errorf("then GET answers %d", status)
		}
	})
}

// A schedule is changed only as the caller read it. The same request, asked again because an answer was
// lost, is answered again.
func TestAScheduleHasAnETag(t *testing.T) {
	onSQLite(t, func(t *testing.T, s *site) {
		s.must("POST", "/queues", makeExec, nil)
		const id = "6b02f4390138e68ab00062b6"
		made := `{"id": "` + id + `", "name": "x", ` + hourly + `}`
		_, first, _ := s.match("", "POST", "/schedules", made)
		if status, tag, _ := s.match("", "POST", "/schedules", made); status != 201 || tag != first {
			t.Errorf("the same POST answers %d %s", status, tag)
		}
		if status, _, _ := s.match("", "POST", "/schedules", strings.Replace(made, "62b6", "62b7", 1)); status != 409 {
			t.Errorf("a POST of another one of the name answers %d", status)
		}
		changed := strings.Replace(`{`+hourly+`}`, "0 *", "5 *", 1)
		status, second, _ := s.match(first, "PUT", "/schedules/x", changed)
		if status != 200 || second == first {
			t.Fatalf("PUT answers %d %s", status, second)
		}
		if status, tag, _ := s.match(first, "PUT", "/schedules/x", changed); status != 200 || tag != second {
			t.Errorf("the same PUT answers %d %s", status, tag)
		}
		other := strings.Replace(changed, "5 *", "6 *", 1)
		for _, c := range []struct{ method, path, body string }{
			{"PUT", "/schedules/x", other}, {"POST", "/schedules/x/pause", ""}, {"POST", "/schedules/x/resume", ""}, {"DELETE", "/schedules/x", ""},
		} {
			for _, old := range []string{first, `"0"`, `"a"`, `"-1"`} {
				if status, _, text := s.match(old, c.method, c.path, c.body); status != 412 || !strings.Contains(text, `"code":"precondition"`) || !strings.Contains(text, "read it again") {
					t.Errorf("%s %s at %s answers %d %s", c.method, c.path, old, status, text)
				}
			}
		}
		if _, tag, _ := s.match("", "GET", "/schedules/x", ""); tag != second {
			t.Errorf("then it is at %s, not %s", tag, second)
		}
		tag := second
		for _, c := range []struct{ method, path, body string }{
			{"POST", "/schedules/x/run", ""}, // which changes nothing that a person says
			{"POST", "/schedules/x/pause", ""}, {"POST", "/schedules/x/resume", ""}, {"PUT", "/schedules/x", other}, {"DELETE", "/schedules/x", ""},
		} {
			status, next, text := s.match(tag, c.method, c.path, c.body)
			if status/100 != 2 {
				t.Errorf("%s %s at %s answers %d %s %s", c.method, c.path, tag, status, next, text)
			}
			tag = cmp.Or(next, tag)
		}
	})
}

// The API refuses what is no schedule with its place, and changes nothing.
func TestBadSchedules(t *testing.T) {
	st := openSQLite(t, nil)
	s := serveStore(t, st, v1.Config{Store: st, Check: func(spec *plan.Spec) plan.Problems {
		for i := range spec.Tasks {
			if params, _ := json.Marshal(spec.Tasks[i].Params); strings.Contains(string(params), "no-plugin-does-this") {
				return plan.Problems{{Task: i, Item: -1, Key: "run", Message: "its plugin refuses it"}}
			}
		}
		return nil
	}})
	s.must("POST", "/queues", makeExec, nil)
	s.must("POST", "/queues", `{"name": "keys", "plugin": "demo", "threads": 4, "secrets": ["api_key"]}`, nil)
	s.must("POST", "/schedules", `{"name": "taken", `+hourly+`}`, nil)
	s.must("POST", "/schedules", `{"name": "plans", `+planned+`}`, nil)
	file := func(text string) string {
		b, _ := json.Marshal(text)
		return `{"cron": "@daily", "plan": {"file": {"text": ` + string(b) + `, "dir": "/srv"}}}`
	}
	for _, c := range []struct {
		name, body, place string
		status            int // 0: 422
		says              string
	}{
		{"a field out of its range", `{"cron": "61 * * * *", "task": {"queue": "q"}}`, "body.cron", 0, "minute"},
		{"a day that no year has", `{"cron": "0 0 30 2 *", "task": {"queue": "q"}}`, "body.cron", 0, "never fires"},
		{"no timetable", `{"task": {"queue": "q"}}`, "body.cron", 0, "give either"},
		{"a short interval", `{"every": "1ms", "task": {"queue": "q"}}`, "body.every", 0, "shortest interval"},
		{"no duration", `{"every": "often", "task": {"queue": "q"}}`, "body.every", 0, "to be a duration, as in 90s"},
		{"an interval of nothing", `{"every": "0s", "task": {"queue": "q"}}`, "body.cron", 0, "at least a second"},
		{"jitter that is no duration", `{"cron": "@daily", "jitter": "1", "task": {"queue": "q"}}`, "body.jitter", 0, "to be a duration"},
		{"a limit that is no duration", `{"cron": "@daily", "task": {"queue": "q", "timeout": "1 h"}}`, "body.task.timeout", 0, "to be a duration"},
		{"a delay that is no duration", `{"cron": "@daily", "task": {"queue": "q", "retry": {"delay": "x"}}}`, "body.task.retry.delay", 0, "to be a duration"},
		{"a zone that is no text", `{"cron": "@daily", "zone": 1, "task": {"queue": "q"}}`, "body.zone", 0, "string"},
		{"a line that is no text", `{"cron": 1, "task": {"queue": "q"}}`, "body.cron", 0, "string"},
		{"an end that is no time", `{"cron": "@daily", "until": "soon", "task": {"queue": "q"}}`, "body.until", 0, "date-time"},
		{"a queue that is no text", `{"cron": "@daily", "task": {"queue": 1}}`, "body.task.queue", 0, "string"},
		{"no zone", `{"cron": "@daily", "zone": "Berlin", "task": {"queue": "q"}}`, "body.zone", 0, "Europe/Berlin"},
		{"no day", `{"cron": "@daily", "except": ["2027-02-30"], "task": {"queue": "q"}}`, "body.except", 0, "28 days"},
		{"an end before its begin", `{"cron": "@daily", "from": "2027-02-01T00:00:00Z", "until": "2027-01-01T00:00:00Z", "task": {"queue": "q"}}`, "body.until", 0, "not after from"},
		{"a time that cannot be written", `{"cron": "@daily", "until": "9999-12-31T23:59:59-23:00", "task": {"queue": "q"}}`, "body.until", 0, "years 1 to 9999"},
		{"a word that is none", `{"cron": "@daily", "overlap": "never", "task": {"queue": "q"}}`, "body.overlap", 0, "skip"},
		{"an unknown field", `{"cron": "@daily", "taks": {"queue": "q"}}`, "body.taks", 0, "unexpected"},
		{"nothing to start", `{"cron": "@daily"}`, "body.plan", 0, "give one of them"},
		{"a missing queue", `{"cron": "@daily", "task": {"queue": "none"}}`, "body.task.queue", 404, "sluice queue create none"},
		{"a secret param", `{"cron": "@daily", "task": {"queue": "q", "params": {"api_key": "hunter2"}}}`, "body.task", 0, "from_env"},
		{"params that are no object", `{"cron": "@daily", "task": {"queue": "q", "params": [1]}}`, "body.task", 0, "object"},
		{"a task that its plugin refuses", `{"cron": "@daily", "task": {"queue": "q", "params": {"run": "no-plugin-does-this"}}}`, "body.task.params", 0, "refuses"},
		{"an empty plan file", `{"cron": "@daily", "plan": {"file": {"text": "", "dir": "/srv"}}}`, "body.plan", 0, "empty"},
		{"a plan file with a mistake", file("plan: x\ntasks: {a: {run: 'true', neds: b}}\n"), "body.plan.file.text:2:", 0, "needs"},
		{"a plan file that its plugin refuses", file("plan: x\ntasks:\n  a: {run: no-plugin-does-this}\n"), "body.plan.file.text:3:", 0, "refuses"},
		{"a plan file without a param", file("plan: x\nparams: {host: null}\ntasks: {a: {run: 'true'}}\n"), "body.plan.file.text:2:", 0, "host"},
		{"a param that the file does not have", `{"cron": "@daily", "plan": {"params": {"host": "a"}, "file": {"text": "plan: x\ntasks: {a: {run: 'true'}}\n", "dir": "/srv"}}}`, "body.plan.params", 0, "host"},
		{"a secret param of a plan", `{"cron": "@daily", "plan": {"params": {"token": "a"}, "file": {"text": "plan: x\nsecrets: [token]\nparams: {token: null}\ntasks: {a: {run: 'true'}}\n", "dir": "/srv"}}}`, "body.plan.params", 0, "from_file"},
		{"no folder", `{"cron": "@daily", "plan": {"file": {"text": "plan: x\ntasks: {a: {run: 'true'}}\n"}}}`, "body.plan.file.dir", 0, "give the folder"},
		{"a relative folder", `{"cron": "@daily", "plan": {"file": {"text": "plan: x\ntasks: {a: {run: 'true'}}\n", "dir": "srv"}}}`, "body.plan.file.dir", 0, "absolute"},
		{"a queue of another plugin", file("plan: x\ntasks: {a: {run: 'true', queue: keys}}\n"), "", 409, "keys"},
	} {
		for _, where := range []struct{ method, path, body string }{
			{"POST", "/schedules", strings.Replace(c.body, "{", `{"name": "new", `, 1)}, {"PUT", "/schedules/taken", c.body},
		} {
			status, text := s.ask(where.method, where.path, where.body)
			var p api.Problem
			if err := json.Unmarshal([]byte(text), &p); err != nil {
				t.Fatalf("%s: %s: %v in %s", c.name, where.method, err, text)
			}
			place := ""
			if len(p.Fields) > 0 {
				if place = p.Fields[0].Location; p.Fields[0].Line > 0 {
					place += fmt.Sprintf(":%d:", p.Fields[0].Line)
				}
			}
			if status != cmp.Or(c.status, 422) || place != c.place || !strings.Contains(p.Detail, c.says) || strings.Contains(text, "hunter2") {
				t.Errorf("%s: %s answers %d at %q, want %q:\n%s", c.name, where.method, status, place, c.place, text)
			}
		}
	}
	for _, c := range []struct{ method, path, body, place string }{
		{"POST", "/schedules", `{"name": "a b", ` + hourly + `}`, "body.name"},
		{"POST", "/schedules/taken/backfill", `{"from": "2126-01-01T00:00:00Z", "to": "2126-01-02T00:00:00Z"}`, "body.to"},
		{"POST", "/schedules/taken/backfill", `{"from": "1990-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z"}`, "body.from"},
		{"POST", "/schedules/taken/backfill", `{"from": "1990-01-01T00:00:00Z"}`, "body"},
		{"POST", "/schedules/taken/pause", `{"why": "` + strings.Repeat("x", 1001) + `"}`, "body.why"},
		{"POST", "/schedules/taken/pause", `{"reason": "x"}`, "body.reason"},
		{"GET", "/schedules/taken/instants?n=0", "", "query.n"},
		{"GET", "/schedules/taken/instants?n=1001", "", "query.n"},
		{"GET", "/schedules/taken/instants?after=soon", "", "query.after"},
		{"GET", "/schedules?limit=-1", "", "query.limit"},
	} {
		status, text := s.ask(c.method, c.path, c.body)
		if status != 422 || !strings.Contains(text, `"location":"`+c.place+`"`) {
			t.Errorf("%s %s %.60s answers %d %s", c.method, c.path, c.body, status, text)
		}
	}
	var list api.ScheduleList
	s.must("GET", "/schedules", "", &list)
	if len(list.Schedules) != 2 || list.Schedules[0].Revision != 1 || list.Schedules[1].Revision != 1 {
		t.Errorf("after all that there is %+v", list)
	}
}

// The text of a plan file is shown without its secrets, and the text that is shown overwrites none.
func TestAScheduleShowsNoSecrets(t *testing.T) {
	onSQLite(t, func(t *testing.T, s *site) {
		s.must("POST", "/queues", makeExec, nil)
		kept := func() string {
			t.Helper()
			st, _ := schedule.StoreOf(s.st)
			is, err := schedule.Find(t.Context(), st, "x")
			if err != nil {
				t.Fatal(err)
			}
			return is.Plan.File.Text
		}
		if _, text := s.ask("POST", "/schedules", `{"name": "x", `+planned+`}`); strings.Contains(text, "hunter2") {
			t.Errorf("POST answers %s", text)
		}
		was := kept()
		var is plan.Schedule
		s.must("GET", "/schedules/x", "", &is)
		if strings.Contains(is.Plan.File.Text, "hunter2") || !strings.Contains(is.Plan.File.Text, "***") {
			t.Errorf("GET answers %q", is.Plan.File.Text)
		}
		is.Cron = "@hourly"
		body, _ := json.Marshal(is.ScheduleSettings)
		if s.must("PUT", "/schedules/x", string(body), nil); kept() != was {
			t.Errorf("PUT of what GET answered leaves %q", kept())
		}
		s.must("PUT", "/schedules/x", strings.Replace(`{`+planned+`}`, `"plan: p\nsecrets: [token]\nparams: {token: hunter2}\ntasks: {a: {run: 'true'}}\n"`, `""`, 1), nil)
		if kept() != was {
			t.Errorf("PUT without a text leaves %q", kept())
		}
		is.Plan.File.Text += "# a change\n"
		body, _ = json.Marshal(is.ScheduleSettings)
		if status, text := s.ask("PUT", "/schedules/x", string(body)); status != 422 || !strings.Contains(text, `"code":"secret"`) || kept() != was {
			t.Errorf("PUT of a text with *** answers %d %s and leaves %q", status, text, kept())
		}
		// A param that becomes secret after it was given is hidden.
		s.must("POST", "/schedules", `{"name": "y", "cron": "@daily", "task": {"queue": "q", "params": {"pin": "1234567"}}}`, nil)
		s.must("PUT", "/queues/q", `{"threads": 4, "secrets": ["pin"]}`, nil)
		for _, path := range []string{"/schedules", "/schedules/y"} {
			if _, text := s.ask("GET", path, ""); strings.Contains(text, "1234567") {
				t.Errorf("GET %s answers %s", path, text)
			}
		}
		s.must("POST", "/schedules/y/pause", "", nil)
		st, _ := schedule.StoreOf(s.st)
		if y, err := schedule.Find(t.Context(), st, "y"); err != nil || !strings.Contains(string(y.Task.Params), "1234567") {
			t.Errorf("a pause leaves %s, %v", y.Task.Params, err)
		}
	})
}

func TestSchedulesArePaged(t *testing.T) {
	onSQLite(t, func(t *testing.T, s *site) {
		s.must("POST", "/queues", makeExec, nil)
		for _, name := range []string{"b", "a", "c"} {
			s.must("POST", "/schedules", `{"name": "`+name+`", `+planned+`}`, nil)
		}
		var names []string
		for after := ""; ; {
			var page api.ScheduleList
			s.must("GET", "/schedules?limit=2&after="+after, "", &page)
			for _, is := range page.Schedules {
				if names = append(names, is.Name); is.Plan.File.Text != "" {
					t.Errorf("%s has the text %q", is.Name, is.Plan.File.Text)
				}
			}
			if after = page.Next; after == "" {
				break
			}
		}
		if !slices.Equal(names, []string{"a", "b", "c"}) {
			t.Errorf("listed: %v", names)
		}
	})
}

func TestTheInstantsOfASchedule(t *testing.T) {
	onSQLite(t, func(t *testing.T, s *site) {
		s.must("POST", "/queues", makeExec, nil)
		s.must("POST", "/schedules", `{"name": "x", "zone": "Europe/Berlin", "cron": "30 2 * * *", "task": {"queue": "q"}}`, nil)
		var got api.InstantsAnswer
		s.must("GET", "/schedules/x/instants?n=2&after=2027-03-27", "", &got)
		want := []api.Instant{
			{At: time.Date(2027, 3, 27, 1, 30, 0, 0, time.UTC), Local: "2027-03-27T02:30:00+01:00"},
			{At: time.Date(2027, 3, 28, 1, 0, 0, 0, time.UTC), Local: "2027-03-28T03:00:00+02:00", Change: "moved", Reason: "the clock skips 2027-03-28 02:30: it goes from 02:00 to 03:00"},
		}
		if !slices.Equal(got.Instants, want) {
			t.Errorf("got %+v", got.Instants)
		}
		if s.must("GET", "/schedules/x/instants", "", &got); len(got.Instants) != 5 || !got.Instants[0].At.After(time.Now()) {
			t.Errorf("from now on: %+v", got.Instants)
		}
	})
}

func TestTheScopesOfSchedules(t *testing.T) {
	s := serve(t)
	for request, want := range map[string]auth.Scope{
		"GET /schedules": auth.Read, "GET /schedules/x": auth.Read, "GET /schedules/x/instants": auth.Read,
		"POST /schedules": auth.Submit, "PUT /schedules/x": auth.Submit, "POST /schedules/x/run": auth.Submit, "POST /schedules/x/backfill": auth.Submit,
		"POST /schedules/x/pause": auth.Operate, "POST /schedules/x/resume": auth.Operate, "DELETE /schedules/x": auth.Admin,
	} {
		method, path, _ := strings.Cut(request, " ")
		r, err := http.NewRequest(method, s.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.api.Scope(r); got != want {
			t.Errorf("%s needs %q, want %q", request, got, want)
		}
	}
}

// A store without schedules says so.
func TestAStoreWithoutSchedules(t *testing.T) {
	st := struct{ store.Store }{openSQLite(t, nil)}
	s := serveStore(t, st, v1.Config{Store: st})
	if status, text := s.ask("GET", "/schedules", ""); status != 501 || !strings.Contains(text, "keeps no schedules") {
		t.Errorf("it answers %d %s", status, text)
	}
}
