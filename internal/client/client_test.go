package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/backoff"
	"github.com/seed-1177d267/sluice/internal/api"
	v1 "github.com/seed-1177d267/sluice/internal/api/v1"
	"github.com/seed-1177d267/sluice/internal/closedport"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/storetest"
	"github.com/seed-1177d267/sluice/internal/store/storetest/model"
	"github.com/seed-1177d267/sluice/internal/submit"
	"github.com/seed-1177d267/sluice/plan"
)

func TestURLs(t *testing.T) {
	for _, c := range []struct{ url, base, shown string }{
		{"http://127.0.0.1:8080", "http://127.0.0.1:8080", "http://127.0.0.1:8080"},
		{"http://127.0.0.1:8080/", "http://127.0.0.1:8080", "http://127.0.0.1:8080"},
		{"https://example.com/sluice/api/v1/", "https://example.com/sluice", "https://example.com/sluice"},
		{"https://me:secret@example.com", "https://example.com", "https://example.com"},
		{"unix:/run/sluice.sock", "http://localhost", "unix:/run/sluice.sock"},
		{"unix:///run/sluice.sock", "http://localhost", "unix:/run/sluice.sock"},
		{"unix:sluice.sock", "http://localhost", "unix:sluice.sock"},
	} {
		got, err := New(Config{URL: c.url})
		if err != nil || got.base != c.base || got.String() != c.shown {
			t.Errorf("%s: %+v, %v", c.url, got, err)
		}
	}
	for _, bad := range []string{"", "example.com", "sqlite:x.db", "mongodb://h/d", "http://", "unix:", "http://h/?a=b", "http://me:secret@h:port", "me:secret@h"} {
		if _, err := New(Config{URL: bad}); !errors.Is(err, ErrURL) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := New(Config{URL: "http://h", Token: "a\nb"}); err == nil || strings.Contains(err.Error(), "a\nb") {
		t.Errorf("a token of two lines: %v", err)
	}
}

func TestNoPasswordIsShown(t *testing.T) {
	for in, want := range map[string]string{
		"https://me:secret@example.com/x": "https://me:***@example.com/x",
		"https://me:se@cret@example.com":  "https://me:***@example.com",
		"https://me@example.com":          "https://me@example.com",
		"http://h/a@b:c":                  "http://h/a@b:c",
		"unix:/a@b:c":                     "unix:/a@b:c",
		"http://me:sec/ret@h":             "http://me:***@h",
		"http://me:sec/r@et@h/x":          "http://me:***@h/x",
		"me:secret@h":                     "me:***@h",
		"h:8080":                          "h:8080",
	} {
		if got := Redact(in); got != want {
			t.Errorf("%s becomes %s, want %s", in, got, want)
		}
	}
}

// answering makes a client of a server that answers so.
func answering(t *testing.T, answer http.HandlerFunc) *Client {
	t.Helper()
	srv := httptest.NewServer(answer)
	t.Cleanup(srv.Close)
	c, err := New(Config{URL: strings.Replace(srv.URL, "http://", "http://me:secret@", 1)})
	if err != nil {
		t.Fatal(err)
	}
	c.pause = backoff.Retry{Initial: time.Microsecond}
	return c
}

func TestAnswersOfOthersAreTold(t *testing.T) {
	for _, c := range []struct {
		name    string
		answer  http.HandlerFunc
		is      error
		says    string
		unavail bool
	}{
		{"a proxy without a server", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(502) }, plan.ErrUnavailable, "does not answer: 502 Bad Gateway", true},
		{"something else", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) }, nil, "is no server of Sluice; it answers 404 Not Found", false},
		{"a page", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }, nil, "did not answer as a server of Sluice does", false},
		{"one that sends on", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://me:x@other/", http.StatusTemporaryRedirect)
		}, nil, "redirects to https://me:***@other/; name that server", false},
		{"nobody is let in", func(w http.ResponseWriter, _ *http.Request) {
			v1.WriteProblem(w, api.NewProblem(401, api.CodeUnauthorized, "this server wants to know who asks"))
		}, nil, "this server wants to know who asks; say who asks by --token-file FILE or SLUICE_TOKEN", false},
		{"not this one", func(w http.ResponseWriter, _ *http.Request) {
			v1.WriteProblem(w, api.NewProblem(403, api.CodeForbidden, "me may only read"))
		}, nil, "me may only read; give --token-file FILE", false},
		{"the store is away", func(w http.ResponseWriter, _ *http.Request) {
			v1.WriteProblem(w, api.ProblemOf(fmt.Errorf("reach db: %w", plan.ErrStoreGone)))
		}, plan.ErrStoreGone, "reach db", true},
	} {
		_, err := answering(t, c.answer).Plan(t.Context(), plan.PlanID{})
		if err == nil || !strings.Contains(err.Error(), c.says) || c.is != nil && !errors.Is(err, c.is) || errors.Is(err, plan.ErrUnavailable) != c.unavail {
			t.Errorf("%s: %v", c.name, err)
		}
		if strings.Contains(fmt.Sprint(err), "secret") {
			t.Errorf("%s: the password is told: %v", c.name, err)
		}
	}
}

