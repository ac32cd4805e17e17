package v1_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/api"
	v1 "github.com/seed-1177d267/sluice/internal/api/v1"
	"github.com/seed-1177d267/sluice/internal/oste"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/sqlite"
	"github.com/seed-1177d267/sluice/internal/store/storetest/model"
	"github.com/seed-1177d267/sluice/plan"
)

// A crossed store does something before a queue or a group is changed, or a queue is deleted, and after tasks
// were added.
type crossed struct {
	*sqlite.Store
	before, after func()
}

// do is for once.
func (c *crossed) do(f *func()) {
	if do := *f; do != nil {
		*f = nil
		do()
	}
}

func (c *crossed) DeleteQueue(ctx context.Context, id plan.QueueID) error {
	c.do(&c.before)
	return c.Store.DeleteQueue(ctx, id)
}

func (c *crossed) ChangeQueue(ctx context.Context, was, q plan.Queue) error {
	c.do(&c.before)
	return c.Store.ChangeQueue(ctx, was, q)
}

func (c *crossed) PutGroup(ctx context.Context, was, g plan.Group) error {
	c.do(&c.before)
	return c.Store.PutGroup(ctx, was, g)
}

func (c *crossed) AddTasks(ctx context.Context, id plan.PlanID, tasks []plan.Task) error {
	err := c.Store.AddTasks(ctx, id, tasks)
	c.do(&c.after)
	return err
}

func TestNothingWaitsWithoutItsType(t *testing.T) {
	st := openSQLite(t, nil).(*sqlite.Store)
	c := &crossed{Store: st}
	e := osteOn(t, serveStore(t, st, v1.Config{Store: c, Check: checkHTTP()}))
	late := `{"Date": "2099-01-01T00:00:00Z", "ActivityType": "acme.music.drop", "Parameter": {"AlbumId": 2}}`
	recurring := `{"Hour": "4", "Minute": "0", "ActivityType": "acme.music.drop", "Parameter": {"AlbumId": 1}}`
	left := func() {
		t.Helper()
		waiting, err := st.Tasks(t.Context(), store.TaskQuery{Statuses: oste.Waiting})
		schedules, alsoErr := st.Schedules(t.Context(), store.ScheduleQuery{Limit: 9})
		if err != nil || alsoErr != nil || len(waiting)+len(schedules) > 0 {
			t.Errorf("%d activities wait, and %d recur: %v %v", len(waiting), len(schedules), err, alsoErr)
		}
	}
	c.before = func() { // all that is to be deleted was cancelled
		e.must("POST", "/point-in-time-activities", late, nil)
		e.must("POST", "/recurring-activities", recurring, nil)
	}
	e.must("DELETE", "/activity-types/acme.music.drop?cancel=true", "", nil)
	left()
	e.must("POST", "/activity-types", `{"Solution": "acme.music", "Name": "drop", "Verb": "DELETE", "UriPattern": "https://api.example.com/album/{AlbumId}"}`, nil)
	c.after = func() { // a deletion that looked for what waits before
		queues, err := st.Queues(t.Context())
		for _, q := range queues {
			if q.Name == "acme.music.drop" && err == nil {
				err = st.DeleteQueue(t.Context(), q.ID)
			}
		}
		if err != nil {
			t.Error(err)
		}
	}
	e.refuses("POST", "/point-in-time-activities", late, 404, "body.ActivityType")
	left()
}

func TestAChangeIsRepeatedAfterAnotherOne(t *testing.T) {
	c := &crossed{Store: openSQLite(t, nil).(*sqlite.Store)}
	s := serveStore(t, c.Store, v1.Config{Store: c, Check: checkHTTP()})
	e := osteOn(t, s)
	both := func(e *site, method, path, body, other, want string) {
		t.Helper()
		c.before = func() { e.must(method, path, other, nil) }
		e.must(method, path, body, nil)
		if _, is := e.ask("GET", path, ""); !strings.Contains(is, want) {
			t.Errorf("%s is %s, want %s", path, is, want)
		}
	}
	both(e.site, "PATCH", "/solutions/acme.music", `{"SuccessPeriod": 8}`, `{"DeadLetterPeriod": 9}`, `"SuccessPeriod":8,"DeadLetterPeriod":9`)
	both(e.site, "PATCH", "/activity-types/acme.music.drop", `{"Retries": 4}`, `{"Verb": "PUT"}`, `"Verb":"PUT"`)
	both(s, "PUT", "/groups/acme", `{"weight": 4}`, `{"weight": 5}`, `"weight":4`)
	both(s, "PUT", "/queues/acme.music.drop", `{"threads": 2}`, `{"threads": 3, "weight": 7}`, `"weight":7`)
}

// engine is the site with the routes of OSTE, and an instance that runs activities.
type engine struct {
	*site
	node plan.Instance
}

// osteOn makes a company, its solution and two types.
func osteOn(t *testing.T, s *site) *engine {
	t.Helper()
	e := &engine{&site{t, s.st, strings.TrimSuffix(s.url, api.Root) + api.OSTERoot, s.api, s.end}, plan.Instance{
		ID: plan.InstanceID{ID: plan.NewID(time.Now())}, Node: "n1", Host: "h", Lease: time.Minute, Threads: 4, Plugins: []string{"http"},
	}}
	if err := s.st.Register(t.Context(), e.node); err != nil {
		t.Fatal(err)
	}
	e.must("POST", "/companies", `{"Name": "acme", "QoSLevel": 3}`, nil)
	e.must("POST", "/solutions", `{"Company": "acme", "Name": "music", "SuccessPeriod": 7}`, nil)
	e.must("POST", "/activity-types", `{"Solution": "acme.music", "Name": "republish", "Verb": "POST", "UriPattern": "https://api.example.com/song/{SongId}", "Retries": 1, "ObjectIdRef": ["SongId"]}`, nil)
	e.must("POST", "/activity-types", `{"Solution": "acme.music", "Name": "drop", "Verb": "DELETE", "UriPattern": "https://api.example.com/album/{AlbumId}", "ObjectIdRef": ["AlbumId"]}`, nil)
	return e
}

