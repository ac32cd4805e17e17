package oste

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/plan"
)

const music = `{"method":"POST","url":"https://api.example.com/song/{SongId}"}`

func typeQueue() plan.Queue {
	q := plan.Queue{ID: plan.QueueID{ID: plan.ID{1}}, Name: "acme.music.republish", Plugin: Plugin}
	q.Group, q.ObjectRef, q.Defaults = "acme.music", []string{"SongId"}, plan.TaskDefaults{Params: json.RawMessage(music), Retry: plan.RetryText{Attempts: 4, Delay: plan.Duration(time.Second)}}
	return q
}

func TestGroupsAreCompaniesAndSolutions(t *testing.T) {
	for _, c := range []struct {
		name, parent      string
		company, solution bool
	}{
		{"acme", "", true, false},
		{"acme", "other", false, false},
		{"acme.music", "acme", false, true},
		{"acme.music", "", false, false},
		{"acme.music", "acm", false, false},
		{"music", "acme", false, false},
		{"acme.music.songs", "acme.music", false, false},
		{"a:b", "", false, false},
		{"acme.", "acme", false, false},
		{"", "", false, false},
	} {
		g := plan.Group{Name: c.name, GroupSettings: plan.GroupSettings{Parent: c.parent}}
		if _, ok := CompanyOf(&g); ok != c.company {
			t.Errorf("%q in %q is a company: %v", c.name, c.parent, ok)
		}
		if _, ok := SolutionOf(&g); ok != c.solution {
			t.Errorf("%q in %q is a solution: %v", c.name, c.parent, ok)
		}
	}
}

// A resource becomes a group or a queue, and is read from that again.
func TestResourcesAreReadAsTheyWereWritten(t *testing.T) {
	company, g := Company{ID: "acme", Name: "acme", QoSLevel: 7}, plan.Group{}
	if err := company.Apply(&g); err != nil {
		t.Fatal(err)
	}
	if got, ok := CompanyOf(&g); !ok || got != company {
		t.Errorf("the company is %+v", got)
	}
	solution, g := Solution{ID: "acme.music", Company: "acme", Name: "music", QoSLevel: 2, SuccessPeriod: 3, DeadLetterPeriod: 30, SuccessUri: "https://a.example/", DeadLetterUri: "https://b.example/"}, plan.Group{}
	if err := solution.Apply(&g); err != nil {
		t.Fatal(err)
	}
	if got, ok := SolutionOf(&g); !ok || got != solution || g.Parent != "acme" {
		t.Errorf("the solution is %+v of %+v", got, g)
	}
	if k := KeepIn(&g); time.Duration(k.Succeeded) != 72*time.Hour || k.Failed != k.Orphaned || k.Failed != k.Terminated || time.Duration(k.Failed) != 720*time.Hour || k.Cancelled != 0 {
		t.Errorf("its types keep %+v", k)
	}
	if k := KeepIn(&plan.Group{}); k.Succeeded >= 0 || k.Failed >= 0 || k.Terminated >= 0 || k.Orphaned >= 0 {
		t.Errorf("without a period they keep %+v", k)
	}
	is := ActivityType{
		ID: "acme.music.republish", Solution: "acme.music", Name: "republish", Verb: "PUT", UriPattern: "https://example.com/{a}", ParameterExpected: "a song",
		Retries: 2, ObjectIdRef: []string{"a", "b"},
	}
	q := plan.Queue{}
	if err := is.Apply(&q); err != nil {
		t.Fatal(err)
	}
	if got, ok := TypeOf(&q); !ok || !reflect.DeepEqual(got, is) || q.Group != "acme.music" || q.Plugin != "http" || q.Defaults.Retry.Attempts != 3 {
		t.Errorf("the type is %+v of %+v", got, q)
	}
	q.Defaults.Params = with(q.Defaults.Params, map[string]json.RawMessage{"headers": json.RawMessage(`{"a":"b"}`)})
	is.UriPattern = "https://example.org/"
	if err := is.Apply(&q); err != nil || string(q.Defaults.Params) != `{"headers":{"a":"b"},"method":"PUT","url":"https://example.org/"}` {
		t.Errorf("the defaults are %s (%v)", q.Defaults.Params, err)
	}
	for _, other := range []func(q *plan.Queue){
		func(q *plan.Queue) { q.Plugin = "exec" }, func(q *plan.Queue) { q.Group = "acme" }, func(q *plan.Queue) { q.Name = "acme.music" },
	} {
		o := q
		if other(&o); func() bool { _, ok := TypeOf(&o); return ok }() {
			t.Errorf("%+v is a type", o)
		}
	}
}