// Another program may answer 200 with JSON of its own. That is no empty list, and no plan without a name.
func TestJSONOfOthersIsTold(t *testing.T) {
	asks := map[string]func(*Client) error{
		"plan":     func(c *Client) error { _, err := c.Plan(t.Context(), plan.PlanID{}); return err },
		"plans":    func(c *Client) error { _, err := c.Plans(t.Context(), store.PlanQuery{}); return err },
		"task":     func(c *Client) error { _, err := c.Task(t.Context(), plan.TaskID{}); return err },
		"queues":   func(c *Client) error { _, err := c.Queues(t.Context()); return err },
		"nodes":    func(c *Client) error { _, err := c.Instances(t.Context()); return err },
		"schedule": func(c *Client) error { _, err := c.ScheduleService().Show(t.Context(), "x"); return err },
		"a prune":  func(c *Client) error { _, _, err := c.Prune(t.Context(), 0, 1); return err },
	}
	for _, text := range []string{`{}`, `null`, ` {"data": [], "message": "welcome"} `} {
		c := answering(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) })
		for name, ask := range asks {
			if err := ask(c); err == nil || !strings.Contains(err.Error(), "did not answer as a server of Sluice does: its answer has none of the fields") {
				t.Errorf("%s: %s: %v", text, name, err)
			}
		}
	}
	empty := answering(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"plans": 0, "more": false, "queues": null}`)
	})
	for _, name := range []string{"queues", "a prune"} {
		if err := asks[name](empty); err != nil {
			t.Errorf("%s: an answer with nothing in it: %v", name, err)
		}
	}
}

// A server that does not end takes neither this program's memory nor its time.
func TestAnswersWithoutAnEnd(t *testing.T) {
	endless := answering(t, func(w http.ResponseWriter, _ *http.Request) {
		blank := bytes.Repeat([]byte(" "), 1<<16)
		for {
			if _, err := w.Write(blank); err != nil {
				return
			}
		}
	})
	endless.mostAnswer = 1 << 20
	if _, err := endless.Plan(t.Context(), plan.PlanID{}); err == nil || !strings.Contains(err.Error(), "did not answer as a server of Sluice does: it is longer than 1048576 bytes") {
		t.Errorf("an answer without an end: %v", err)
	}
	again := answering(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"plans":[],"tasks":[],"next":"6b02b2c02ac413acb300a75f"}`)
	})
	if _, err := again.Plans(t.Context(), store.PlanQuery{}); !errors.Is(err, errStandsStill) {
		t.Errorf("a list of plans without an end: %v", err)
	}
	if _, err := again.Tasks(t.Context(), store.TaskQuery{}); !errors.Is(err, errStandsStill) {
		t.Errorf("a list of tasks without an end: %v", err)
	}
}

func TestNobodyAnswers(t *testing.T) {
	address, _ := closedport.New(t)
	c, _ := New(Config{URL: "http://me:secret@" + address})
	c.pause = backoff.Retry{Initial: time.Microsecond}
	err := c.CancelPlan(t.Context(), plan.PlanID{}, false)
	if want := "the server http://" + address + " does not answer: connect: connection refused; start sluice serve there, or check the host and the port"; !errors.Is(err, plan.ErrUnavailable) || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err = c.Plans(ctx, store.PlanQuery{}); !errors.Is(err, context.Canceled) || errors.Is(err, plan.ErrUnavailable) {
		t.Errorf("given up: %v", err)
	}
}