// add makes a point-in-time activity, and returns its path.
func (e *engine) add(date, of, parameter string) string {
	e.Helper()
	var made oste.WaitingActivity
	e.must("POST", "/point-in-time-activities", fmt.Sprintf(`{"Date": %q, "ActivityType": %q, "Parameter": %s}`, date, of, parameter), &made)
	return "/point-in-time-activities/" + made.ID
}

// start has a node claim what is due, and begin the attempts.
func (e *engine) start() []protocol.ClaimedTask {
	e.Helper()
	did, err := e.st.Turn(e.Context(), protocol.Turn{Instance: e.node.ID, Plugins: e.node.Plugins, Slots: 16, Start: true})
	if err != nil {
		e.Fatal(err)
	}
	return did.Claimed
}

// die has the node die, and another one take its place.
func (e *engine) die() {
	e.Helper()
	_, err := e.st.Rescue(e.Context(), e.node.ID, -1)
	e.node.ID.ID = plan.NewID(time.Now())
	if err := cmp.Or(err, e.st.Register(e.Context(), e.node)); err != nil {
		e.Fatal(err)
	}
}

// run has a node claim what is due, and end each attempt in a way.
func (e *engine) run(status plan.Status, detail string) (ran []plan.TaskID) {
	e.Helper()
	var ended []protocol.Ending
	for _, t := range e.start() {
		line := fmt.Sprintf(`{"method":"POST","url":"https://api.example.com/","status":%d,"ms":{"end":2}}`+"\n", map[plan.Status]int{plan.Succeeded: 200, plan.Failed: 503}[status])
		if err := e.st.AppendLog(e.Context(), t.Claim, []plan.LogEntry{{At: time.Now(), Attempt: t.Attempt, Stream: plan.System, Text: line}}); err != nil {
			e.Fatal(err)
		}
		ended = append(ended, protocol.Ending{Claim: t.Claim, Status: status, Detail: detail})
		ran = append(ran, t.Task)
	}
	if _, err := e.st.Turn(e.Context(), protocol.Turn{Instance: e.node.ID, Ended: ended}); err != nil {
		e.Fatal(err)
	}
	return ran
}

// outdated makes a request with the ETag of an old version, which is refused, and then with the present one.
func (e *engine) outdated(old, method, path, body string, want int) {
	e.Helper()
	read := strings.TrimSuffix(path, "/retry")
	_, tag, _ := e.match("", "GET", read, "")
	_, before := e.ask("GET", read, "")
	if status, _, text := e.match(old, method, path, body); status != 412 {
		e.Errorf("%s %s with an old ETag: %d %s", method, path, status, text)
	}
	if _, after := e.ask("GET", read, ""); after != before {
		e.Errorf("%s %s with an old ETag changed\n%s\nto\n%s", method, path, before, after)
	}
	if status, _, text := e.match(tag, method, path, body); status != want {
		e.Errorf("%s %s with its ETag: %d %s", method, path, status, text)
	}
}

// is compares the part of an answer that is wanted.
func (e *engine) is(path string, want string) {
	e.Helper()
	if status, text := e.ask("GET", path, ""); status != 200 || !strings.Contains(text, want) {
		e.Errorf("GET %s: %d %s, want %s", path, status, text, want)
	}
}