func TestMistakesNameTheirFields(t *testing.T) {
	acme, song := plan.Group{Name: "acme.music", GroupSettings: plan.GroupSettings{Parent: "acme"}}, typeQueue()
	at, none := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC), plan.Queue{}
	task := func(parameter string, refs ...string) error {
		q := typeQueue()
		q.ObjectRef = refs
		_, err := (&PointInTimeActivity{Date: at, Call: Call{Parameter: json.RawMessage(parameter)}}).Task(&q, "")
		return err
	}
	recurs := func(a RecurringActivity) error { return a.Apply(&song, &plan.ScheduleSettings{}) }
	for _, c := range []struct {
		name, field string
		err         error
		says        string
	}{
		{"a name with a dot", "Name", (&Company{Name: "a.b"}).Apply(&plan.Group{}), "has only letters, digits, _ and -"},
		{"no name", "Name", (&Company{}).Apply(&plan.Group{}), "has no name"},
		{"the word for no group", "Name", (&Company{Name: "none"}).Apply(&plan.Group{}), "stands for no group"},
		{"a name that is too long with its company", "Name", (&Solution{Company: strings.Repeat("a", 150), Name: strings.Repeat("b", 150)}).Apply(&plan.Group{}), "at most 200 bytes"},
		{"another name", "Name", (&Company{Name: "other"}).Apply(&plan.Group{Name: "acme"}), "cannot become"},
		{"another company", "Company", (&Solution{Company: "other"}).Apply(&acme), "cannot become"},
		{"a company that is none", "Company", (&Solution{Company: "a.b", Name: "c"}).Apply(&plan.Group{}), "is not the id of a company"},
		{"a solution that is none", "Solution", (&ActivityType{Solution: "acme", Name: "c"}).Apply(&none), "is not the id of a solution"},
		{"no verb", "Verb", (&ActivityType{UriPattern: "http://a/"}).Apply(&song), "give POST"},
		{"no pattern", "UriPattern", (&ActivityType{Verb: "GET"}).Apply(&song), "give the address"},
		{"an expression", "UriPattern", (&ActivityType{Verb: "GET", UriPattern: "http://a/${{ x }}"}).Apply(&song), "has an expression"},
		{"a field without a name", "ObjectIdRef", (&ActivityType{Verb: "GET", UriPattern: "http://a/", ObjectIdRef: []string{""}}).Apply(&song), "is empty"},
		{"a list as Parameter", "Parameter", task(`[1]`), "JSON object"},
		{"a text as Parameter", "Parameter", task(`"a"`), "JSON object"},
		{"null as Parameter", "Parameter", task(`null`), "JSON object"},
		{"a Parameter without the object", "Parameter", task(`{"b":1}`, "a"), `no field "a"`},
		{"no Parameter", "Parameter", task(``, "a"), `no field "a"`},
		{"an object that is a list", "Parameter.a", task(`{"a":[1]}`, "a"), "has to be a text"},
		{"a comma in one of two fields", "Parameter.b", task(`{"a":1,"b":"x,y"}`, "a", "b"), "has a comma"},
		{"an object that is too long", "Parameter", task(`{"a":"`+strings.Repeat("x", 201)+`"}`, "a"), "at most 200"},
		{"an hour that is none", "Hour", recurs(RecurringActivity{Hour: "24", Minute: "0", Call: Call{Parameter: json.RawMessage(`{"SongId":1}`)}}), "0 to 23"},
		{"no minute", "Minute", recurs(RecurringActivity{Hour: "4"}), "is missing"},
		{"two values in a field", "DayOfWeek", recurs(RecurringActivity{Hour: "4", Minute: "0", DayOfWeek: "1 2"}), "holds 0 to 7"},
		{"a zone that is none", "Zone", recurs(RecurringActivity{Hour: "4", Minute: "0", Zone: "Europe/Berlim"}), "Europe/Berlin"},
	} {
		var m *Mistake
		if !errors.As(c.err, &m) || m.Field != c.field || !strings.Contains(m.Error(), c.says) {
			t.Errorf("%s: %v, want %s and %q", c.name, c.err, c.field, c.says)
		}
	}
}

