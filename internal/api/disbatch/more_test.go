package disbatch_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/seed-1177d267/sluice/internal/api/disbatch"
	"github.com/seed-1177d267/sluice/internal/auth"
	"github.com/seed-1177d267/sluice/internal/config"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/storetest/model"
	"github.com/seed-1177d267/sluice/plan"
)

// want makes a request and wants an answer that holds some text.
func want(t *testing.T, h http.Handler, method, target, kind, body string, code int, holds string) string {
	t.Helper()
	w := send(t, h, method, target, kind, body)
	if w.Code != code || !strings.Contains(w.Body.String(), holds) {
		t.Errorf("%s %s %.80s: %d %.400s\nwant %d, %s", method, target, body, w.Code, w.Body, code, holds)
	}
	return w.Body.String()
}

const asJSON = "application/json"

func TestPagesAndFiles(t *testing.T) {
	h := serve(t, model.New(model.Options{}), conf)
	for path, kind := range map[string]string{
		"/": "text/html", "/js/queues.js": "application/javascript", "/js/balance.js": "application/javascript", "/css/style.css": "text/css",
	} {
		w := send(t, h, "GET", path, "", "")
		if got := w.Header().Get("Content-Type"); w.Code != 200 || got != kind || w.Body.Len() == 0 {
			t.Errorf("GET %s: %d, %s, %d bytes; want %s", path, w.Code, got, w.Body.Len(), kind)
		}
	}
	for _, path := range []string{"/js", "/js/", "/nothing", "/nodes/", "/queues/", "/js/..%2f..%2fpage.html", "/%00"} {
		if w := send(t, h, "GET", path, "", ""); w.Code != 404 {
			t.Errorf("GET %s: %d", path, w.Code)
		}
	}
	want(t, h, "PUT", "/tasks", "", "", 405, "")
	want(t, h, "POST", "/nothing", "", "", 404, "")
	want(t, h, "POST", "/nodes", "", "", 404, "")
	want(t, h, "DELETE", "/queues", "", "", 404, "")
	want(t, h, "GET", "/queues/a/b", "", "", 404, "name a/b")
}

func TestWebRoot(t *testing.T) {
	root, outside := t.TempDir(), filepath.Join(t.TempDir(), "secret")
	for path, text := range map[string]string{filepath.Join(root, "js.js"): "theirs", filepath.Join(root, "x.bin"): "x", outside: "secret"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(root, "link")); err != nil && runtime.GOOS != "windows" {
		t.Fatal(err)
	}
	h, err := disbatch.New(disbatch.Config{Store: model.New(model.Options{}), Conf: &config.Config{WebRoot: root}})
	if err != nil {
		t.Fatal(err)
	}
	want(t, h, "GET", "/js.js", "", "", 200, "theirs")
	want(t, h, "GET", "/js/queues.js", "", "", 200, "queues")
	want(t, h, "GET", "/link", "", "", 404, "")
}