func TestCompaniesSolutionsAndTypes(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		e := osteOn(t, s)
		e.is("/companies", `{"items":[{"id":"acme","Name":"acme","QoSLevel":3}]}`)
		e.is("/solutions/acme.music", `{"id":"acme.music","Company":"acme","Name":"music","QoSLevel":1,"SuccessPeriod":7}`)
		e.is("/activity-types/acme.music.drop", `{"id":"acme.music.drop","Solution":"acme.music","Name":"drop","Verb":"DELETE","UriPattern":"https://api.example.com/album/{AlbumId}","ObjectIdRef":["AlbumId"]}`)
		// The same request again makes nothing, and is no error.
		e.must("POST", "/companies", `{"Name": "acme", "QoSLevel": 3}`, nil)
		e.must("POST", "/activity-types", `{"Solution": "acme.music", "Name": "drop", "Verb": "DELETE", "UriPattern": "https://api.example.com/album/{AlbumId}", "ObjectIdRef": ["AlbumId"]}`, nil)

		queue := func() (q api.Queue) {
			t.Helper()
			s.must("GET", "/queues/acme.music.republish", "", &q)
			return q
		}
		if q := queue(); q.Group != "acme.music" || q.Threads != nil || q.Keep.Succeeded.String() != "168h0m0s" || q.Keep.Failed >= 0 {
			t.Errorf("the queue is %+v", q)
		}
		e.must("PATCH", "/solutions/acme.music", `{"successPeriod": null, "DeadLetterPeriod": 30}`, nil)
		e.is("/solutions/acme.music", `"QoSLevel":1,"DeadLetterPeriod":30}`)
		if q := queue(); q.Keep.Succeeded >= 0 || q.Keep.Failed.String() != "720h0m0s" || q.Keep.Orphaned != q.Keep.Failed {
			t.Errorf("the queue keeps %+v", q.Keep)
		}
		// Settings of a group or a queue that OSTE does not know stay.
		s.must("PUT", "/groups/acme", `{"weight": 3, "rate": {"starts": 5, "per": "1s"}, "paused": true}`, nil)
		e.must("PUT", "/companies/acme", `{"Name": "acme", "QoSLevel": 4}`, nil)
		var g api.Group
		if s.must("GET", "/groups/acme", "", &g); g.Weight != 4 || !g.Paused || g.Rate.Starts != 5 {
			t.Errorf("the group is %+v", g)
		}
		s.must("PUT", "/queues/acme.music.republish", `{"threads": 3}`, nil)
		e.must("PATCH", "/activity-types/acme.music.republish", `{"UriPattern": "https://api.example.org/{SongId}"}`, nil)
		if q := queue(); *q.Threads != 3 || string(q.Defaults.Params) != `{"method":"POST","url":"https://api.example.org/{SongId}"}` || q.Defaults.Retry.Attempts != 2 {
			t.Errorf("the queue is %+v with %s", q, q.Defaults.Params)
		}
		for _, path := range []string{"/companies/acme", "/solutions/acme.music", "/activity-types/acme.music.republish"} {
			_, tag, _ := e.match("", "GET", path, "")
			change := map[bool]string{true: `{"Retries": 3}`, false: `{"QoSLevel": 9}`}[strings.Contains(path, "types")]
			if status, _, text := e.match(tag, "PATCH", path, change); status != 200 {
				t.Errorf("%s: %d %s", path, status, text)
			}
			if status, _, text := e.match(tag, "PATCH", path, change); status != 200 { // an answer was lost
				t.Errorf("%s again: %d %s", path, status, text)
			}
			for _, ask := range [][2]string{{"PATCH", strings.NewReplacer("3", "5", "9", "5").Replace(change)}, {"DELETE", ""}} {
				if status, _, text := e.match(tag, ask[0], path, ask[1]); status != 412 {
					t.Errorf("%s %s with an old ETag: %d %s", ask[0], path, status, text)
				}
			}
		}
	})
}

func TestAnAddressThatNodesDoNotReachIsRefusedForASolution(t *testing.T) {
	st := model.New(model.Options{})
	s := serveStore(t, st, v1.Config{Store: st, Receiver: func(uri string) error {
		if strings.Contains(uri, "10.1.2.3") {
			return errors.New("nobody reaches " + uri)
		}
		return nil
	}})
	e := osteOn(t, s)
	e.refuses("PATCH", "/companies/acme", `{"QoSLevel": 1e2}`, 422, "body.QoSLevel")
	e.refuses("PATCH", "/companies/acme", `{"QoSLevel": 1e309}`, 400, "body.QoSLevel")
	e.refuses("PATCH", "/companies/acme", `{"QoSLevel": 5, "qoslevel": 6}`, 400, "body")
	e.refuses("POST", "/solutions", `{"Company": "acme", "Name": "video", "SuccessUri": "http://10.1.2.3/"}`, 422, "body.SuccessUri")
	e.refuses("PATCH", "/solutions/acme.music", `{"DeadLetterUri": "http://10.1.2.3/"}`, 422, "body.DeadLetterUri")
	e.must("PATCH", "/solutions/acme.music", `{"DeadLetterUri": "https://a.example/", "SuccessUri": "https://b.example/"}`, nil)
	e.is("/solutions/acme.music", `"SuccessPeriod":7,"SuccessUri":"https://b.example/","DeadLetterUri":"https://a.example/"}`)
	e.must("PATCH", "/solutions/acme.music", `{"DeadLetterUri": null}`, nil)
	e.is("/solutions", `"SuccessUri":"https://b.example/"}]}`)
}