func TestAnActivityIsATask(t *testing.T) {
	q, none := typeQueue(), 0
	a := PointInTimeActivity{
		Date: time.Date(2027, 1, 1, 0, 0, 0, 1_900_000, time.UTC),
		Call: Call{ActivityType: q.Name, Parameter: json.RawMessage(`{"SongId":17,"n":12345678901234567890}`), Retries: &none, UriPattern: "https://example.org/{SongId}"},
	}
	task, err := a.Task(&q, "")
	if err != nil {
		t.Fatal(err)
	}
	if task.Subject != "17" || task.OnLost != plan.OnLostRetry || task.Retry.Attempts != 1 || task.Retry.Delay != time.Second || task.NotBefore.Nanosecond() != 1_000_000 || task.Queue != q.ID ||
		string(task.Params) != `{"body":{"SongId":17,"n":12345678901234567890},"url":"https://example.org/{SongId}"}` {
		t.Errorf("the task is %+v with %s", task, task.Params)
	}
	back := WaitingOf(&task, q.Name)
	a.ID, a.Date = task.ID.String(), task.NotBefore
	if !reflect.DeepEqual(back.PointInTimeActivity, a) || back.State != "held" || back.Object != "17" {
		t.Errorf("it is read as %+v, want %+v", back, a)
	}
	one, _ := a.Task(&q, "k")
	two, _ := a.Task(&q, "k")
	later := a
	later.Date = a.Date.Add(time.Hour)
	same, _ := later.Task(&q, "k")
	other, _ := a.Task(&q, "l")
	if one.ID != two.ID || one.ID != same.ID || one.ID == other.ID {
		t.Errorf("the ids of keys are %s, %s, %s and %s", one.ID, two.ID, same.ID, other.ID)
	}
	for _, c := range []struct {
		what  string
		as    plan.Task
		now   time.Duration // since the Date
		same  bool
		other bool // of an hour later
	}{
		{"held", plan.Task{NotBefore: one.NotBefore}, -time.Hour, true, false},
		{"held until another instant", plan.Task{NotBefore: later.Date.Truncate(time.Millisecond)}, -time.Hour, false, true},
		{"queued", plan.Task{NotBefore: one.NotBefore}, time.Minute, true, false},
		{"running", plan.Task{Attempt: 1}, time.Minute, true, false},
		{"held for another attempt", plan.Task{Attempt: 1, NotBefore: later.Date}, time.Minute, true, false},
		{"of another instant that has come", plan.Task{Attempt: 1}, 2 * time.Hour, true, true},
	} {
		now := a.Date.Add(c.now)
		if same, other := a.Repeats(&c.as, now), later.Repeats(&c.as, now); same != c.same || other != c.other {
			t.Errorf("%s: %v and %v", c.what, same, other)
		}
	}
	q.ObjectRef, q.OnLost = nil, plan.OnLostFail
	bare := PointInTimeActivity{Date: a.Date}
	if task, err = bare.Task(&q, ""); err != nil || string(task.Params) != "{}" || task.Subject != "" || task.Retry != (plan.Retry{}) || task.OnLost != plan.OnLostDefault {
		t.Errorf("without a Parameter the task is %+v with %s (%v)", task, task.Params, err)
	}
}

func TestAChangeGivesATaskWhatTheActivitySays(t *testing.T) {
	q := typeQueue()
	task := plan.Task{ID: plan.TaskID{ID: plan.ID{2}}, Queue: q.ID, Params: json.RawMessage(`{"body":{"SongId":1},"timeout":"5s"}`)}
	task.Retry.Attempts = 9
	a := PointInTimeActivity{Call: Call{Parameter: json.RawMessage(`{"SongId":2}`)}}
	c, err := a.Change(&q, &task)
	if err != nil || string(c.Params) != `{"body":{"SongId":2},"timeout":"5s"}` || *c.Subject != "2" || c.NotBefore != nil || c.Attempts != 4 {
		t.Errorf("the change is %+v with %s (%v)", c, c.Params, err)
	}
	a.ActivityType = "acme.music.other"
	var m *Mistake
	if _, err = a.Change(&q, &task); !errors.As(err, &m) || m.Field != "ActivityType" {
		t.Errorf("another type is %v", err)
	}
}