// The server has cancelled the task: whatever becomes of its answer, the command has succeeded.
func TestWhatTheServerHasDoneDoesNotFailByTheEndOfItsAnswer(t *testing.T) {
	asked := 0
	c := answering(t, func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "begin")
	})
	if err := c.CancelTask(t.Context(), plan.TaskID{}); err != nil || asked != 1 {
		t.Errorf("asked %d times: %v", asked, err)
	}
	if _, err := c.Plan(t.Context(), plan.PlanID{}); !errors.Is(err, plan.ErrUnavailable) {
		t.Errorf("a plan whose answer is cut off: %v", err)
	}
}

func TestOnlyWhatMayBeDoneTwiceIsAskedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		do    func(*Client) error
		asked int64
	}{
		"a look":            {func(c *Client) error { _, err := c.Latest(t.Context()); return err }, 4},
		"tasks by their id": {func(c *Client) error { return c.AddTasks(t.Context(), plan.PlanID{}, []plan.Task{{}}) }, 4},
		"a cancellation":    {func(c *Client) error { return c.CancelTask(t.Context(), plan.TaskID{}) }, 1},
		"a retry":           {func(c *Client) error { _, err := c.Retry(t.Context(), plan.PlanID{}, rules.Ask{}); return err }, 1},
	} {
		var asked atomic.Int64
		cl := answering(t, func(http.ResponseWriter, *http.Request) { asked.Add(1); panic(http.ErrAbortHandler) })
		cl.http.Transport.(*http.Transport).DisableKeepAlives = true // net/http repeats a request on its own if its connection was used before
		if err := c.do(cl); !errors.Is(err, plan.ErrUnavailable) || asked.Load() != c.asked {
			t.Errorf("%s: asked %d times, want %d; %v", name, asked.Load(), c.asked, err)
		}
	}
}

// site is a server over an empty store, which counts requests by their path, and a client of it.
func site(t *testing.T, most int64) (*Client, func(path string) int64) {
	t.Helper()
	a := v1.New(v1.Config{Store: model.New(model.Options{})})
	counts := map[string]*atomic.Int64{"tasks": {}, "gzip": {}}
	c := answering(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "POST" && strings.HasSuffix(r.URL.Path, "/tasks") {
			counts["tasks"].Add(1)
			if r.ContentLength > most {
				w.WriteHeader(http.StatusRequestEntityTooLarge)
				return
			}
		}
		if r.Header.Get("Content-Encoding") == "gzip" {
			counts["gzip"].Add(1)
		}
		a.ServeHTTP(w, r)
	})
	return c, func(path string) int64 { return counts[path].Load() }
}

func tasks(n int, q plan.QueueID) []plan.Task {
	out := make([]plan.Task, n)
	for i := range out {
		out[i] = plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Name: fmt.Sprint("t", i), Queue: q}
		if i > 0 {
			out[i].Needs = []plan.TaskID{out[i-1].ID}
		}
	}
	return out
}

func TestManyTasksGoInSeveralRequests(t *testing.T) {
	for name, c := range map[string]struct {
		mostBody int
		proxy    int64
		requests int64
	}{
		"what the server takes":         {64 << 20, 1 << 30, 1},
		"what is larger than that":      {8000, 1 << 30, 4},
		"what a proxy before it limits": {64 << 20, 8000, 7}, // one, its halves, and theirs
	} {
		cl, count := site(t, c.proxy)
		cl.mostBody = c.mostBody
		q, err := cl.CreateQueue(t.Context(), plan.Queue{Name: "q", Plugin: "demo", Unlimited: true})
		if err != nil {
			t.Fatal(err)
		}
		p, err := cl.CreatePlan(t.Context(), plan.Plan{Name: "p"})
		if err != nil {
			t.Fatal(err)
		}
		all := tasks(200, q.ID)
		if err := cl.AddTasks(t.Context(), p.ID, all); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := cl.Tasks(t.Context(), store.TaskQuery{Plan: p.ID, Limit: 1000, Needs: true})
		if err != nil || len(got) != 200 || got[199].Needs[0] != all[198].ID || count("tasks") != c.requests {
			t.Errorf("%s: %d tasks by %d requests, want %d; %v", name, len(got), count("tasks"), c.requests, err)
		}
	}
}