func TestAnActivityWaitsFailsAndIsQueuedAgain(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		e := osteOn(t, s)
		later := e.add("2099-01-01T00:00:00Z", "acme.music.republish", `{"SongId": 17}`)
		e.is(later, `"Date":"2099-01-01T00:00:00Z","ActivityType":"acme.music.republish","Parameter":{"SongId":17},"State":"held","Object":"17","Tries":0}`)
		_, tag, _ := e.match("", "GET", later, "")
		if status, _, text := e.match(tag, "PATCH", later, `{"Date": "2098-01-01T00:00:00Z", "Retries": 0, "UriPattern": "https://api.example.org/{SongId}"}`); status != 200 || !strings.Contains(text, `"Date":"2098`) {
			t.Errorf("a change: %d %s", status, text)
		}
		if status, _, text := e.match(tag, "PATCH", later, `{"Retries": 5}`); status != 412 {
			t.Errorf("a change of another version: %d %s", status, text)
		}
		e.is(later, `"Parameter":{"SongId":17},"Retries":0,"UriPattern":"https://api.example.org/{SongId}"`)
		e.must("PUT", later, `{"Date": "2097-01-01T00:00:00Z", "Parameter": {"SongId": 18}}`, nil)
		e.is(later, `"Parameter":{"SongId":18},"Retries":1,"State":"held","Object":"18"`)
		e.outdated(tag, "DELETE", later, "", 204)
		if status, text := e.ask("GET", later, ""); status != 404 {
			t.Errorf("a deleted activity: %d %s", status, text)
		}

		now := e.add("2001-01-01T00:00:00Z", "acme.music.republish", `{"SongId": 1}`)
		other := e.add("2001-01-01T00:00:00Z", "acme.music.drop", `{"AlbumId": 1}`)
		e.must("PATCH", now, `{"Retries": 0}`, nil)
		if ran := e.run(plan.Failed, "503 from api.example.com"); len(ran) != 2 {
			t.Fatalf("%d ran", len(ran))
		}
		e.is("/failed-activities?type=acme.music.republish", `"Object":"1","State":"failed","Reason":"503","Detail":"503 from api.example.com","Tries":1}]}`)
		failed := strings.Replace(now, "point-in-time", "failed", 1)
		e.is(failed, `"LogDetails":[{"Try":1,"At":`)
		e.is(failed, `"Sent":{"Method":"POST","Uri":"https://api.example.com/","Body":{"SongId":1}},"CameBack":{"Status":503},"Ms":2}]`)
		count := func(query string) int {
			t.Helper()
			var list struct{ Items []oste.FinishedActivity }
			e.must("GET", query, "", &list)
			return len(list.Items)
		}
		for query, want := range map[string]int{
			"": 2, "company=acme": 2, "solution=acme.music": 2, "type=acme.music.drop": 1, "object=1": 2, "object=2": 0, "reason=404,503": 2, "reason=timeout,error": 0,
			"detail=FROM%20API": 2, "detail=404": 0, "from=2001-01-01T00:00:00Z": 2, "to=2001-01-01T00:00:00Z": 0, "to=2099-01-01T00:00:00Z&type=acme.music.drop": 1,
		} {
			if got := count("/failed-activities?" + query); got != want {
				t.Errorf("%s finds %d, want %d", query, got, want)
			}
		}
		var page struct {
			Items []oste.FinishedActivity
			Next  string
		}
		e.must("GET", "/failed-activities?limit=1", "", &page)
		if one := page.Items; len(one) != 1 || page.Next != one[0].ID || count("/failed-activities?limit=1&after="+page.Next) != 1 {
			t.Errorf("the first page is %+v", page)
		}

		again := strings.Replace(other, "point-in-time", "failed", 1) + "/retry"
		e.outdated(tag, "POST", again, `{"Parameter": {"AlbumId": 2}, "Retries": 0}`, 200)
		if status, text := e.ask("POST", again, ""); status != 404 {
			t.Errorf("a retry of what waits: %d %s", status, text)
		}
		var bulk api.BulkAnswer
		if e.must("POST", "/failed-activities/retry?type=acme.music.republish&check=true", "", &bulk); bulk.Matched != 1 || bulk.Changed != 0 {
			t.Errorf("the filter finds %+v", bulk)
		}
		if e.must("POST", "/failed-activities/retry?detail=503&object=1", "", &bulk); bulk.Matched != 1 || bulk.Changed != 1 || bulk.Next != "" {
			t.Errorf("the filter queued %+v", bulk)
		}
		// A try that is lost with its node is made again, and is none of Retries.
		if lost := e.start(); len(lost) != 2 {
			t.Fatalf("%d began", len(lost))
		}
		e.die()
		if ran := e.run(plan.Succeeded, ""); len(ran) != 2 || count("/failed-activities") != 0 {
			t.Fatalf("%d ran", len(ran))
		}
		e.is("/successful-activities?object=2", `"Parameter":{"AlbumId":2},"Retries":0,"Object":"2","State":"succeeded","Tries":2}]}`)
		succeeded := strings.Replace(now, "point-in-time", "successful", 1)
		e.is(succeeded, `"Text":"retried by a person: attempts count from 1 again"`)
		e.outdated(tag, "DELETE", succeeded, "", 204)
	})
}

func TestAKeyMakesOneActivity(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		e := osteOn(t, s)
		ask := func(path, body string) (int, string) {
			t.Helper()
			r, err := http.NewRequestWithContext(t.Context(), "POST", e.url+path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Idempotency-Key", "k1")
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			var made struct{ ID, Code string }
			_ = json.NewDecoder(answer.Body).Decode(&made)
			return answer.StatusCode, made.ID + made.Code
		}
		for path, when := range map[string]string{"/point-in-time-activities": `"Date": "2099-01-01T00:00:00Z"`, "/recurring-activities": `"Hour": "4", "Minute": "0"`} {
			body := `{` + when + `, "ActivityType": "acme.music.republish", "Parameter": {"SongId": 1}}`
			status, first := ask(path, body)
			again, second := ask(path, body)
			if status != 201 || again != 201 || first != second {
				t.Errorf("%s: %d %s, and again %d %s", path, status, first, again, second)
			}
			for _, other := range []string{strings.Replace(body, `": 1}`, `": 2}`, 1), strings.NewReplacer("2099", "2098", `"4"`, `"5"`).Replace(body)} {
				if status, code := ask(path, other); status != 422 || code != "repeated" {
					t.Errorf("%s with the same key and %s: %d %s", path, other, status, code)
				}
			}
		}
	})
}