func TestChanges(t *testing.T) {
	h := serve(t, model.New(model.Options{}), conf)
	plain, err := disbatch.New(disbatch.Config{Store: model.New(model.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		h            *disbatch.Handler
		method, path string
		changes      bool
	}{
		{h, "GET", "/queues", false}, {h, "HEAD", "/queues", false}, {h, "OPTIONS", "/queues", false},
		{h, "POST", "/queues", true}, {h, "DELETE", "/queues/x", true}, {h, "POST", "/tasks", true}, {h, "POST", "/tasks/demo", true},
		{h, "POST", "/tasks/search", false}, {h, "POST", "/tasks/search/x", true}, {h, "POST", "/tasks/x/search", true},
		{h, "POST", "/search-tasks-json", false}, {h, "POST", "/delete-queue-json", true}, {h, "POST", "/balance", true},
		{h, "POST", "/nothing", true}, {h, "PUT", "/queues", true}, {plain, "POST", "/tasks/search", true}, {plain, "POST", "/search-tasks-json", true},
	} {
		if got := c.h.Changes(httptest.NewRequest(c.method, c.path, nil)); got != c.changes {
			t.Errorf("%s %s changes: %v", c.method, c.path, got)
		}
	}
}

func TestScopes(t *testing.T) {
	h := serve(t, model.New(model.Options{}), conf)
	for request, want := range map[string]auth.Scope{
		"GET /queues": auth.Read, "GET /js/queues.js": auth.Read, "HEAD /tasks": auth.Read, "POST /tasks/search": auth.Read, "POST /search-tasks-json": auth.Read,
		"POST /nodes/n": auth.Operate, "POST /balance": auth.Operate, "POST /set-queue-attr-json": auth.Operate,
		"POST /queues/q": auth.Operate, "POST /queues": auth.Submit, "POST /tasks": auth.Submit, "POST /tasks/q": auth.Submit, "POST /tasks/q/users": auth.Submit,
		"POST /tasks/%73earch": auth.Read, "POST /tasks/x%2Fsearch": auth.Submit, "POST /tasks/q/search": auth.Submit, "POST /tasks/search/": auth.Submit,
		"POST /start-queue-json": auth.Submit, "POST /queue-create-tasks-json": auth.Submit, "POST /queue-create-tasks-from-query-json": auth.Submit,
		"DELETE /queues/q": auth.Admin, "POST /delete-queue-json": auth.Admin, "POST /nothing": auth.Submit, "DELETE /nothing": auth.Admin,
	} {
		method, path, _ := strings.Cut(request, " ")
		if got := h.Scope(httptest.NewRequest(method, path, nil)); got != want {
			t.Errorf("%s needs %s, want %s", request, got, want)
		}
	}
}

func TestTemplatesAreSaidToHaveNoEffect(t *testing.T) {
	for dir, told := range map[string]bool{"": false, config.DefaultViews: false, "/srv/views": true} {
		var log strings.Builder
		_, err := disbatch.New(disbatch.Config{
			Store: model.New(model.Options{}), Conf: &config.Config{ViewsDir: dir}, Log: slog.New(slog.NewTextHandler(&log, nil)),
		})
		if err != nil || strings.Contains(log.String(), "templates ignored") != told {
			t.Errorf("of views_dir %q the log says %q, %v", dir, log.String(), err)
		}
	}
}

// To change the work of a queue's tasks takes the scope submit. To change how many run at once
// takes operate.
func TestAQueueIsChangedByWhoMay(t *testing.T) {
	path, tokens := filepath.Join(t.TempDir(), "access.json"), map[string]string{}
	err := auth.Edit(path, true, func(a *auth.Access) error {
		for _, scopes := range []auth.Scopes{{auth.Operate}, {auth.Submit}, {auth.Operate, auth.Submit}} {
			token, hash := auth.NewToken()
			tokens[scopes.String()] = token
			a.Tokens = append(a.Tokens, auth.Token{ID: fmt.Sprint("t", len(tokens)), SHA256: hash, Scopes: scopes})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	access, err := auth.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	guard, err := auth.New(auth.Config{Access: access, Listen: "127.0.0.1:0", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	h := serve(t, model.New(model.Options{}), conf)
	want(t, h, "POST", "/queues", asJSON, `{"name":"q","plugin":"Disbatch::Plugin::Demo"}`, 200, "")
	guarded := guard.Wrap(h, h.Scope)
	for _, c := range []struct {
		scopes, body string
		code         int
	}{
		{"operate", `{"threads":3}`, 200},
		{"operate", `{"threads":4,"plugin":"Disbatch::Plugin::Demo"}`, 403},
		{"operate", `{"name":"r"}`, 403},
		{"submit", `{"threads":5}`, 403},
		{"operate,submit", `{"threads":6,"plugin":"Disbatch::Plugin::Demo","name":"q"}`, 200},
	} {
		r := httptest.NewRequest("POST", "http://127.0.0.1/queues/q", strings.NewReader(c.body))
		r.Header.Set("Content-Type", asJSON)
		r.Header.Set("Authorization", "Bearer "+tokens[c.scopes])
		w := httptest.NewRecorder()
		guarded.ServeHTTP(w, r)
		if w.Code != c.code || c.code == 403 && !strings.Contains(w.Body.String(), `"code":"forbidden"`) {
			t.Errorf("%s with %s: %d %s, want %d", c.body, c.scopes, w.Code, w.Body, c.code)
		}
	}
	want(t, h, "GET", "/queues/q", "", "", 200, `"threads":6`)
}

func TestRoutesThatNobodyAskedFor(t *testing.T) {
	h, err := disbatch.New(disbatch.Config{Store: model.New(model.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	want(t, h, "POST", "/tasks/search", asJSON, "{}", 405, "")
	want(t, h, "POST", "/start-queue-json", asJSON, "{}", 404, "")
	want(t, h, "GET", "/scheduler-json", "", "", 404, "")
	want(t, h, "GET", "/plugins", "", "", 200, "[]")
	want(t, h, "GET", "/monitoring", "", "", 200, `{"disbatch":{"message":"monitoring disabled","status":"OK"},"queuebalance":{"message":"monitoring disabled","status":"OK"}}`)
	want(t, h, "GET", "/info", "", "", 200, `"web_extensions":[]}`)
	want(t, h, "GET", "/balance", "", "", 200, `"settings" : null`)
}

func TestWhatAPluginRefusesIsNotAdded(t *testing.T) {
	c, err := config.Parse("config.json", []byte(conf))
	if err != nil {
		t.Fatal(err)
	}
	c.WebRoot = ""
	h, err := disbatch.New(disbatch.Config{Store: model.New(model.Options{}), Conf: c, Check: func(spec *plan.Spec) (problems plan.Problems) {
		for i, t := range spec.Tasks {
			if params, _ := t.Params.(json.RawMessage); t.Plugin == "Disbatch::Plugin::Demo" && strings.Contains(string(params), "bad") {
				problems = append(problems, plan.Problem{Task: i, Message: `task "": params.x: it is bad`})
			}
		}
		return problems
	}})
	if err != nil {
		t.Fatal(err)
	}
	want(t, h, "POST", "/queues", asJSON, `{"name": "q", "plugin": "Disbatch::Plugin::Demo"}`, 200, "")
	want(t, h, "POST", "/tasks", asJSON, `{"queue": "q", "params": [{"x": "good"}, {"x": "bad"}]}`, 400, `{"error":"task 1: params.x: it is bad"}`)
	want(t, h, "POST", "/queue-create-tasks-json", asJSON, `{"queueid": "q", "object": [{"x": "bad"}]}`, 400, `[0,"task 0: params.x: it is bad"]`)
	want(t, h, "GET", "/queues/q", "", "", 200, `"queued":0`)
	want(t, h, "POST", "/tasks", asJSON, `{"queue": "q", "params": [{"x": "good"}]}`, 200, "")
}

func TestNamesThatNoQueueIsGiven(t *testing.T) {
	for _, b := range beds {
		t.Run(b.name, func(t *testing.T) {
			h := serve(t, b.open(t).server, conf)
			longest := strings.Repeat("q", plan.MaxQueueName)
			want(t, h, "POST", "/queues", asJSON, `{"name": "`+longest+`", "plugin": "Disbatch::Plugin::Demo"}`, 200, "inserted_id")
			for name, why := range map[string]string{
				longest + "q": "at most 200 bytes", `a\u0000b`: "a NUL byte", ".": "which the path of a URL drops", "..": "which the path of a URL drops",
				strings.Repeat("a1", 12): "24 hex digits would be taken for an id",
			} {
				want(t, h, "POST", "/queues", asJSON, `{"name": "`+name+`", "plugin": "Disbatch::Plugin::Demo"}`, 400, why)
				want(t, h, "POST", "/queues/"+longest, asJSON, `{"name": "`+name+`"}`, 400, why)
				want(t, h, "POST", "/start-queue-json", asJSON, `{"name": "`+name+`", "type": "Disbatch::Plugin::Demo"}`, 400, why)
			}
			want(t, h, "POST", "/balance", asJSON, `{"queues": [], "max_tasks": {}, "a\u0000b": 1}`, 400, "is not one of")
			want(t, h, "POST", "/balance", asJSON, `{"queues": [], "max_tasks": {"* 07:00\u0000": 1}}`, 400, "is not a time")
			want(t, h, "POST", "/balance", asJSON, `{"queues": [], "max_tasks": {}, "disabled": {"a\u0000b": 1}}`, 400, "is a time")
		})
	}
}

// Queues that a plan needs cannot be deleted; the answer is one to a failed deletion.
func TestDeleteNeededQueue(t *testing.T) {
	s := model.New(model.Options{})
	h := serve(t, s, conf)
	id := plan.QueueID{ID: plan.NewID(time.Now())}
	if _, err := s.CreateQueue(t.Context(), plan.Queue{ID: id, Name: "q", Plugin: "exec"}); err != nil {
		t.Fatal(err)
	}
	p, err := s.CreatePlan(t.Context(), plan.Plan{ID: plan.PlanID{ID: plan.NewID(time.Now())}, Name: "p"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.AddTasks(t.Context(), p.ID, []plan.Task{{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Name: "a", Queue: id}}); err != nil {
		t.Fatal(err)
	}
	want(t, h, "DELETE", "/queues/q", "", "", 400, `"deleted_count":0,"write_concern_errors":[],"write_errors":[]},"error":"queue \"q\" has task \"a\" of plan`)
}

func TestMonitoringStates(t *testing.T) {
	now := time.Now()
	s := model.New(model.Options{Now: func() time.Time { return now }})
	h := serve(t, s, `{"mongohost": "h", "database": "d", "monitoring": true, "balance": {"enabled": true}}`)
	monitoring := func(holds string) {
		t.Helper()
		want(t, h, "GET", "/monitoring", "", "", 200, holds)
	}
	monitoring(fmt.Sprintf(`"queuebalance":{"message":"queuebalanced not running for %ds","status":"CRITICAL"}`, now.Unix()))
	state := func(text string) {
		t.Helper()
		if err := s.SetBalance(t.Context(), json.RawMessage(text)); err != nil {
			t.Fatal(err)
		}
	}
	state(fmt.Sprintf(`{"status":"WARNING","message":"m","timestamp":%d}`, now.Unix()))
	monitoring(`"queuebalance":{"message":"m","status":"WARNING"}`)
	state(fmt.Sprintf(`{"timestamp":%d}`, now.Unix()-60))
	monitoring(`"queuebalance":{"message":"m","status":"WARNING"}`)
	state(fmt.Sprintf(`{"timestamp":%d}`, now.Unix()-61))
	monitoring(`"queuebalance":{"message":"queuebalanced not running for 61s","status":"CRITICAL"}`)
	state(fmt.Sprintf(`{"status":"well","timestamp":%d}`, now.Unix()))
	monitoring(`"queuebalance":{"message":"queuebalanced unknown status","result":{"message":"m","status":"well"},"status":"CRITICAL"}`)
	if err := s.Register(t.Context(), plan.Instance{ID: plan.InstanceID{ID: plan.NewID(now)}, Node: "n", Lease: time.Minute}); err != nil {
		t.Fatal(err)
	}
	now = now.Add(60 * time.Second)
	monitoring(`{"disbatch":{"message":"Disbatch is running on one or more nodes","nodes":{"fresh":{"n":60}},"status":"OK"}`)
	now = now.Add(time.Second)
	monitoring(`{"disbatch":{"message":"No active Disbatch nodes found","nodes":{"stale":{"n":61}},"status":"CRITICAL"}`)
}

// Output that is too large for a document of Disbatch is shown as an id; .full reads it.
func TestWhatIsInAFile(t *testing.T) {
	for _, b := range beds {
		t.Run(b.name, func(t *testing.T) {
			bed := b.open(t)
			p := player{t: t, bed: bed, h: serve(t, bed.server, conf)}
			var made struct {
				ID struct {
					OID string `json:"$oid"`
				} `json:"id"`
			}
			if err := json.Unmarshal([]byte(want(t, p.h, "POST", "/queues?name=q&plugin=Disbatch::Plugin::Demo", "", "", 200, "")), &made); err != nil {
				t.Fatal(err)
			}
			want(t, p.h, "POST", "/queues/q?threads=1", "", "", 200, "")
			want(t, p.h, "POST", "/tasks", asJSON, `{"queue":"q","params":[{"commands":"e"}]}`, 200, "")
			p.do([]string{"node", "n1"})
			large := strings.Repeat("x", 15<<20) + "\"<end"
			p.do([]string{"run", "n1", "1", large, "small"})
			target := "/tasks?queue=" + made.ID.OID + "&.limit=1"
			want(t, p.h, "GET", target, "", "", 200, `"stderr":"small","stdout":{"$oid":`)
			want(t, p.h, "GET", target+"&.terse=1&.full=1", "", "", 200, `"stderr":"[terse mode]","stdout":{"$oid":`)
			full := want(t, p.h, "GET", target+"&.full=1", "", "", 200, `"stderr":"small","stdout":"x`)
			if want := "\\\"<end\"}"; len(full) < 15<<20 || !strings.HasSuffix(full, want) {
				t.Errorf(".full has %d bytes and ends with %q, want %q", len(full), full[max(0, len(full)-40):], want)
			}
		})
	}
}

// An index that somebody makes counts at once.
func TestNewIndexCounts(t *testing.T) {
	bed := openMongoDB(t)
	h := serve(t, bed.server, conf)
	want(t, h, "POST", "/queues?name=q&plugin=Disbatch::Plugin::Demo", "", "", 200, "")
	want(t, h, "POST", "/tasks", asJSON, `{"queue":"q","params":[{"commands":"a"},{"commands":"b"}]}`, 200, "")
	queues, err := bed.Queues(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ask := fmt.Sprintf(`{"queue":%q,"params.commands":"b",".count":1}`, queues[0].ID)
	want(t, h, "GET", "/tasks", asJSON, ask, 400, `"indexes":[["id"],["node","status","queue","id"],["queue","status"]],"invalid_params":["params.commands"]`)
	if _, err := bed.db.Collection("tasks").Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: bson.D{{Key: "queue", Value: 1}, {Key: "params.commands", Value: -1}}}); err != nil {
		t.Fatal(err)
	}
	want(t, h, "GET", "/tasks", asJSON, ask, 200, `{"count":1}`)
	want(t, h, "GET", "/tasks", asJSON, `{"params.commands":"b"}`, 400, `"indexes":[["id"],["node","status","queue","id"],["queue","params.commands"],["queue","status"]]`)
	if _, err := bed.db.Collection("users").InsertMany(t.Context(), []any{
		bson.D{{Key: "username", Value: "foo"}, {Key: "migration", Value: "test"}}, bson.D{{Key: "username", Value: "bar"}, {Key: "migration", Value: "test"}},
	}); err != nil {
		t.Fatal(err)
	}
	want(t, h, "POST", "/tasks", asJSON,
		`{"queue":"q","collection":"users","filter":{"migration":"test"},"params":{"user1":"document.username","commands":"*"}}`, 200, `"index":1}`)
	want(t, h, "GET", "/tasks", asJSON, fmt.Sprintf(`{"queue":%q,"params.commands":"*",".fields":{"params":1,"_id":0}}`, queues[0].ID), 200,
		`[{"params":{"commands":"*","user1":"foo"}},{"params":{"commands":"*","user1":"bar"}}]`)
}

func TestLargeRequests(t *testing.T) {
	h := serve(t, model.New(model.Options{}), conf)
	want(t, h, "POST", "/queues", asJSON, `{"name":"`+strings.Repeat("x", 64<<20)+`"}`, 413, "in parts")
	want(t, h, "POST", "/queues", "", strings.Repeat("x", 65<<20), 400, "name and plugin required") // a body of no kind is not read
	want(t, h, "POST", "/queues", asJSON, strings.Repeat("[", 1<<20), 400, "")
}

func TestExtensions(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the programs of this test are shell scripts")
	}
	program := filepath.Join(t.TempDir(), "program")
	script := `#!/bin/sh
case $PATH_INFO in
/mine/fails) echo sorry >&2; exit 3;;
/mine/empty) exit 0;;
/slow) exec 9>"$0.living"; sleep 1000 & wait;;
/mine/leaves) sleep 100 & ;;
esac
printf 'Status: 201 Created\r\nContent-Type: text/plain\r\nX-Mine: yes\r\n\r\n'
echo "$REQUEST_METHOD $PATH_INFO $QUERY_STRING $WEB_EXTENSION_OPTIONS $HTTP_X_THEIRS auth=$HTTP_AUTHORIZATION proxy=$HTTP_PROXY secret=$SLUICE_SECRET $1"
cat
`
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SLUICE_SECRET", "leaked")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s auth=%s %s", r.Method, r.URL, r.Header.Get("X-Web-Extension-Options"), r.Header.Get("Authorization"), body)
	}))
	defer server.Close()
	file := func(extensions string) string {
		return `{"mongohost": "h", "database": "d", "web_extensions": ` + extensions + `}`
	}
	h := serve(t, model.New(model.Options{}), file(fmt.Sprintf(`{
		"My::Ext": {"routes": ["GET /mine/{what}", "POST /mine", "GET /queues"], "program": [%[1]q, "arg"], "options": {"a": "ä"}},
		"Slow::Ext": {"routes": ["GET /slow"], "program": [%[1]q], "timeout": 0.5},
		"Their::Ext": {"routes": ["GET /theirs/", "PUT /theirs/x"], "proxy": %[2]q, "options": {"b": "ä😀"}},
		"Perl::Ext": {"key": "value"}, "Disbatch::Web::Files": null,
	}`, program, server.URL+"/below")))

	r := httptest.NewRequest("POST", "/mine?x=1", strings.NewReader("the body"))
	r.Header.Set("X-Theirs", "header")
	r.Header.Set("Authorization", "Basic secret")
	r.Header.Set("Proxy", "http://evil")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if got, want := w.Body.String(), "POST /mine x=1 {\"a\":\"ä\"} header auth= proxy= secret= arg\nthe body"; got != want || w.Code != 201 || w.Header().Get("X-Mine") != "yes" {
		t.Errorf("program: %d %v\n%s\nwant\n%s", w.Code, w.Header(), got, want)
	}
	r = httptest.NewRequest("PUT", "/theirs/x?y=2", strings.NewReader("the body"))
	r.Header.Set("Authorization", "Basic secret")
	w = httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if got, want := w.Body.String(), `PUT /below/theirs/x?y=2 {"b":"\u00e4\ud83d\ude00"} auth= the body`; got != want {
		t.Errorf("proxy: %d\n%s\nwant\n%s", w.Code, got, want)
	}
	want(t, h, "GET", "/queues", "", "", 200, "[]") // Disbatch's own routes come first
	if out, err := exec.Command("mkfifo", program+".living").CombinedOutput(); err != nil {
		t.Fatalf("mkfifo: %v\n%s", err, out)
	}
	living, err := os.OpenFile(program+".living", os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer living.Close()
	for _, path := range []string{"/slow", "/mine/fails", "/mine/empty"} {
		want(t, h, "GET", path, "", "", 502, `{"error":"the extension did not answer"}`)
	}
	want(t, h, "GET", "/info", "", "", 200, `"/mine/:what"`)
	want(t, h, "GET", "/mine/leaves", "", "", 201, "GET /mine/leaves") // though its child keeps its output open
	_ = living.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := living.Read(make([]byte, 1)); !errors.Is(err, io.EOF) { // which comes when nobody has it open
		t.Errorf("what a program had started goes on after its time was over: %v", err)
	}

	for options, wrong := range map[string]string{
		`{"routes": ["GET /x"]}`: "a program or a proxy",
		`{"routes": ["GET /x"], "program": ["/x"], "proxy": "http://x"}`:   "and not both",
		`{"routes": ["GET /x"], "program": ["x"]}`:                         "an absolute path",
		`{"routes": ["GET /x"], "proxy": "file:///etc"}`:                   "has to be a URL",
		`{"routes": ["/x"], "proxy": "http://x"}`:                          "a method and a path",
		`{"routes": ["GET /{x"], "proxy": "http://x"}`:                     "route",
		`{"routes": ["GET /x", "GET /x"], "proxy": "http://x"}`:            "conflicts",
		`{"routes": [], "proxy": "http://x"}`:                              "routes is empty",
		`{"routes": ["GET /x"], "proxy": "http://x", "pasword": "SECRET"}`: "its options are not",
		`{"routes": ["GET /x"], "proxy": "http://x", "timeout": -1}`:       "timeout",
	} {
		c, err := config.Parse("c", []byte(file(`{"Ext": `+options+`}`)))
		if err != nil {
			t.Fatal(err)
		}
		_, err = disbatch.New(disbatch.Config{Store: model.New(model.Options{}), Conf: c, Log: slog.New(slog.DiscardHandler)})
		if err == nil || !strings.Contains(err.Error(), wrong) || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s: %v, want %s", options, err, wrong)
		}
	}
}

// A store that lacks what routes ask for is refused.
func TestStoreWithoutDocuments(t *testing.T) {
	if _, err := disbatch.New(disbatch.Config{Store: struct{ store.Store }{model.New(model.Options{})}}); err == nil {
		t.Error("a store without documents is taken")
	}
}

// FuzzRequest checks that no request panics, that JSON answers are valid, that none is a server
// error, and that reading requests change nothing.
func FuzzRequest(f *testing.F) {
	for _, seed := range [][4]string{
		{"GET", "/tasks", asJSON, `{"queue":"571f8951b75bf335634ec271","status":["-2",1],".limit":"1",".fields":{"a.b":1}}`},
		{"GET", "/tasks?id=571f8951b75bf335634ec271&.fields=[\"x\"]&.full=1&.pretty=1", "", ""},
		{"POST", "/tasks", asJSON, `{"queue":"q","params":[{"a":{"$ne":1}}]}`},
		{"POST", "/tasks", asJSON, `{"queue":"q","collection":"tasks","filter":{"params.a":{"$oid":"571f8951b75bf335634ec271"}},"params":{"x":"document.params"}}`},
		{"POST", "/tasks/search", asJSON, `{"filter":{"ctime":1461189920000,"x":{"y":[1]}},"options":{"limit":3,"projection":["a"]},"terse":false}`},
		{"POST", "/search-tasks-json", "application/x-www-form-urlencoded", "filter=%7B%22status%22%3A%22-2%22%7D&queue=&limit=1e1;skip=%zz"},
		{"POST", "/queues/q", "application/x-www-form-urlencoded", "threads=1e3&name=%ff"},
		{"POST", "/balance", asJSON, `{"max_tasks":{"* 07:00":1e0},"queues":[["q"]],"disabled":"9"}`},
		{"POST", "/nodes/n", asJSON, `{"maxthreads":1E400}`},
		{"GET", "/tasks", asJSON, `[[[[1e999999999]]]]`},
		{"GET", "/tasks", asJSON, `{"node":1e999999999,"status":"1e999999999","queue":""}`},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3])
	}
	f.Fuzz(func(t *testing.T, method, target, kind, body string) {
		r, err := http.NewRequest(method, "http://h/", strings.NewReader(body))
		if err != nil {
			return // what is no method, net/http hands to no handler
		}
		if r.URL, err = r.URL.Parse(target); err != nil || r.URL.Path == "" || r.URL.Path[0] != '/' {
			return // nor what has no path
		}
		r.Header.Set("Content-Type", kind)
		s := model.New(model.Options{})
		if _, err := s.AddQueue(t.Context(), "q", "Disbatch::Plugin::Demo"); err != nil {
			t.Fatal(err)
		}
		h := serve(t, s, conf)
		send(t, h, "POST", "/tasks", asJSON, `{"queue":"q","params":[{"a":1},{"a":{"b":[null]}}]}`)
		before, _ := s.Latest(t.Context())
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code >= 500 {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		if w.Header().Get("Content-Type") == asJSON && !json.Valid(w.Body.Bytes()) {
			t.Errorf("no JSON: %q", w.Body)
		}
		if after, _ := s.Latest(t.Context()); before != after && !h.Changes(r) {
			t.Errorf("%s %s changed something", method, target)
		}
	})
}

// A query is read completely, as Disbatch reads it. A ; separates pairs, and an invalid escape
// stays as it is, so that no condition gets lost. Queries and forms that are not text are refused,
// because the store would keep something else.
func TestAQueryIsReadWholeOrRefused(t *testing.T) {
	s := model.New(model.Options{})
	h := serve(t, s, conf)
	want(t, h, "POST", "/queues", asJSON, `{"name":"q","plugin":"Disbatch::Plugin::Demo"}`, 200, "")
	queues, err := s.Queues(t.Context())
	if err != nil || len(queues) != 1 {
		t.Fatal(queues, err)
	}
	const form = "application/x-www-form-urlencoded"
	id := queues[0].ID.String()
	want(t, h, "POST", "/tasks", asJSON, `{"queue":"q","params":[{"a":1}]}`, 200, "")
	want(t, h, "GET", "/tasks?.count=1&queue="+id, "", "", 200, `{"count":1}`)
	want(t, h, "GET", "/tasks?.count=1;queue="+id+";status=-2", "", "", 200, `{"count":1}`)
	want(t, h, "GET", "/tasks?.count=1&queue="+id+"&status=-2%zz", "", "", 200, `{"count":0}`)
	want(t, h, "GET", "/tasks?.count=1&queue="+id+"&status=-2%", "", "", 200, `{"count":0}`)
	const remedy = "send the bytes of its text in UTF-8"
	want(t, h, "GET", "/tasks?.count=1&queue="+id+"&status=%ff", "", "", 400, remedy)
	want(t, h, "GET", "/tasks?.count=1&queue="+id+"&status%00=-2", "", "", 400, remedy)
	want(t, h, "POST", "/tasks", form, "queue="+id+"&params=%7B%22a%22%3A%22%ff%22%7D", 400, remedy)
	want(t, h, "POST", "/queues/"+id, form, "name=q%00", 400, remedy)
	want(t, h, "POST", "/queues/"+id, asJSON, `{"threads":1,"threads":2}`, 400, "twice in one object")
	want(t, h, "POST", "/tasks", asJSON, `{"queue":"q","params":[{"a":1,"a":2}]}`, 400, "twice in one object")
	want(t, h, "GET", "/tasks?.count=1&queue="+id, "", "", 200, `{"count":1}`)
}

// Reading requests are small and have few fields and values: a search of millions of them held a GB
// of memory. Requests that bring tasks may be as large as Disbatch's clients send them.
func TestSearchesHaveALimit(t *testing.T) {
	h := serve(t, model.New(model.Options{}), conf)
	fields := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"f%d":0`, i)
		}
		return "{" + strings.TrimPrefix(b.String(), ",") + "}"
	}
	nodes := func(n int) string { return `{"node":[` + strings.Repeat(`"n",`, n-1) + `"n"]}` }
	const form, v3 = "application/x-www-form-urlencoded", "/search-tasks-json"
	want(t, h, "POST", "/tasks/search", asJSON, `{"filter":`+fields(100)+`}`, 200, "[]")
	want(t, h, "POST", "/tasks/search", asJSON, `{"filter":`+fields(101)+`}`, 400, "it may name 100")
	want(t, h, "POST", v3, asJSON, `{"filter":`+fields(101)+`}`, 400, "it may name 100")
	want(t, h, "GET", "/tasks", asJSON, nodes(10_000), 200, "{}")
	want(t, h, "GET", "/tasks", asJSON, nodes(10_001), 400, "ask for some of them at a time")
	want(t, h, "POST", "/tasks/search", form, strings.Repeat("a=1&", 10_001), 400, "more than 10000 parameters")
	large := `{"filter":{"status":"` + strings.Repeat("x", 1<<20) + `"}}`
	want(t, h, "POST", "/tasks/search", asJSON, large, 413, "more than 1048576 bytes")
	want(t, h, "POST", v3, asJSON, large, 413, "more than 1048576 bytes")
	want(t, h, "GET", "/tasks", asJSON, large, 413, "more than 1048576 bytes")
	want(t, h, "POST", "/balance", asJSON, large, 413, "")
	want(t, h, "POST", "/queues", asJSON, `{"name":"q","plugin":"Disbatch::Plugin::Demo"}`, 200, "")
	want(t, h, "POST", "/tasks", asJSON, `{"queue":"q","params":[{"a":"`+strings.Repeat("x", 1<<20)+`"}]}`, 200, "")
}