func TestWhatGoesFarIsCompressed(t *testing.T) {
	cl, count := site(t, 1<<30)
	q, err := cl.CreateQueue(t.Context(), plan.Queue{Name: "q", Plugin: "demo", Unlimited: true})
	if err != nil {
		t.Fatal(err)
	}
	all := tasks(500, q.ID)
	cl.local = false
	cl.http.Transport.(*http.Transport).DisableCompression = false
	if err := cl.AddTasks(t.Context(), plan.PlanID{}, all); err != nil || count("gzip") != 1 {
		t.Fatalf("%v; %d requests are compressed, want 1", err, count("gzip"))
	}
	answer, err := cl.http.Get(cl.base + api.Root + "/tasks?limit=500")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); err != nil || !answer.Uncompressed || strings.Count(string(text), `"held"`) != 499 {
		t.Errorf("an answer of %d bytes, compressed: %v, %v", len(text), answer.Uncompressed, err)
	}
}

func TestASocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: v1.New(v1.Config{Store: model.New(model.Options{})})}
	go func() { _ = srv.Serve(l) }()
	defer srv.Close()
	c, err := New(Config{URL: "unix:" + path})
	if err != nil {
		t.Fatal(err)
	}
	if now, err := c.Now(t.Context()); err != nil || time.Since(now) > time.Minute {
		t.Errorf("%v, %v", now, err)
	}
}

func TestWhoWaitsIsToldAtOnce(t *testing.T) {
	s := overMemory().Open(t, storetest.Options{Now: time.Now}).(*composite)
	defer s.Close()
	mine, err := s.CreatePlan(t.Context(), plan.Plan{Name: "mine"})
	if err != nil {
		t.Fatal(err)
	}
	cursor, err := s.Latest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if found, _, err := s.WaitChanges(t.Context(), mine.ID, cursor, 100, 100*time.Millisecond); err != nil || len(found) != 0 || time.Since(began) < 100*time.Millisecond {
		t.Fatalf("nothing changed: %v, %v after %v", found, err, time.Since(began))
	}
	type told struct {
		found []store.Change
		err   error
	}
	done := make(chan told)
	go func() {
		found, _, err := s.WaitChanges(t.Context(), mine.ID, cursor, 100, time.Minute)
		done <- told{found, err}
	}()
	time.Sleep(20 * time.Millisecond) // either order is right; this one is the rarer
	if _, err := s.CreatePlan(t.Context(), plan.Plan{Name: "other"}); err != nil {
		t.Fatal(err)
	}
	if err := s.Ready(t.Context(), mine.ID); err != nil {
		t.Fatal(err)
	}
	select {
	case is := <-done:
		if is.err != nil || len(is.found) == 0 || is.found[0].Plan != mine.ID || is.found[len(is.found)-1].State != plan.PlanSucceeded {
			t.Errorf("told of %+v, %v", is.found, is.err)
		}
	case <-time.After(time.Minute):
		t.Error("the wait does not end")
	}
}

