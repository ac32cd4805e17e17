package dci_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/api/disbatch"
	v1 "github.com/seed-1177d267/sluice/internal/api/v1"
	"github.com/seed-1177d267/sluice/internal/auth"
	"github.com/seed-1177d267/sluice/internal/config"
	"github.com/seed-1177d267/sluice/internal/dci"
	"github.com/seed-1177d267/sluice/internal/secret"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/open"
	"github.com/seed-1177d267/sluice/internal/store/storetest/model"
	"github.com/seed-1177d267/sluice/internal/submit"
	"github.com/seed-1177d267/sluice/plan"
)

// The secrets that are in the store, in every place that values get to. No answer may hold either.
const (
	password = "hunter22-in-the-store"
	token    = "t0ken-of-a-parent"
)

// A secretStore is a store in which a queue keeps params secret, and what is in it.
type secretStore struct {
	store.Store
	plan, plain, failed string // ids
	queue               plan.Queue
	empty               store.Cursor // before all of it
}

// seed puts plans and tasks with secrets into a store. The secrets are in params at any depth, in a
// plan's params and so in tasks of other queues, in outputs and so in the params of children, in
// details and in logs.
func seed(t *testing.T, st store.Store) *secretStore {
	t.Helper()
	return seedAs(t, st, []string{"*token", "password"}, nil)
}

// seedOfPlan is seed where the plan alone names what is secret, and not its queue.
func seedOfPlan(t *testing.T, st store.Store) *secretStore {
	t.Helper()
	return seedAs(t, st, nil, []string{"*token", "password"})
}

func seedAs(t *testing.T, st store.Store, ofQueue, ofPlan []string) *secretStore {
	t.Helper()
	ctx := t.Context()
	no := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	empty, err := st.Latest(ctx)
	no(err)
	q, err := st.CreateQueue(ctx, plan.Queue{Name: "imap", Plugin: "demo", Unlimited: true, QueueSettings: plan.QueueSettings{Secrets: ofQueue}})
	no(err)
	spec := plan.New("nightly")
	spec.Secrets = ofPlan
	spec.Params = map[string]json.RawMessage{"Password": json.RawMessage(`"` + password + `"`), "domain": json.RawMessage(`"example.com"`)}
	spec.Add(plan.TaskSpec{Name: "login", Queue: "imap", Plugin: "demo", Params: json.RawMessage(
		`{"user":{"name":"ann","accounts":[{"PASSWORD":"` + password + `"}]},"line":"login --password ` + password + `"}`)})
	if ofPlan != nil { // where a value is known from the plan's params
		spec.Add(plan.TaskSpec{Name: "by-another-name", Plugin: "demo", Params: json.RawMessage(`{"pass":"${{ params.Password }}","words":["x","${{ params.Password }}"]}`)})
	}
	spec.Add(plan.TaskSpec{Name: "report", Plugin: "exec", Needs: []string{"login"}, Params: json.RawMessage(`{"run":["report","${{ params.Password }}"]}`)})
	spec.Add(plan.TaskSpec{Name: "each", Plugin: "exec", Needs: []string{"login"}, Params: json.RawMessage(`{"run":["one"]}`),
		Foreach: &plan.Foreach{List: json.RawMessage(`[{"user":"ann","password":"` + password + `"}]`)}})
	p, err := submit.Submit(ctx, st, spec, false)
	no(err)
	s := &secretStore{Store: st, plan: p.ID.String(), queue: q, empty: empty}
	said := password // by a task of no plan
	if ofQueue == nil {
		said = "nothing secret"
	}
	tasks := []plan.Task{
		{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Queue: q.ID, Params: json.RawMessage(`{"password":"` + said + `","domain":"example.com"}`)},
	}
	s.plain = tasks[0].ID.String()
	no(st.AddTasks(ctx, plan.PlanID{}, tasks))
	n := plan.Instance{ID: plan.InstanceID{ID: plan.NewID(time.Now())}, Node: "n1", Threads: 9, Lease: time.Minute, Plugins: []string{"demo", "exec"}}
	no(st.Register(ctx, n))
	for range 6 {
		turned, err := st.Turn(ctx, protocol.Turn{Instance: n.ID, Slots: 9, Start: true, Budget: 1000, Plugins: n.Plugins})
		no(err)
		var ended []protocol.Ending
		for _, c := range turned.Claimed {
			password := password
			if c.Plan.IsZero() {
				password = said
			}
			e := protocol.Ending{
				Claim: c.Claim, Status: plan.Succeeded, Output: json.RawMessage(`{"session":{"imap_token":"` + token + `"},"said":"` + password + `"}`),
				Log: []plan.LogEntry{{At: time.Now(), Attempt: 1, Stream: plan.Stdout, Text: "it is " + password + "\n"}},
			}
			if c.Name == "report" || c.Name == "" {
				e.Status, e.Output, e.Detail = plan.Failed, nil, "cannot log in with "+password
			}
			if c.Name == "report" {
				s.failed = c.Task.String()
				if !strings.Contains(string(c.Params), password) || !strings.Contains(string(c.Params), token) {
					t.Fatalf("report is run with %s", c.Params)
				}
			}
			if kept, ok := st.(store.Results); ok && c.Plan.IsZero() {
				text := strings.Repeat("x", 40_000) + password + "\n"
				no(kept.PutResults(ctx, c.Claim, io.NewSectionReader(strings.NewReader(text), 0, int64(len(text))), nil, protocol.GFSAuto))
			}
			ended = append(ended, e)
		}
		_, err = st.Turn(ctx, protocol.Turn{Instance: n.ID, Ended: ended, Budget: 1000, Plugins: n.Plugins})
		no(err)
	}
	if s.failed == "" {
		t.Fatal("report did not run")
	}
	return s
}