func TestAllThatWaitsAboutAnObjectIsChanged(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		e := osteOn(t, s)
		one := e.add("2099-01-01T00:00:00Z", "acme.music.republish", `{"SongId": 17, "a": 1}`)
		two := e.add("2099-02-01T00:00:00Z", "acme.music.republish", `{"SongId": 17, "a": 2}`)
		not := e.add("2099-02-01T00:00:00Z", "acme.music.republish", `{"SongId": 18}`)
		s.must("POST", "/queues", `{"name": "q", "plugin": "demo", "threads": 3}`, nil)
		elsewhere := s.newPlain("q", `, "params": {"a": 1}, "subject": "17", "not_before": "2099-01-01T00:00:00Z"`)
		var r struct{ ID string }
		e.must("POST", "/recurring-activities", `{"Hour": "4", "Minute": "0", "Zone": "Europe/Berlin", "ActivityType": "acme.music.republish", "Parameter": {"SongId": 17}}`, &r)
		for body, place := range map[string]string{
			`{"UriPattern": "https://api.example.org/{Name}"}`:       "body.UriPattern",
			`{"UriPattern": "ftp://api.example.org/"}`:               "body.UriPattern",
			`{"Parameter": {"SongId": 18}}`:                          "body.Parameter",
			`{"Parameter": {"a": 18}}`:                               "body.Parameter",
			`{"Parameter": [17], "UriPattern": "https://a.example"}`: "body.Parameter",
			`{}`: "body",
		} {
			e.refuses("PATCH", "/point-in-time-activities?object=17", body, 422, place)
		}
		e.is(one, `"Parameter":{"SongId":17,"a":1},"State"`)
		want := func(method, query, body, text string) {
			t.Helper()
			if status, got := e.ask(method, "/point-in-time-activities?object=17"+query, body); status != 200 || strings.TrimSpace(got) != text {
				t.Errorf("%s: %d %s, want %s", body, status, got, text)
			}
		}
		want("PATCH", "&type=acme.music.drop", `{"UriPattern": "https://api.example.org/{SongId}"}`, `{"PointInTime":0,"Recurring":0,"LeftOut":0}`)
		want("PATCH", "", `{"UriPattern": "https://api.example.org/{SongId}"}`, `{"PointInTime":2,"Recurring":1,"LeftOut":0}`)
		e.is(one, `"Parameter":{"SongId":17,"a":1},"UriPattern":"https://api.example.org/{SongId}"`)
		e.is("/recurring-activities/"+r.ID, `"Parameter":{"SongId":17},"UriPattern":"https://api.example.org/{SongId}"`)
		want("PATCH", "&company=acme", `{"Parameter": {"SongId": 17, "b": 3}, "UriPattern": ""}`, `{"PointInTime":2,"Recurring":1,"LeftOut":0}`)
		e.is(two, `"Parameter":{"SongId":17,"b":3},"State"`)
		e.is(not, `"Parameter":{"SongId":18},"State"`)
		e.is("/recurring-activities?object=17", `"Parameter":{"SongId":17,"b":3},"Object"`)
		var task api.Task
		if s.must("GET", elsewhere, "", &task); string(task.Params) != `{"a":1}` {
			t.Errorf("a task of another queue has %s", task.Params)
		}
		e.must("PATCH", "/activity-types/acme.music.republish", `{"ObjectIdRef": ["AlbumId"]}`, nil)
		want("PATCH", "", `{"UriPattern": "https://api.example.net/{SongId}"}`, `{"PointInTime":2,"Recurring":1,"LeftOut":0}`)
		e.must("PATCH", one, `{"Retries": 7}`, nil)
		e.is(one, `"Object":"17"`)
		e.refuses("PATCH", one, `{"Parameter": {"SongId": 19}}`, 422, "body.Parameter")
	})
}

// refuses asks for what is refused, with its place.
func (e *engine) refuses(method, path, body string, want int, place string) {
	e.Helper()
	status, text := e.ask(method, path, body)
	var p api.Problem
	if err := json.Unmarshal([]byte(text), &p); err != nil || status != want || place != "" && (len(p.Fields) == 0 || p.Fields[0].Location != place) {
		e.Errorf("%s %s with %.200s: %d %.500s, want %d at %s", method, path, body, status, text, want, place)
	}
	for _, word := range []string{"params.", "sluice group", "2006-01-02", "is {"} {
		if strings.Contains(text, word) {
			e.Errorf("%s %s is refused in words that are not of OSTE: %s", method, path, text)
		}
	}
}

func TestWhatWaitsHoldsUpADeletion(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		e := osteOn(t, s)
		e.must("POST", "/solutions", `{"Company": "acme", "Name": "video"}`, nil)
		e.add("2099-01-01T00:00:00Z", "acme.music.republish", `{"SongId": 1}`)
		e.add("2099-01-01T00:00:00Z", "acme.music.republish", `{"SongId": 2}`)
		e.must("POST", "/recurring-activities", `{"Hour": "4", "Minute": "0", "ActivityType": "acme.music.drop", "Parameter": {"AlbumId": 1}}`, nil)
		for path, n := range map[string]int{"/companies/acme": 3, "/solutions/acme.music": 3, "/activity-types/acme.music.republish": 2, "/activity-types/acme.music.drop": 1} {
			if status, text := e.ask("DELETE", path, ""); status != 409 || !strings.Contains(text, fmt.Sprintf(" %d activities wait", n)) {
				t.Errorf("%s: %d %s", path, status, text)
			}
		}
		e.must("DELETE", "/activity-types/acme.music.drop?cancel=true", "", nil)
		s.must("POST", "/queues", `{"name": "stranger", "plugin": "demo", "threads": 3, "group": "acme.music"}`, nil)
		if status, text := e.ask("DELETE", "/companies/acme?cancel=true", ""); status != 409 || !strings.Contains(text, "stranger") {
			t.Errorf("with a stranger: %d %s", status, text)
		}
		e.is("/point-in-time-activities?type=acme.music.republish&object=1", `"State":"held"`)
		s.must("PUT", "/queues/stranger", `{"threads": 3, "group": null}`, nil)

		// A type that cannot be deleted is found before anything changes.
		e.must("POST", "/activity-types", `{"Solution": "acme.music", "Name": "zoo", "Verb": "GET", "UriPattern": "https://api.example.com/"}`, nil)
		e.must("POST", "/recurring-activities", `{"Hour": "4", "Minute": "0", "ActivityType": "acme.music.republish", "Parameter": {"SongId": 1}}`, nil)
		all := func() (text string) {
			for _, path := range []string{"/activity-types", "/recurring-activities", "/point-in-time-activities"} {
				_, list := e.ask("GET", path, "")
				text += list
			}
			return text
		}
		before := all()
		refused := func(says string) {
			t.Helper()
			for _, path := range []string{"/companies/acme", "/solutions/acme.music", "/activity-types/acme.music.zoo"} {
				if status, text := e.ask("DELETE", path+"?cancel=true", ""); status != 409 || !strings.Contains(text, says) {
					t.Errorf("%s: %d %s, want %s", path, status, text, says)
				}
			}
			if after := all(); after != before {
				t.Errorf("a refused deletion changed\n%s\nto\n%s", before, after)
			}
		}
		s.must("PUT", "/queues/acme.music.zoo", `{"threads": null, "secrets": ["token"]}`, nil)
		refused("take that off first")
		s.must("PUT", "/queues/acme.music.zoo", `{"threads": null, "secrets": null}`, nil)
		p := submitted(t, s.st, &plan.Spec{Name: "deploy", Tasks: []plan.TaskSpec{{Name: "a", Plugin: "http", Queue: "acme.music.zoo"}}})
		refused(fmt.Sprintf(`has task \"a\" of plan %s, which is queued: cancel the plan`, p.ID))
		s.must("POST", "/plans/"+p.ID.String()+"/cancel", "", nil)
		e.must("DELETE", "/companies/acme?cancel=true", "", nil)
		for _, path := range []string{"/companies", "/solutions", "/activity-types", "/recurring-activities", "/point-in-time-activities"} {
			e.is(path, `{"items":[]}`)
		}
		e.must("POST", "/companies", `{"Name": "idle"}`, nil)
		e.must("DELETE", "/companies/idle", "", nil)
	})
}