func TestARecurringActivityIsASchedule(t *testing.T) {
	q := typeQueue()
	a := RecurringActivity{Hour: "4", Minute: "30", DayOfWeek: "1-5", Zone: "Europe/Berlin", Call: Call{ActivityType: q.Name, Parameter: json.RawMessage(`{"SongId":"x"}`)}}
	var s plan.Schedule
	if err := a.Apply(&q, &s.ScheduleSettings); err != nil {
		t.Fatal(err)
	}
	if s.Cron != "0 30 4 * * 1-5 *" || s.Zone != "Europe/Berlin" || s.Overlap != plan.OverlapAllow || s.Task.Subject != "x" || s.Task.Queue != q.Name {
		t.Errorf("the schedule is %+v", s.ScheduleSettings)
	}
	got, ok := RecurringOf(&s)
	want := a
	want.Second, want.Day, want.Month, want.Year = "0", "*", "*", "*"
	if !ok || !reflect.DeepEqual(got, want) {
		t.Errorf("it is read as %+v", got)
	}
	// A line that somebody wrote otherwise stays, and so do settings that the activity does not name.
	s.Cron, s.Overlap, s.Except, s.Task.Timeout = "30 4 * * 1-5", plan.OverlapSkip, []string{"2027-12-25"}, plan.Duration(time.Minute)
	got, _ = RecurringOf(&s)
	if err := got.Apply(&q, &s.ScheduleSettings); err != nil || s.Cron != "30 4 * * 1-5" || s.Overlap != plan.OverlapSkip || len(s.Except) != 1 || s.Task.Timeout == 0 {
		t.Errorf("the schedule is %+v (%v)", s.ScheduleSettings, err)
	}
	s.Cron, s.Every = "", plan.Duration(time.Hour)
	if _, ok = RecurringOf(&s); ok {
		t.Error("an interval is a recurring activity")
	}
}

func TestTheWayToFailIsAWord(t *testing.T) {
	for _, c := range []struct {
		task plan.Task
		want string
	}{
		{plan.Task{Status: plan.Failed, Detail: "404 Not Found from a.example"}, "404"},
		{plan.Task{Status: plan.Failed, Detail: "no song (of 17) (503 Service Unavailable from a.example)"}, "503"},
		{plan.Task{Status: plan.Failed, Detail: "301 Moved Permanently from a.example: it leads to http://b.example/ (a)"}, "error"},
		{plan.Task{Status: plan.Failed, Detail: "301 Moved Permanently from a.example: it leads to http://b.example/"}, "301"},
		{plan.Task{Status: plan.Failed, Detail: "404 Not Found from a.example", Reason: plan.ReasonTimeout}, "timeout"},
		{plan.Task{Status: plan.Failed, Detail: "connection refused"}, "error"},
		{plan.Task{Status: plan.Orphaned, Reason: plan.ReasonLost}, "lost"},
		{plan.Task{Status: plan.Succeeded, Detail: "404 x"}, ""},
	} {
		if got := Way(&c.task); got != c.want {
			t.Errorf("%q is %q, want %q", c.task.Detail, got, c.want)
		}
	}
	for word, ok := range map[string]bool{"404": true, "timeout": true, "999": false, "40": false, "odd": false} {
		if (CheckWay(word) == nil) != ok {
			t.Errorf("%q is a way: %v", word, !ok)
		}
	}
}

func TestTheLogTellsWhatWasSentAndWhatCameBack(t *testing.T) {
	entry := func(attempt int, text string) plan.LogEntry {
		return plan.LogEntry{Attempt: attempt, Stream: plan.System, Text: text}
	}
	log := []plan.LogEntry{
		entry(1, `{"method":"POST","url":"https://a/1","status":503,"ms":{"end":2.5},"headers":{"A":"b"},"body":"later","sent":"{\"a\":0}"}`+"\n"),
		entry(0, "retried by a person: attempts count from 1 again\n"),
		entry(1, `{"method":"POST","url":"https://b/1","error":"no route","ms":{"end":1}}`+"\n"),
		entry(2, `{"method":"GET","url":"https://b/1","status":200,"ms":{"end":1}}`+"\n"),
	}
	body := json.RawMessage(`{"a":1}`)
	want := []Try{
		{Try: 1, Sent: &Sent{Method: "POST", Uri: "https://a/1", Body: json.RawMessage(`{"a":0}`)}, CameBack: &CameBack{Status: 503, Headers: map[string]string{"A": "b"}, Body: "later"}, Ms: 2.5},
		{Text: "retried by a person: attempts count from 1 again"},
		{Try: 1, Sent: &Sent{Method: "POST", Uri: "https://b/1", Body: body}, Error: "no route", Ms: 1},
		{Try: 2, Sent: &Sent{Method: "GET", Uri: "https://b/1"}, CameBack: &CameBack{Status: 200}, Ms: 1},
		{Try: 3, Text: "its node died"},
	}
	lost := plan.Task{Status: plan.Orphaned, Reason: plan.ReasonLost, Detail: "its node died", Attempt: 3}
	if got := Tries(log, &lost, body); !reflect.DeepEqual(got, want) {
		text, _ := json.Marshal(got)
		t.Errorf("the tries are %s", text)
	}
}