// onStores runs a test on a seeded store of each driver that is there.
func onStores(t *testing.T, test func(*testing.T, *secretStore)) {
	t.Helper()
	onStoresAs(t, seed, test)
}

func onStoresAs(t *testing.T, seed func(*testing.T, store.Store) *secretStore, test func(*testing.T, *secretStore)) {
	uris := map[string]string{"sqlite": "sqlite:" + filepath.Join(t.TempDir(), "sluice.db")}
	if server := os.Getenv("SLUICE_TEST_MONGODB"); server != "" {
		uris["mongodb"] = fmt.Sprintf("%s/sluice-secrets-%d", strings.TrimSuffix(server, "/"), time.Now().UnixNano())
	}
	t.Run("model", func(t *testing.T) { test(t, seed(t, model.New(model.Options{}))) })
	for name, uri := range uris {
		t.Run(name, func(t *testing.T) {
			st, err := open.Open(t.Context(), uri)
			if err != nil {
				t.Fatal(err)
			}
			defer st.Close()
			test(t, seed(t, st))
		})
	}
}

// A secretServer serves such a store, with all of Disbatch's routes.
type secretServer struct {
	t    *testing.T
	url  string
	gets []string // paths of /api/v1 that the test reads
	logs syncBuffer
}

func (s *secretStore) serve(t *testing.T) *secretServer {
	t.Helper()
	out := &secretServer{t: t}
	log := slog.New(slog.NewJSONHandler(&out.logs, nil))
	guard, err := auth.New(auth.Config{Listen: "127.0.0.1:0", LoginPath: "/ui/login", Home: "/ui/", Log: log})
	if err != nil {
		t.Fatal(err)
	}
	old, err := disbatch.New(disbatch.Config{
		Store: s.Store, Log: log, Conf: &config.Config{Plugins: []string{"demo"}, WebExtensions: []string{"Disbatch::Web::Tasks", "Disbatch::Web::V3"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	a := v1.New(v1.Config{Store: s.Store, Log: log})
	server, _ := start(t, dci.Config{Store: s.Store, API: a, Disbatch: old, Guard: guard, Log: log}, "127.0.0.1:0")
	doc, err := a.OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	var parsed struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(doc, &parsed); err != nil {
		t.Fatal(err)
	}
	for path, methods := range parsed.Paths {
		if methods["get"] != nil {
			out.gets = append(out.gets, path)
		}
	}
	slices.Sort(out.gets)
	out.url = server.URL()
	return out
}

// ask makes a request and returns its answer, or the part of it that comes in a second. It fails
// the test if the answer holds a secret.
func (s *secretServer) ask(method, path, kind, body string) (status int, text string) {
	s.t.Helper()
	ctx, done := context.WithTimeout(s.t.Context(), 2*time.Minute)
	defer done()
	r, err := http.NewRequestWithContext(ctx, method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer a.Body.Close()
	if strings.HasPrefix(a.Header.Get("Content-Type"), "text/event-stream") {
		time.AfterFunc(time.Second, done) // it has no end
	}
	answer, _ := io.ReadAll(a.Body)
	for _, secret := range []string{password, token} {
		if strings.Contains(string(answer), secret) && !strings.Contains(body, secret) {
			at := strings.Index(string(answer), secret)
			s.t.Errorf("%s %s shows %s: …%s", method, path, secret, answer[max(0, at-200):at+len(secret)])
		}
	}
	return a.StatusCode, string(answer)
}

func TestSecretsAreInNoAnswer(t *testing.T) {
	onStores(t, func(t *testing.T, st *secretStore) {
		noAnswerHasThem(t, st)
		s := st.serve(t)
		if _, text := s.ask("GET", "/tasks/"+st.plain, "", ""); !strings.Contains(text, `"password" : "***"`) && !strings.Contains(text, `"password":"***"`) {
			t.Errorf("GET /tasks/%s: %s", st.plain, text)
		}
	})
}

func TestSecretsOfAPlanAreInNoAnswer(t *testing.T) {
	onStoresAs(t, seedOfPlan, func(t *testing.T, st *secretStore) {
		noAnswerHasThem(t, st)
		s := st.serve(t)
		if _, text := s.ask("GET", "/tasks/"+st.plain, "", ""); !strings.Contains(text, "nothing secret") {
			t.Errorf("what is not of the plan: %s", text)
		}
		if _, text := s.ask("GET", "/api/v1/plans/"+st.plan, "", ""); !strings.Contains(text, `"Password":"***"`) || !strings.Contains(text, `"secrets":["*token","password"]`) {
			t.Errorf("the plan: %s", text)
		}
		for _, fields := range []string{`{}`, `{"params":1}`, `{"_id":0}`, `{"hassecret":0}`, `{"hassecret.x":1}`, `{"params.pass":1}`, `{"params.pass":1,"_id":0}`, `{"params.words":1,"_id":0}`} {
			body := `{"options":{"projection":` + fields + `},"filter":{"status":1},"terse":0}`
			if status, text := s.ask("POST", "/tasks/search", "application/json", body); status != 200 || strings.Contains(text, "hassecret") || len(text) < 20 {
				t.Errorf("documents with %s: %d %s", fields, status, text)
			}
		}
	})
}

// noAnswerHasThem asks all there is to be read.
func noAnswerHasThem(t *testing.T, st *secretStore) {
	t.Helper()
	s := st.serve(t)
	masked := 0
	for i, id := range []string{st.failed, st.plain} {
		fill := strings.NewReplacer("{plan}", st.plan, "{task}", id, "{queue}", st.queue.ID.String(), "{node}", "n1", "{stream}", "stdout")
		for _, path := range s.gets {
			query := []string{""}
			switch {
			case i > 0 && !strings.Contains(path, "{task}"):
				continue // it was asked
			case strings.HasSuffix(path, "/tasks"):
				query = append(query, "?with=needs,params,output", "?with=output")
			case strings.HasSuffix(path, "/changes"):
				query = append(query, "?after="+url.QueryEscape(string(st.empty)))
			}
			for _, q := range query {
				status, text := s.ask("GET", fill.Replace(path)+q, "", "")
				if status >= 500 && status != http.StatusNotImplemented {
					t.Errorf("GET %s%s: %d %s", path, q, status, text)
				}
				masked += strings.Count(text, secret.Hidden)
			}
		}
	}
	if masked < 20 {
		t.Errorf("only %d secrets were in the answers, if they were hidden at all", masked)
	}
	for _, path := range []string{
		"/", "/info", "/nodes", "/nodes/n1", "/plugins", "/queues", "/queues/imap", "/tasks?queue=" + st.queue.ID.String(), "/tasks?id=" + st.plain + "&.full=1",
		"/tasks?id=" + st.plain + `&.fields=["stdout"]`, "/tasks?id=" + st.plain + `&.fields=["stdout","params.domain"]`, "/tasks/" + st.plain, "/tasks/" + st.failed,
		"/balance", "/monitoring", "/scheduler-json", "/queue-prototypes-json", "/metrics", "/ui/", "/ui/plans/" + st.plan, "/ui/tasks/" + st.failed, "/ui/queues",
	} {
		s.ask("GET", path, "", "")
	}
	for _, body := range []string{
		`{}`, `{"filter":{"queue":"` + st.queue.ID.String() + `"},"terse":0}`, `{"filter":{"params.domain":"example.com"},"terse":0}`,
		`{"filter":{"status":2},"options":{"projection":{"stdout":1}},"terse":0}`, `{"filter":{"status":2},"options":{"projection":{"stdout":1,"_id":0}},"terse":0}`,
	} {
		if status, text := s.ask("POST", "/tasks/search", "application/json", body); status != 200 {
			t.Errorf("POST /tasks/search %s: %d %s", body, status, text)
		}
	}
	s.ask("POST", "/search-tasks-json", "application/json", `{"filter":{}}`)
	for _, secret := range []string{password, token} {
		if strings.Contains(s.logs.String(), secret) {
			t.Errorf("%s is in the server's log:\n%s", secret, s.logs.String())
		}
	}
}

func TestNoSearchTellsWhatASecretIs(t *testing.T) {
	onStores(t, func(t *testing.T, st *secretStore) {
		s := st.serve(t)
		count := func(filter string) string {
			t.Helper()
			_, text := s.ask("POST", "/tasks/search", "application/json", `{"count":1,"filter":`+filter+`}`)
			return strings.Join(strings.Fields(text), "")
		}
		if got := count(`{"params.domain":"example.com","queue":"` + st.queue.ID.String() + `"}`); got != `{"count":1}` {
			t.Errorf("what is no secret: %s", got)
		}
		stdout := strings.Repeat("x", 40_000)
		for _, is := range []string{password, "something else"} { // nothing tells them apart
			for filter, want := range map[string]string{
				`{"params.password":"` + is + `"}`:                                `{"error":"params.passwordcannotbesearched:itisasecret"}`,
				`{"params.user.accounts.0.PASSWORD":"` + is + `"}`:                `{"error":"params.user.accounts.0.PASSWORDcannotbesearched:itisasecret"}`,
				`{"params.line":"login --password ` + is + `"}`:                   `{"count":0}`,
				`{"stdout":"` + stdout + is + `\n"}`:                              `{"count":0}`,
				`{"queue":"` + st.queue.ID.String() + `","params.password":null}`: `{"error":"params.passwordcannotbesearched:itisasecret"}`,
			} {
				if got := count(filter); got != want {
					t.Errorf("%.100s is answered with %s, want %s", filter, got, want)
				}
			}
			object := `{"params":{"password":"` + is + `","domain":"example.com"}}`
			if got := count(object); !strings.Contains(got, "error") {
				t.Errorf("%s is answered with %s", object, got)
			}
			for _, filter := range []string{`{"params.password":"` + is + `"}`, `{"params.line":"login --password ` + is + `"}`} {
				if _, text := s.ask("POST", "/search-tasks-json", "application/json", `{"count":1,"filter":`+filter+`}`); strings.HasPrefix(text, "[1,1") {
					t.Errorf("the old search for %s finds %s", filter, text)
				}
			}
		}
		// Tasks that are made of documents are made of their hidden form.
		for _, of := range []string{"tasks", "plans", "logs"} {
			s.ask("POST", "/tasks", "application/json", `{"queue":"imap","collection":"`+of+`","filter":{},"params":{"copy":"document.params","text":"document.text"}}`)
		}
		found, err := st.Tasks(t.Context(), store.TaskQuery{NoPlan: true, Params: true})
		if err != nil {
			t.Fatal(err)
		}
		for i := range found {
			if found[i].ID.String() != st.plain && strings.Contains(string(found[i].Params), password) {
				t.Errorf("a task was made with %s", found[i].Params)
			}
		}
	})
}

func TestNoSearchTellsWhatASecretOfAPlanIs(t *testing.T) {
	onStoresAs(t, seedOfPlan, func(t *testing.T, st *secretStore) {
		s := st.serve(t)
		search := func(body string) string {
			t.Helper()
			status, text := s.ask("POST", "/tasks/search", "application/json", body)
			if status != 200 {
				t.Errorf("%s: %d %s", body, status, text)
			}
			return strings.Join(strings.Fields(text), "")
		}
		if got := search(`{"count":1,"filter":{"params.domain":"example.com"}}`); got != `{"count":1}` { // that of no plan
			t.Errorf("what is no secret: %s", got)
		}
		for _, filter := range []string{
			`{"params.Password":"%s"}`, `{"params.pass":"%s"}`, `{"params.words":"%s"}`, `{"params.run":"%s"}`, `{"params.line":"login --password %s"}`, `{"params":{"pass":"%[1]s","words":["x","%[1]s"]}}`,
			`{"params.needs.login.session.imap_token":"` + token + `"}`,
		} {
			for _, is := range []string{password, "something else"} { // nothing tells them apart
				filter := strings.NewReplacer("%s", is, "%[1]s", is).Replace(filter)
				if got := search(`{"count":1,"filter":` + filter + `}`); got != `{"count":0}` {
					t.Errorf("%s is answered with %s", filter, got)
				}
				if got := search(`{"options":{"limit":1},"filter":` + filter + `}`); strings.Contains(got, `"_id"`) || strings.Contains(got, `"id"`) {
					t.Errorf("%s finds %s", filter, got)
				}
			}
		}
		for _, of := range []string{"tasks", "plans", "logs", "work", "items"} {
			s.ask("POST", "/tasks", "application/json", `{"queue":"imap","collection":"`+of+`","filter":{},"params":{"copy":"document.params","text":"document.text"}}`)
		}
		found, err := st.Tasks(t.Context(), store.TaskQuery{NoPlan: true, Params: true})
		if err != nil {
			t.Fatal(err)
		}
		for i := range found {
			if strings.Contains(string(found[i].Params), password) {
				t.Errorf("a task was made with %s", found[i].Params)
			}
		}
	})
}

func TestWhatIsAddedToAPlanKeepsItsSecrets(t *testing.T) {
	onStoresAs(t, seedOfPlan, func(t *testing.T, st *secretStore) {
		s := st.serve(t)
		empty := func(id string) string {
			return `{"tasks":[{"id":"` + id + `","name":"t-` + id + `","queue_id":"` + st.queue.ID.String() + `","params":{"password":"` + password + `","x":"` + password + `"}}]}`
		}
		id := plan.NewID(time.Now())
		p := plan.NewID(time.Now()).String()
		for path, body := range map[string]string{"/api/v1/plans/" + p: `{"name":"made","secrets":["PASSWORD"],"params":{"password":"` + password + `"}}`} {
			if status, text := s.ask("PUT", path, "application/json", body); status != 200 || strings.Contains(text, password) {
				t.Fatalf("PUT %s: %d %s", path, status, text)
			}
		}
		if status, text := s.ask("POST", "/api/v1/plans/"+p+"/tasks", "application/json", empty(id.String())); status != 204 {
			t.Fatalf("a task is added: %d %s", status, text)
		}
		if _, text := s.ask("GET", "/api/v1/tasks/"+id.String(), "", ""); strings.Contains(text, password) || !strings.Contains(text, `"secrets":["password"]`) || !strings.Contains(text, `"x":"***"`) {
			t.Errorf("it is shown as %s", text)
		}
		// A retry takes nothing off, and a mask is no value.
		retry := func(params string) (int, string) {
			return s.ask("POST", "/api/v1/plans/"+st.plan+"/retry-with", "application/json", `{"tasks":["`+st.failed+`"],"replace":[{"id":"`+st.failed+`","queue_id":"`+
				st.queue.ID.String()+`","params":{"password":"`+params+`"}}],"params":{"Password":"`+params+`"}}`)
		}
		if status, text := retry(secret.Hidden); status != 422 || !strings.Contains(text, `"code":"secret"`) {
			t.Errorf("with a mask: %d %s", status, text)
		}
		if status, text := retry("another-hunter22"); status != 200 {
			t.Errorf("with another value: %d %s", status, text)
		}
		for _, path := range []string{"/api/v1/tasks/" + st.failed, "/api/v1/plans/" + st.plan} {
			a, err := http.Get(s.url + path) // the value that was replaced is in outputs of before, and hidden by its name alone
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(a.Body)
			if a.Body.Close(); strings.Contains(string(text), "another-hunter22") || !strings.Contains(string(text), `assword":"***"`) {
				t.Errorf("after a retry %s is %s", path, text)
			}
		}
	})
}

func TestNoMaskTakesTheSecretsPlace(t *testing.T) {
	onStores(t, func(t *testing.T, st *secretStore) {
		s := st.serve(t)
		id := plan.NewID(time.Now()).String()
		for _, c := range []struct{ method, path, body string }{
			{"POST", "/api/v1/tasks", `{"tasks":[{"id":"` + id + `","queue_id":"` + st.queue.ID.String() + `","params":{"in":[{"password":"***"}]}}]}`},
			{"PUT", "/api/v1/plans/" + id, `{"name":"other","params":{"password":"***"}}`},
			{"POST", "/api/v1/plans/" + st.plan + "/retry-with", `{"tasks":["` + st.failed + `"],"params":{"password":"***"}}`},
			{"POST", "/api/v1/plans/" + st.plan + "/retry-with", `{"tasks":["` + st.failed + `"],"replace":[{"id":"` + st.failed + `","queue_id":"` +
				st.queue.ID.String() + `","params":{"password":"***"}}]}`},
		} {
			if status, text := s.ask(c.method, c.path, "application/json", c.body); status != 422 || !strings.Contains(text, `"code":"secret"`) {
				t.Errorf("%s %s %s: %d %s", c.method, c.path, c.body, status, text)
			}
		}
		if status, text := s.ask("POST", "/tasks", "application/json", `{"queue":"imap","params":[{"password":"***"}]}`); status != 400 {
			t.Errorf("POST /tasks: %d %s", status, text)
		}
		// A caller that leaves secrets out of the settings removes none, and neither does one
		// without special rights.
		if status, text := s.ask("PUT", "/api/v1/queues/imap", "application/json", `{"threads":3}`); status != 200 || !strings.Contains(text, `"secrets":["*token","password"]`) {
			t.Errorf("set without secrets: %d %s", status, text)
		}
		if status, text := s.ask("DELETE", "/queues/imap", "", ""); status != 400 || !strings.Contains(text, "secret") {
			t.Errorf("the queue is deleted: %d %s", status, text)
		}
	})
}

func TestOnlyAnAdministratorHasSecretsShown(t *testing.T) {
	url, tokens, _ := guarded(t)
	ask := func(method, path string, scope auth.Scope, body string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, url+"/api/v1/queues"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+tokens[scope])
		r.Header.Set("Content-Type", "application/json")
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Body.Close()
		text, _ := io.ReadAll(a.Body)
		return a.StatusCode, string(text)
	}
	for _, c := range []struct {
		method, path string
		scope        auth.Scope
		body         string
		status       int
	}{
		{"POST", "", auth.Submit, `{"name":"q","plugin":"demo","threads":1,"secrets":["Password"]}`, 201},
		{"PUT", "/q", auth.Operate, `{"threads":2,"secrets":["password","*_key"]}`, 200},
		{"PUT", "/q", auth.Operate, `{"threads":2,"secrets":["*_key"]}`, 403},
		{"PUT", "/q", auth.Operate, `{"threads":2,"secrets":[]}`, 403},
		{"PUT", "/q", auth.Operate, `{"threads":2,"secrets":[" x"]}`, 422},
		{"PUT", "/q", auth.Operate, `{"threads":3}`, 200},
		{"PUT", "/q", auth.Operate, `{"threads":3,"defaults":{"timeout":"1m"}}`, 200},
		{"PUT", "/q", auth.Operate, `{"threads":3,"defaults":{"params":{"env":{"PATH":"/tmp"}},"timeout":"1m"}}`, 403},
		{"POST", "", auth.Submit, `{"name":"r","plugin":"demo","threads":1,"defaults":{"params":{"a":1}}}`, 201},
		{"PUT", "/r", auth.Operate, `{"threads":3,"defaults":{"params":{"a":1}}}`, 200},
		{"PUT", "/r", auth.Operate, `{"threads":3,"defaults":null}`, 403},
		{"POST", "", auth.Submit, `{"name":"s","plugin":"demo","threads":1,"defaults":{"params":{"x":[{"PassWord":1}]}}}`, 422},
	} {
		if status, text := ask(c.method, c.path, c.scope, c.body); status != c.status {
			t.Errorf("%s %s of %s: %d %s, want %d", c.method, c.body, c.scope, status, text, c.status)
		}
	}
	if _, text := ask("GET", "/q", auth.Read, ""); !strings.Contains(text, `"secrets":["*_key","password"]`) {
		t.Errorf("the queue is %s", text)
	}
}