func TestWhatAReceiverIsOwedHoldsUpADeletion(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		e := osteOn(t, s)
		e.must("PATCH", "/solutions/acme.music", `{"SuccessUri": "https://a.example/done", "DeadLetterUri": "https://a.example/failed"}`, nil)
		done := e.add("2001-01-01T00:00:00Z", "acme.music.drop", `{"AlbumId": 1}`)
		e.run(plan.Succeeded, "")
		waits := e.add("2099-01-01T00:00:00Z", "acme.music.drop", `{"AlbumId": 2}`)
		for _, path := range []string{"/companies/acme", "/solutions/acme.music", "/activity-types/acme.music.drop"} {
			if status, text := e.ask("DELETE", path+"?cancel=true", ""); status != 409 || !strings.Contains(text, "1 finished activity is still to be handed over") {
				t.Errorf("%s: %d %s", path, status, text)
			}
		}
		e.is(waits, `"State":"held"`)
		e.must("PATCH", "/solutions/acme.music", `{"DeadLetterPeriod": 9}`, nil)
		tried := e.add("2001-01-01T00:00:00Z", "acme.music.republish", `{"SongId": 1}`)
		e.start()
		if status, text := e.ask("DELETE", "/activity-types/acme.music.republish?cancel=true", ""); status != 409 || !strings.Contains(text, "were tried already") {
			t.Errorf("with one that runs: %d %s", status, text)
		}
		e.is(tried, `"State":"running"`)
		e.must("PATCH", "/solutions/acme.music", `{"DeadLetterPeriod": null}`, nil)
		e.must("DELETE", "/activity-types/acme.music.republish?cancel=true", "", nil)
		e.must("PATCH", "/solutions/acme.music", `{"SuccessUri": null}`, nil) // without a period dead letters stay
		e.must("DELETE", "/companies/acme?cancel=true", "", nil)
		id, err := plan.ParseID(done[strings.LastIndexByte(done, '/')+1:])
		if err != nil {
			t.Fatal(err)
		}
		if task, err := s.st.Task(t.Context(), plan.TaskID{ID: id}); err != nil || task.Status != plan.Succeeded {
			t.Errorf("the finished task is %v (%v)", task.Status, err)
		}
	})
}

// Finished activities are deleted, and failed ones are changed and queued again. They take no other verb.
func TestFinishedActivitiesAreChangedAndDeleted(t *testing.T) {
	onSQLite(t, func(t *testing.T, s *site) {
		e := osteOn(t, s)
		one, two := e.add("2001-01-01T00:00:00Z", "acme.music.drop", `{"AlbumId": 1}`), e.add("2001-01-01T00:00:00Z", "acme.music.drop", `{"AlbumId": 2}`)
		failed := func(path string) string { return strings.Replace(path, "point-in-time", "failed", 1) }
		e.run(plan.Failed, "404 from a.example")
		const old = `"1"`
		e.outdated(old, "PATCH", failed(one), `{"UriPattern": "https://a.example/{AlbumId}", "Retries": 0}`, 200)
		e.is(one, `"Parameter":{"AlbumId":1},"Retries":0,"UriPattern":"https://a.example/{AlbumId}","State":"queued"`)
		e.refuses("DELETE", failed(one), "", 404, "")
		e.outdated(old, "DELETE", failed(two), "", 204)
		e.refuses("DELETE", failed(two), "", 404, "")
		e.is("/failed-activities", `{"items":[]}`)
		for _, ask := range []struct{ method, path, says string }{
			{"POST", "/successful-activities", "make one by POST to /oste/v1/point-in-time-activities"},
			{"PATCH", strings.Replace(one, "point-in-time", "successful", 1), "make one by POST to"},
			{"PUT", failed(one), "is changed by PATCH"},
		} {
			if status, text := e.ask(ask.method, ask.path, `{}`); status != 405 || !strings.Contains(text, ask.says) {
				t.Errorf("%s %s: %d %s", ask.method, ask.path, status, text)
			}
		}
	})
}