func TestANodeNeedsTheStore(t *testing.T) {
	c, _ := New(Config{URL: "http://me:secret@127.0.0.1:1"})
	err := c.Register(t.Context(), plan.Instance{})
	if want := "a node needs the store itself, and http://127.0.0.1:1 is a server before one: give --store, or set SLUICE_STORE"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// picky is a store that keeps no params of a task of more than two MiB, as MongoDB keeps none of more than sixteen.
type picky struct{ *model.Store }

func (p picky) Fits(_ context.Context, _ plan.Plan, tasks []plan.Task) error {
	const most = 2 << 20
	for i := range tasks {
		if len(tasks[i].Params) > most {
			return fmt.Errorf("task %q of a plan (%v): %w", tasks[i].Name, !tasks[i].Plan.IsZero(), plan.ErrTooLarge)
		}
	}
	return nil
}

// A task that does not fit into the store behind a server is refused before anything is made, in
// the store's words.
func TestWhatDoesNotFitBehindAServerIsRefusedAtOnce(t *testing.T) {
	st := picky{model.New(model.Options{})}
	c := serve(t, nil, func(store.Hook) store.Store { return st })
	defer c.Close()
	text := func(n int) json.RawMessage { return json.RawMessage(fmt.Sprintf("%q", strings.Repeat("x", n))) }
	spec := func(ofPlan, ofTask int) *plan.Spec {
		s := &plan.Spec{Name: "p", Params: map[string]json.RawMessage{"x": text(ofPlan)}}
		for i := range 1500 { // more than are handed over at once: the last is the one that is too large
			s.Tasks = append(s.Tasks, plan.TaskSpec{Name: fmt.Sprint("t", i), Plugin: "demo"})
		}
		s.Tasks[1499].Params = json.RawMessage(`{"x":` + string(text(ofTask)) + `}`)
		return s
	}
	for _, one := range []*plan.Spec{spec(1, 3<<20)} {
		_, direct := submit.Submit(t.Context(), st, one, false)
		_, far := submit.Submit(t.Context(), c.Client, one, false)
		if !errors.Is(far, plan.ErrTooLarge) || direct == nil || far.Error() != direct.Error() {
			t.Errorf("the server says %v, the store %v", far, direct)
		}
	}
	plans, err := st.Plans(t.Context(), store.PlanQuery{})
	queues, err2 := st.Queues(t.Context())
	if len(plans)+len(queues) > 0 || err != nil || err2 != nil {
		t.Errorf("there are %v and %v; %v, %v", plans, queues, err, err2)
	}
	if _, err := submit.Submit(t.Context(), c.Client, spec(1<<19, 3<<19), false); err != nil {
		t.Error(err)
	}
}

func TestTLSThatIsNotRightSaysWhatToDo(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.NotFoundHandler())
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	t.Cleanup(srv.Close)
	for url, want := range map[string]string{srv.URL: "SSL_CERT_FILE", strings.Replace(srv.URL, "https:", "http:", 1): "is asked by https://"} {
		c, err := New(Config{URL: url})
		if err != nil {
			t.Fatal(err)
		}
		c.pause = backoff.Retry{Initial: time.Microsecond}
		if _, err = c.Plans(t.Context(), store.PlanQuery{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", url, err, want)
		}
	}
}

// A patient caller outlives a restart of the server, and learns that it is away. An impatient
// caller fails.
func TestWhoIsPatientOutlivesARestart(t *testing.T) {
	address, free := closedport.New(t)
	c, _ := New(Config{URL: "http://" + address})
	c.pause = backoff.Retry{Initial: time.Millisecond, Max: 5 * time.Millisecond}
	if _, err := c.Latest(t.Context()); !errors.Is(err, plan.ErrUnavailable) {
		t.Fatalf("nobody answers: %v", err)
	}
	away := make(chan error, 10)
	patient := func(span time.Duration) context.Context {
		return Patient(t.Context(), span, func(err error) { away <- err })
	}
	if _, err := c.Latest(patient(20 * time.Millisecond)); !errors.Is(err, plan.ErrUnavailable) || len(away) != 1 {
		t.Errorf("nobody answers for as long as was waited: %v, told %d times", err, len(away))
	}
	<-away
	done := make(chan error)
	go func() {
		_, err := c.Latest(patient(time.Minute))
		done <- err
	}()
	if err := <-away; !errors.Is(err, plan.ErrUnavailable) {
		t.Errorf("told: %v", err)
	}
	time.Sleep(100 * time.Millisecond) // as long as many more tries than a few
	free()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatalf("the server cannot come again where it was: %v", err)
	}
	var asked atomic.Int64
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) <= 5 { // its store is not there yet
			v1.WriteProblem(w, api.NewProblem(503, "unavailable", "the request was given up"))
			return
		}
		_, _ = io.WriteString(w, `{"changes":[],"cursor":"1"}`)
	})}
	defer srv.Close()
	go func() { _ = srv.Serve(l) }()
	if err := <-done; err != nil {
		t.Errorf("after the restart: %v", err)
	}
}