// A secret in a Parameter stays while other fields change, and is not shown.
func TestASecretOfAnActivityStays(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		e := osteOn(t, s)
		s.must("PUT", "/queues/acme.music.republish", `{"threads": null, "secrets": ["token"]}`, nil)
		path := e.add("2099-01-01T00:00:00Z", "acme.music.republish", `{"SongId": 1, "token": "hunter22"}`)
		e.must("PATCH", path, `{"Date": "2098-01-01T00:00:00Z", "UriPattern": "https://a.example/{SongId}"}`, nil)
		e.must("PATCH", "/point-in-time-activities?object=1", `{"UriPattern": ""}`, nil)
		e.is(path, `"Date":"2098-01-01T00:00:00Z","ActivityType":"acme.music.republish","Parameter":{"SongId":1,"token":"***"},"State"`)
		if status, text := e.ask("PATCH", path, `{"Parameter": {"SongId": 1, "token": "***"}}`); status != 422 || !strings.Contains(text, "stands for a secret") {
			t.Errorf("a mask in place of the secret: %d %s", status, text)
		}
		id, err := plan.ParseID(path[strings.LastIndexByte(path, '/')+1:])
		if err != nil {
			t.Fatal(err)
		}
		if task, err := s.st.Task(t.Context(), plan.TaskID{ID: id}); err != nil || string(task.Params) != `{"body":{"SongId":1,"token":"hunter22"}}` {
			t.Errorf("the task has %s (%v)", task.Params, err)
		}
	})
}

// To queue a failed activity again takes the scope operate, and to change it submit as well.
func TestAChangedRetryNeedsTheScopeSubmit(t *testing.T) {
	onSQLite(t, func(t *testing.T, s *site) {
		e := osteOn(t, s)
		path := strings.Replace(e.add("2001-01-01T00:00:00Z", "acme.music.drop", `{"AlbumId": 1}`), "point-in-time", "failed", 1) + "/retry"
		e.run(plan.Failed, "404 from a.example")
		ask := guarded(t, s)
		for _, c := range []struct {
			scopes, body string
			code         int
		}{
			{"read", ``, 403}, {"operate", `{"Parameter": {"AlbumId": 2}}`, 403}, {"submit", ``, 403}, {"operate", ``, 200},
		} {
			if code, text := ask(c.scopes, "POST", api.OSTERoot+path, c.body); code != c.code {
				t.Errorf("%s with %q: %d %s, want %d", c.scopes, c.body, code, text, c.code)
			}
		}
		e.run(plan.Failed, "404 from a.example")
		if code, text := ask("operate,submit", "POST", api.OSTERoot+path, `{"Parameter": {"AlbumId": 2}}`); code != 200 {
			t.Errorf("with both scopes: %d %s", code, text)
		}
	})
}

// Bad input is refused with its place, and changes nothing.
func TestBadInputOfOSTE(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		e := osteOn(t, s)
		waiting := e.add("2099-01-01T00:00:00Z", "acme.music.republish", `{"SongId": 1}`)
		state := func() (all string) {
			for _, path := range []string{"/companies", "/solutions", "/activity-types", "/recurring-activities", "/point-in-time-activities", "/failed-activities"} {
				_, text := e.ask("GET", path, "")
				all += text
			}
			return all
		}
		before := state()
		const song = `"ActivityType": "acme.music.republish", "Parameter": {"SongId": 1}`
		for _, c := range []struct {
			method, path, body string
			status             int
			place              string
		}{
			{"POST", "/companies", `{"Name": "a.b"}`, 422, "body.Name"},
			{"POST", "/companies", `{"Name": {"$gt": ""}}`, 422, "body.Name"},
			{"POST", "/companies", `{"Name": "b", "QoSLevel": 0}`, 422, "body.QoSLevel"},
			{"POST", "/companies", `{"Name": "b", "Level": 1}`, 422, "body.Level"},
			{"POST", "/companies", `{"Name": "acme"}`, 409, "body.Name"},
			{"POST", "/companies", `{"Name": "` + strings.Repeat("x", 2<<20) + `"}`, 413, ""},
			{"PATCH", "/companies/acme", `{"Name": "other"}`, 422, "body.Name"},
			{"PATCH", "/companies/acme", `{"Retries": 1}`, 422, "body.Retries"},
			{"PATCH", "/companies/none", `{}`, 404, ""},
			{"PUT", "/companies/acme.music", `{}`, 404, ""},
			{"POST", "/solutions", `{"Company": "none", "Name": "music"}`, 404, "body.Company"},
			{"POST", "/solutions", `{"Company": "acme", "Name": "music"}`, 409, "body.Name"},
			{"POST", "/solutions", `{"Company": "acme", "Name": "video", "SuccessPeriod": -1}`, 422, "body.SuccessPeriod"},
			{"POST", "/activity-types", `{"Solution": "acme.none", "Name": "a", "Verb": "GET", "UriPattern": "http://a.example/"}`, 404, "body.Solution"},
			{"POST", "/activity-types", `{"Solution": "acme.music", "Name": "a", "Verb": "HEAD", "UriPattern": "http://a.example/"}`, 422, "body.Verb"},
			{"POST", "/activity-types", `{"Solution": "acme.music", "Name": "a", "Verb": "GET", "UriPattern": "ftp://a.example/"}`, 422, "body.UriPattern"},
			{"POST", "/activity-types", `{"Solution": "acme.music", "Name": "a", "Verb": "GET", "UriPattern": "http://{Host}.example/"}`, 422, "body.UriPattern"},
			{"POST", "/activity-types", `{"Solution": "acme.music", "Name": "republish", "Verb": "GET", "UriPattern": "http://a.example/"}`, 409, "body.Name"},
			{"PATCH", "/activity-types/acme.music.republish", `{"UriPattern": "https://me:secret@a.example/"}`, 422, "body.UriPattern"},
			{"PATCH", "/activity-types/acme.music.republish", `{"Retries": -1}`, 422, "body.Retries"},
			{"POST", "/point-in-time-activities", `{` + song + `}`, 422, "body.Date"},
			{"POST", "/point-in-time-activities", `{"Date": "2099-02-29T00:00:00Z", ` + song + `}`, 422, "body.Date"},
			{"POST", "/point-in-time-activities", `{"Date": "9999-12-31T23:00:00-05:00", ` + song + `}`, 422, "body.Date"},
			{"POST", "/point-in-time-activities", `{"Date": "2099-01-01T00:00:00Z", "ActivityType": "acme.music.none", "Parameter": {}}`, 404, "body.ActivityType"},
			{"POST", "/point-in-time-activities", `{"Date": "2099-01-01T00:00:00Z", "ActivityType": "acme.music.republish", "Parameter": {"AlbumId": 1}}`, 422, "body.Parameter"},
			{"POST", "/point-in-time-activities", `{"Date": "2099-01-01T00:00:00Z", "UriPattern": "https://a.example/{b}", ` + song + `}`, 422, "body.UriPattern"},
			{"POST", "/point-in-time-activities", `{"Date": "2099-01-01T00:00:00Z", "State": "queued", ` + song + `}`, 422, "body.State"},
			{"POST", "/point-in-time-activities", `{"Date": "2099-01-01T00:00:00Z", "ActivityType": "acme.music.republish", "Parameter": {"SongId": "` + strings.Repeat("x", 2<<20) + `"}}`, 413, ""},
			{"POST", "/point-in-time-activities", `{"Date": "2099-01-01T00:00:00Z", "ActivityType": "acme.music.republish", "Parameter": {"SongId": "../.."}}`, 422, "body.Parameter"},
			{"PATCH", waiting, `{"Parameter": {"AlbumId": 1}}`, 422, "body.Parameter"},
			{"PATCH", waiting, `{"Parameter": {"SongId": ".."}}`, 422, "body.Parameter"},
			{"PATCH", waiting, `{"ActivityType": "acme.music.drop"}`, 422, "body.ActivityType"},
			{"PUT", waiting, `{"Parameter": {"SongId": 2}}`, 422, "body.Date"},
			{"DELETE", "/point-in-time-activities/" + strings.Repeat("1", 24), "", 404, ""},
			{"POST", "/recurring-activities", `{"Hour": "25", "Minute": "0", ` + song + `}`, 422, "body.Hour"},
			{"POST", "/recurring-activities", `{"Hour": "4", ` + song + `}`, 422, "body.Minute"},
			{"POST", "/recurring-activities", `{"Hour": "4", "Minute": "0", "Day": "30", "Month": "2", ` + song + `}`, 422, "body.Day"},
			{"POST", "/recurring-activities", `{"Hour": "4", "Minute": "0", "Year": "2020", ` + song + `}`, 422, "body.Year"},
			{"POST", "/recurring-activities", `{"Hour": "4", "Minute": "0", "Zone": "Mars/Olympus", ` + song + `}`, 422, "body.Zone"},
			{"POST", "/recurring-activities", `{"Hour": "4", "Minute": "0", "ActivityType": "none", "Parameter": {}}`, 404, "body.ActivityType"},
			{"POST", "/recurring-activities", `{"Hour": "4", "Minute": "0", "UriPattern": "https://a.example/{b}", ` + song + `}`, 422, "body.UriPattern"},
			{"PATCH", "/recurring-activities/none", `{}`, 404, ""},
			{"GET", "/point-in-time-activities?company=none", "", 404, "query.company"},
			{"GET", "/point-in-time-activities?solution=acme", "", 404, "query.solution"},
			{"GET", "/failed-activities?type=none", "", 404, "query.type"},
			{"GET", "/failed-activities?type[$ne]=x", "", 422, "query.type[$ne]"},
			{"GET", "/failed-activities?reason=odd", "", 422, "query.reason"},
			{"GET", "/failed-activities?from=yesterday", "", 422, "query.from"},
			{"GET", "/failed-activities?object=a%0Ab", "", 422, "query.object"},
			{"POST", "/failed-activities/retry", "", 422, "query"},
			{"POST", "/failed-activities/retry?type=none", "", 404, "query.type"},
			{"POST", "/failed-activities/retry?object=1", `{"Retries": 1}`, 422, "body"},
			{"POST", "/failed-activities/retry?object=1&after=x", "", 422, "query.after"},
			{"POST", "/failed-activities/" + strings.Repeat("1", 24) + "/retry", "", 404, ""},
			{"PATCH", "/point-in-time-activities", `{"UriPattern": "https://a.example/"}`, 422, "query.object"},
			{"PATCH", "/failed-activities/" + strings.Repeat("1", 24), `{}`, 422, "body"},
			{"PATCH", "/failed-activities/" + strings.Repeat("1", 24), `{"Retries": 1}`, 404, ""},
			{"PUT", "/failed-activities/" + strings.Repeat("1", 24), `{}`, 405, ""},
			{"POST", "/successful-activities", `{}`, 405, ""},
		} {
			e.refuses(c.method, c.path, c.body, c.status, c.place)
		}
		if after := state(); after != before {
			t.Errorf("bad input changed\n%s\nto\n%s", before, after)
		}
	})
}
