package v1_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/api/v1"
	"github.com/seed-1177d267/sluice/internal/compiler"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/storetest/model"
	"github.com/seed-1177d267/sluice/plan"
)

var update = flag.Bool("update", false, "write docs/openapi.json anew")

// The document is what programs are generated from: a change of it is to be seen in the diff.
func TestTheDocumentIsThatInDocs(t *testing.T) {
	const path = "../../../docs/openapi.json"
	got, err := v1.New(v1.Config{Store: model.New(model.Options{})}).OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the API's document is not docs/openapi.json any more; look at what changes: go test ./internal/api/v1 -run Document -update && git diff docs")
	}
}

func TestTheDocumentIsServed(t *testing.T) {
	s := serve(t)
	var doc struct {
		OpenAPI string
		Paths   map[string]any
	}
	if s.must("GET", "/openapi.json", "", &doc); doc.OpenAPI != "3.1.0" || doc.Paths["/api/v1/plans"] == nil {
		t.Errorf("served: %s with %d paths", doc.OpenAPI, len(doc.Paths))
	}
	if status, _ := s.ask(http.MethodGet, "/openapi.yaml", ""); status != 200 {
		t.Errorf("as YAML: %d", status)
	}
}

// A reading asks by the ids of operations, and holds each answer against the document.
type reading struct {
	*site
	ops      map[string]*huma.Operation
	answered map[string]bool // with success
}

func (r *reading) get(id, path, body string, wanted int) string {
	r.Helper()
	op := r.ops[id]
	if op == nil {
		r.Fatalf("the document has no operation %s", id)
	}
	status, text := r.ask(op.Method, path, body)
	said := op.Responses[strconv.Itoa(status)]
	if status != wanted || said == nil {
		r.Fatalf("%s %s answers %d, want %d; the document knows it: %v\n%s", op.Method, path, status, wanted, said != nil, text)
	}
	r.answered[id] = r.answered[id] || status < 300
	for media, what := range said.Content {
		if !strings.HasSuffix(media, "json") {
			continue
		}
		var value any
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			r.Fatalf("%s %s: %v in %s", op.Method, path, err, text)
		}
		var wrong huma.ValidateResult
		doc := r.api.Document()
		huma.Validate(doc.Components.Schemas, what.Schema, huma.NewPathBuffer([]byte(id), 0), huma.ModeReadFromServer, value, &wrong)
		for _, err := range wrong.Errors {
			r.Errorf("%s %s: %v, in\n%s", op.Method, path, err, text)
		}
	}
	if len(said.Content) == 0 && text != "" {
		r.Errorf("%s %s answers what the document does not know: %s", op.Method, path, text)
	}
	return text
}

// listens asks for a stream, and wants its first line.
func (r *reading) listens(id, path string) {
	r.Helper()
	op := r.ops[id]
	if op == nil {
		r.Fatalf("the document has no operation %s", id)
	}
	ctx, hangUp := context.WithCancel(r.Context())
	defer hangUp()
	ask, err := http.NewRequestWithContext(ctx, op.Method, r.url+path, nil)
	if err != nil {
		r.Fatal(err)
	}
	a, err := http.DefaultClient.Do(ask)
	if err != nil {
		r.Fatal(err)
	}
	defer a.Body.Close()
	line, err := bufio.NewReader(a.Body).ReadString('\n')
	if said := op.Responses[strconv.Itoa(a.StatusCode)]; err != nil || a.StatusCode != 200 || said.Content[a.Header.Get("Content-Type")] == nil {
		r.Fatalf("%s answers %s as %s, and first %q (%v), which is not what the document says", path, a.Status, a.Header.Get("Content-Type"), line, err)
	}
	r.answered[id] = true
}

// TestAnswersAreWhatTheDocumentSays calls every operation of the document, and makes some of them
// refuse a request.
func TestAnswersAreWhatTheDocumentSays(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *site) {
		r := &reading{s, map[string]*huma.Operation{}, map[string]bool{}}
		for _, item := range r.api.Document().Paths {
			for _, op := range []*huma.Operation{item.Get, item.Put, item.Post, item.Patch, item.Delete} {
				if op != nil {
					r.ops[op.OperationID] = op
				}
			}
		}
		newID := func() string { return plan.NewID(time.Now()).String() }
		no := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		var q api.Queue
		r.get("create-group", "/groups", `{"name": "customer", "weight": 4, "rate": {"starts": 5, "per": "1m", "burst": 7}}`, 201)
		no(json.Unmarshal([]byte(r.get("create-queue", "/queues", `{"name": "q", "plugin": "demo", "threads": 7, "pin": ["n1"], "ignore": ["n2"], "node_threads": 3, "group": "customer", "weight": 2, "on_lost": "fail", "keep": {"succeeded": "24h", "failed": "-1ns"}, "rate": {"starts": 5, "per": "1m", "burst": 7}, "defaults": {"params": {"a": 1}, "retry": {"attempts": 3, "delay": "1s"}, "timeout": "1m"}}`, 201)), &q))
		r.get("create-queue", "/queues?ensure=true", `{"name": "q", "plugin": "demo", "threads": null}`, 201)
		r.get("create-queue", "/queues", `{"name": "q", "plugin": "demo", "threads": null}`, 409)
		r.get("create-queue", "/queues", `{"name": 7}`, 422)
		r.get("create-queue", "/queues", `{"name": "r", "plugin": "demo", "threads": 1, "keep": {"done": "24h"}}`, 422)
		r.get("create-queue", "/queues", `{"name": "r", "plugin": "demo", "threads": 1, "defaults": {"params": [1]}}`, 422)
		r.get("create-queue", "/queues", `{"name": "r", "plugin": "demo", "threads": 1, "rate": {"starts": 5, "per": "0s"}}`, 422)
		r.get("create-group", "/groups", `{"name": "customer"}`, 409)
		r.get("create-group", "/groups", `{"name": "mail", "parent": "customer", "paused": true}`, 201)
		r.get("create-group", "/groups", `{"name": "deep", "parent": "mail"}`, 409)
		r.get("create-group", "/groups", `{"name": "deep", "parent": "nobody"}`, 404)
		r.get("create-group", "/groups", `{"name": "light", "weight": 0}`, 422)
		r.get("create-group", "/groups", `{"name": "solution", "success_uri": "https://example.com/ok", "dead_letter_uri": "https://example.com/bad"}`, 201)
		r.get("list-groups", "/groups", "", 200)
		r.get("get-group", "/groups/customer", "", 200)
		r.get("get-group", "/groups/nobody", "", 404)
		r.get("set-group", "/groups/mail", `{"parent": "customer", "weight": 2}`, 200)
		r.get("set-group", "/groups/mail", `{"rate": {"starts": 5, "per": "0s"}}`, 422)
		r.get("delete-group", "/groups/customer", "", 409)
		r.get("delete-group", "/groups/mail", "", 204)
		r.get("get-queue", "/queues/q", "", 200)
		r.get("get-queue", "/queues/none", "", 404)
		r.get("set-queue", "/queues/q", `{"threads": null, "sort": "lifo"}`, 200)
		r.get("create-queue", "/queues", `{"name": "gone", "plugin": "demo", "threads": 1}`, 201)
		r.get("delete-queue", "/queues/gone", "", 204)
		r.get("delete-queue", "/queues/gone", "", 404)
		r.get("set-node", "/nodes/n1", `{"maxthreads": 8}`, 204)
		r.get("list-plugins", "/plugins", "", 200)
		r.get("get-now", "/now", "", 200)

		p, first, each, last := newID(), newID(), newID(), newID()
		r.get("check-size", "/plans/fits", `{"name": "nightly", "params": {"a": 1}, "tasks": [{"id": "`+first+`", "queue_id": "`+q.ID.String()+`"}]}`, 204)
		r.get("create-plan", "/plans/"+p, `{"name": "nightly", "params": {"a": 1}, "keep": "720h0m0s", "source": "/plans/nightly.yaml", "on_failure": "stop", "file": {"text": "plan: nightly\n", "dir": "/plans"}}`, 200)
		r.get("add-tasks", "/plans/"+p+"/tasks", `{"tasks": [
		{"id": "`+first+`", "name": "first", "queue_id": "`+q.ID.String()+`", "retry": {"attempts": 2, "delay": "1s"}, "estimate": "1m0s"},
		{"id": "`+each+`", "name": "each", "queue_id": "`+q.ID.String()+`", "foreach": {"list": [1, "two"]}, "params": {"x": [1]}},
		{"id": "`+last+`", "name": "last", "queue_id": "`+q.ID.String()+`", "needs": ["`+first+`", "`+each+`"]}]}`, 204)
		r.get("make-ready", "/plans/"+p+"/ready", "", 204)
		r.get("adopt-plan", "/plans/"+p+"/adopt", "", 204)
		r.get("set-plan", "/plans/"+p, `{"priority": 50}`, 204)
		r.get("delete-plan", "/plans/"+p, "", 409)
		cursor := r.get("list-changes", "/changes", "", 200)

		n := plan.Instance{ID: plan.InstanceID{ID: plan.NewID(time.Now())}, Node: "n1", Host: "h", Lease: time.Minute, Threads: 4, Plugins: []string{"demo"}}
		no(r.st.Register(t.Context(), n))
		did, err := r.st.Turn(t.Context(), protocol.Turn{Instance: n.ID, Plugins: n.Plugins, Slots: 1, Start: true})
		no(err)
		claimed := did.Claimed[0]
		r.get("list-nodes", "/nodes", "", 200)
		r.get("list-queues", "/queues", "", 200)
		no(r.st.AppendLog(t.Context(), claimed.Claim, []plan.LogEntry{{At: time.Now(), Attempt: 1, Stream: plan.Stderr, Text: "a line\n"}}))
		out := strings.NewReader("all of it")
		no(r.st.(store.Results).PutResults(t.Context(), claimed.Claim, io.NewSectionReader(out, 0, out.Size()), nil, protocol.GFSAuto))
		_, err = r.st.Turn(t.Context(), protocol.Turn{Instance: n.ID, Ended: []protocol.Ending{{
			Claim: claimed.Claim, Status: 3, Detail: "exit 3", Exit: &plan.Exit{Code: 3}, Output: json.RawMessage(`{"n": 1}`),
		}}})
		no(err)
		task := "/tasks/" + claimed.Task.String()
		r.get("get-task", task, "", 200)
		r.get("get-task", "/tasks/"+last, "", 200)
		r.get("get-task", "/tasks/"+newID(), "", 404)
		r.get("get-task", "/tasks/none", "", 422)
		r.get("get-log", task+"/log", "", 200)
		if text := r.get("get-result", task+"/stdout", "", 200); text != "all of it" {
			t.Errorf("the result is %q", text)
		}
		r.get("get-inputs", "/tasks/"+last+"/inputs", "", 200)
		r.get("get-parents", "/tasks/"+last+"/parents", "", 200)
		r.get("explain-task", "/tasks/"+last+"/explain", "", 200)
		r.get("list-tasks", "/tasks?with=needs,params,output", "", 200)
		r.get("list-tasks", "/tasks?state=failed&ids="+claimed.Task.String()+","+last, "", 200)
		r.get("list-tasks", "/tasks?ids=x", "", 422)
		r.get("list-plan-tasks", "/plans/nightly/tasks?limit=1", "", 200)
		r.get("get-children", "/tasks/"+first+"/children", "", 200)
		r.get("get-children", "/tasks/"+newID()+"/children", "", 404)
		r.get("search-tasks", "/plans/nightly/search?text=FIR", "", 200)
		r.get("search-tasks", "/plans/nightly/search?failure=x", "", 422)
		r.get("search-plans", "/search/plans?text=NIGHT", "", 200)
		r.get("search-plans", "/search/plans?state=odd", "", 422)
		r.get("list-failures", "/plans/nightly/failures", "", 200)
		r.get("list-failures", "/plans/none/failures", "", 404)
		r.get("list-waiting", "/plans/nightly/waiting", "", 200)
		r.get("list-plans", "/plans", "", 200)
		r.get("get-plan", "/plans/nightly%231", "", 200)
		r.get("get-plan-file", "/plans/nightly%231/file", "", 200)
		r.get("get-plan-file", "/plans/none/file", "", 404)
		r.get("wait-plan", "/plans/nightly/wait?timeout=1ms", "", 200)
		r.get("get-graph", "/plans/nightly/graph", "", 200)
		r.get("get-graph", "/plans/nightly/graph?most=1&find=last", "", 200)
		r.get("get-graph", "/plans/none/graph", "", 404)
		r.get("get-timeline", "/plans/nightly/timeline", "", 200)
		r.get("list-foreach-tasks", "/plans/nightly/foreach-tasks", "", 200)
		r.get("get-timeline", "/plans/nightly/timeline?rows=1", "", 200)
		var after struct{ Cursor string }
		no(json.Unmarshal([]byte(cursor), &after))
		r.get("list-changes", "/changes?after="+after.Cursor, "", 200)

		plain := newID()
		r.get("add-plain-tasks", "/tasks", `{"tasks": [{"id": "`+plain+`", "queue_id": "`+q.ID.String()+`"}]}`, 204)
		r.get("set-task", "/tasks/"+plain, `{"not_before": "2099-01-01T00:00:00Z", "params": {"a": 1}, "template": true, "attempts": 3, "timeout": "1m0s", "subject": "order 4711"}`, 200)
		r.get("set-task", "/tasks/"+plain, `{"attempts": 0}`, 422)
		r.get("set-task", "/tasks/"+newID(), `{"attempts": 2}`, 404)
		r.get("set-task", "/tasks/"+claimed.Task.String(), `{"attempts": 2}`, 409)
		r.get("set-matching-tasks", "/tasks/matching/set", `{"filter": {"subject": "none"}, "change": {"subject": "order 7"}}`, 200)
		r.get("set-matching-tasks", "/tasks/matching/set", `{"filter": {}, "change": {"attempts": 2}}`, 422)
		r.get("set-matching-tasks", "/tasks/matching/set", `{"filter": {"queue": "none"}, "check": true}`, 404)
		r.get("cancel-matching-tasks", "/tasks/matching/cancel", `{"filter": {"state": ["waiting"], "older_than": "1h"}, "check": true}`, 200)
		r.get("cancel-matching-tasks", "/tasks/matching/cancel", `{"filter": {"state": ["failed"]}}`, 422)
		r.get("cancel-matching-tasks", "/tasks/matching/cancel", `{"filter": {"queue": "none"}}`, 404)
		r.get("retry-matching-tasks", "/tasks/matching/retry", `{"filter": {"reason": ["75", "timeout"]}}`, 200)
		r.get("retry-matching-tasks", "/tasks/matching/retry", `{"filter": {"reason": ["0"]}}`, 422)
		r.get("retry-matching-tasks", "/tasks/matching/retry", `{"filter": {"queue": "none"}}`, 404)
		r.get("cancel-task", "/tasks/"+plain+"/cancel", "", 204)
		r.get("cancel-task", "/tasks/"+plain+"/cancel", "", 409)
		r.get("retry-plain-tasks", "/tasks/retry", `{"tasks": ["`+plain+`"]}`, 200)
		r.get("cancel-task", "/tasks/"+plain+"/cancel", "", 204)
		r.get("retry-plain-tasks-with", "/tasks/retry-with", `{"tasks": ["`+plain+`"], "replace": [{"id": "`+plain+`", "queue_id": "`+q.ID.String()+`"}]}`, 200)
		_, err = r.st.Sweep(t.Context(), protocol.Sweep{Instance: n.ID})
		no(err)
		r.get("retry-plan", "/plans/"+p+"/retry", `{"check": true}`, 200)
		r.get("retry-plan-with", "/plans/"+p+"/retry-with", `{"params": {"a": 2}}`, 200)
		other := newID()
		r.get("create-plan", "/plans/"+other, `{"name": "other"}`, 200)
		r.get("submit-plan", "/plans", "plan: posted\ntasks: {a: {plugin: demo}}\n", 201)
		r.get("submit-plan", "/plans", "plan: posted\ntasks: {a: {plugn: demo}}\n", 422)
		posted, err := r.st.Plans(t.Context(), store.PlanQuery{Name: "posted"})
		no(err)
		r.get("run-again", "/plans/"+posted[0].ID.String()+"/runs", `{"params": {}}`, 201)
		r.get("run-again", "/plans/"+other+"/runs", "", 409)
		r.get("submit-plan", "/plans?check=true", "plan: posted\nqueues: {q: {threads: 9}}\nparams: {a: [1], b: }\ntasks: {a: {plugin: demo, queue: q}, b: {plugin: demo, needs: a, when: any_failed}}\n", 409)
		r.get("submit-plan", "/plans?check=true", "plan: posted\nparams: {a: [1], b: }\ntasks: {a: {plugin: demo}, b: {plugin: demo, needs: a, when: any_failed}, c: {plugin: demo, needs: b, when: any_failed}}\n", 200)
		const alone = "plan: alone\noverlap: skip\ntasks: {a: {plugin: demo}}\n"
		r.get("submit-plan", "/plans?check=true", alone, 200)
		r.get("sketch-plan", "/plans/sketch", alone, 200)
		r.get("sketch-plan", "/plans/sketch", "plan: posted\ntasks: {a: {needs: b}}\n", 200)
		r.get("list-plan-examples", "/plan-examples", "", 200)
		r.get("submit-plan", "/plans", alone, 201)
		for _, path := range []string{"/plans?check=true", "/plans"} { // a run has not ended
			if got := r.get("submit-plan", path, alone, 409); !strings.Contains(got, `"overlap"`) {
				t.Errorf("%s answers %s, want the code overlap", path, got)
			}
		}
		_, err = r.st.Turn(t.Context(), protocol.Turn{Instance: n.ID, Plan: posted[0].ID, Plugins: n.Plugins, Slots: 1, Start: true})
		no(err)
		r.get("cancel-running", "/plans/"+posted[0].ID.String()+"/cancel-running", "", 200)
		r.get("get-unrun", "/plans/"+other+"/unrun", "", 200)
		r.get("cancel-running", "/plans/"+other+"/cancel-running", "", 409)
		r.get("list-approvals", "/approvals", "", 200)
		asks, body := questioned(r.site, "1h")
		if got := r.get("list-approvals", "/approvals", "", 200); !strings.Contains(got, asks) {
			t.Errorf("what waits for an answer is %s, want task %s", got, asks)
		}
		r.get("answer-task", "/tasks/"+asks+"/approval", `{"approve": true, "asked": "2026-01-01T00:00:00Z"}`, 409)
		r.get("answer-task", "/tasks/"+asks+"/approval", `{"approve": true}`, 422)
		r.get("answer-task", "/tasks/"+asks+"/approval", body, 204)
		r.get("answer-task", "/tasks/"+asks+"/approval", body, 409)
		r.get("cancel-plan", "/plans/"+other+"/cancel", "", 204)
		empty := newID()
		r.get("create-plan", "/plans/"+empty, `{"name": "empty"}`, 200)
		r.get("make-ready", "/plans/"+empty+"/ready", "", 204)
		r.get("listen-plan", "/plans/"+empty+"/events?from=start", "", 422)
		r.get("delete-plan", "/plans/"+empty, "", 200)
		r.get("prune-plans", "/plans/prune", `{"keep": "1h0m0s"}`, 200)
		r.get("get-balance", "/balance", "", 200)
		r.get("set-balance", "/balance", `{"queues": [["q"]], "max_tasks": {"* 07:00": 5}}`, 204)
		r.get("get-balance", "/balance", "", 200)

		schedule := `"cron": "0 4 * * *", "zone": "Europe/Berlin", "except": ["2027-12-25"], "jitter": "1m", "task": {"queue": "q", "params": {"a": 1}, "retry": {"attempts": 2}, "timeout": "1m"}`
		r.get("create-schedule", "/schedules", `{"name": "daily", `+schedule+`, "applied_from": "/srv"}`, 201)
		r.get("create-schedule", "/schedules", `{"name": "daily", `+schedule+`}`, 409)
		r.get("create-schedule", "/schedules", `{"name": "none", "cron": "0 4 * * *", "task": {"queue": "none"}}`, 404)
		r.get("create-schedule", "/schedules", `{"name": "plans", "every": "1h", "overlap": "allow", "missed": "skip", "plan": {"file": {"text": "plan: p\ntasks: {a: {plugin: demo}}\n", "dir": "/srv"}, "source": "/srv/p.yaml"}}`, 201)
		r.get("create-schedule", "/schedules", `{"name": "wrong", "cron": "61 4 * * *"}`, 422)
		r.get("list-schedules", "/schedules?limit=1", "", 200)
		r.get("get-schedule", "/schedules/plans", "", 200)
		r.get("get-schedule", "/schedules/none", "", 404)
		r.get("list-instants", "/schedules/daily/instants?n=3&after=2027-03-27", "", 200)
		r.get("list-instants", "/schedules/daily/instants?after=soon", "", 422)
		r.get("set-schedule", "/schedules/daily", `{"cron": "0 5 * * *", "task": {"queue": "q", "params": {"a": 1}}}`, 200)
		r.get("set-schedule", "/schedules/daily", `{"cron": "0 5 * * *"}`, 422)
		r.get("run-schedule", "/schedules/daily/run", "", 202)
		r.get("run-schedule", "/schedules/daily/run", "", 409)
		r.get("pause-schedule", "/schedules/daily/pause", `{"why": "a holiday"}`, 200)
		r.get("pause-schedule", "/schedules/daily/pause", "", 409)
		r.get("get-schedule", "/schedules/daily", "", 200)
		r.get("resume-schedule", "/schedules/daily/resume", "", 200)
		r.get("resume-schedule", "/schedules/daily/resume", "", 409)
		r.get("backfill-schedule", "/schedules/daily/backfill", `{"from": "2026-01-01T00:00:00Z", "to": "2026-01-08T00:00:00Z"}`, 200)
		r.get("backfill-schedule", "/schedules/daily/backfill", `{"from": "2026-01-01T00:00:00Z", "to": "2026-01-01T01:00:00Z"}`, 422)
		r.get("delete-schedule", "/schedules/daily", "", 204)
		r.get("delete-schedule", "/schedules/daily", "", 404)

		asksOSTE(r)
		asksDisco(r)

		r.listens("listen", "/events")
		r.listens("listen-plans", "/events/plans")
		r.listens("listen-plan", "/plans/nightly/events")

		for id := range r.ops {
			if !r.answered[id] {
				t.Errorf("%s was not asked", id)
			}
		}
	})
}

// asksOSTE calls the operations of api.OSTERoot.
func asksOSTE(s *reading) {
	e := osteOn(s.T, s.site)
	r := &reading{e.site, s.ops, s.answered}
	const song = `"ActivityType": "acme.music.republish", "Parameter": {"SongId": 1}`
	r.get("oste-create-company", "/companies", `{"Name": "idle", "QoSLevel": 2}`, 201)
	r.get("oste-create-company", "/companies", `{"Name": "idle", "QoSLevel": 3}`, 409)
	r.get("oste-list-companies", "/companies", "", 200)
	r.get("oste-get-company", "/companies/idle", "", 200)
	r.get("oste-get-company", "/companies/none", "", 404)
	r.get("oste-replace-company", "/companies/idle", `{"QoSLevel": 3}`, 200)
	r.get("oste-change-company", "/companies/idle", `{"QoSLevel": null}`, 200)
	r.get("oste-create-solution", "/solutions", `{"Company": "idle", "Name": "music", "SuccessPeriod": 7, "DeadLetterPeriod": 30}`, 201)
	r.get("oste-create-solution", "/solutions", `{"Company": "none", "Name": "music"}`, 404)
	r.get("oste-list-solutions", "/solutions", "", 200)
	r.get("oste-get-solution", "/solutions/idle.music", "", 200)
	r.get("oste-replace-solution", "/solutions/idle.music", `{"QoSLevel": 3}`, 200)
	r.get("oste-change-solution", "/solutions/idle.music", `{"SuccessPeriod": 1}`, 200)
	r.get("oste-create-activity-type", "/activity-types", `{"Solution": "idle.music", "Name": "a", "Verb": "GET", "UriPattern": "https://a.example/{a}", "ParameterExpected": "a", "Retries": 2, "ObjectIdRef": ["a"]}`, 201)
	r.get("oste-create-activity-type", "/activity-types", `{"Solution": "idle.music", "Name": "b", "Verb": "GET"}`, 422)
	r.get("oste-list-activity-types", "/activity-types?company=idle", "", 200)
	r.get("oste-get-activity-type", "/activity-types/idle.music.a", "", 200)
	r.get("oste-replace-activity-type", "/activity-types/idle.music.a", `{"Verb": "PUT", "UriPattern": "https://a.example/"}`, 200)
	r.get("oste-change-activity-type", "/activity-types/idle.music.a", `{"Retries": 1}`, 200)
	r.get("oste-delete-activity-type", "/activity-types/idle.music.a", "", 204)
	r.get("oste-delete-solution", "/solutions/idle.music", "", 204)
	r.get("oste-delete-company", "/companies/idle", "", 204)
	var made struct{ ID string }
	if err := json.Unmarshal([]byte(r.get("oste-create-recurring-activity", "/recurring-activities", `{"Hour": "4", "Minute": "0", `+song+`}`, 201)), &made); err != nil {
		r.Fatal(err)
	}
	recurring := "/recurring-activities/" + made.ID
	r.get("oste-list-recurring-activities", "/recurring-activities?limit=1", "", 200)
	r.get("oste-get-recurring-activity", recurring, "", 200)
	r.get("oste-replace-recurring-activity", recurring, `{"Hour": "5", "Minute": "0", "Zone": "Europe/Berlin", `+song+`}`, 200)
	r.get("oste-change-recurring-activity", recurring, `{"Minute": "30"}`, 200)
	r.get("oste-create-point-in-time-activity", "/point-in-time-activities", `{`+song+`}`, 422)
	waiting := e.add("2099-01-01T00:00:00Z", "acme.music.republish", `{"SongId": 1}`)
	r.get("oste-create-point-in-time-activity", "/point-in-time-activities", `{"Date": "2099-01-01T00:00:00Z", `+song+`}`, 201)
	r.get("oste-list-point-in-time-activities", "/point-in-time-activities?limit=1", "", 200)
	r.get("oste-get-point-in-time-activity", waiting, "", 200)
	r.get("oste-replace-point-in-time-activity", waiting, `{"Date": "2098-01-01T00:00:00Z", `+song+`}`, 200)
	r.get("oste-change-point-in-time-activity", waiting, `{"Retries": 3}`, 200)
	r.get("oste-change-object", "/point-in-time-activities?object=1", `{"UriPattern": "https://api.example.org/"}`, 200)
	r.get("oste-delete-point-in-time-activity", waiting, "", 204)
	r.get("oste-delete-recurring-activity", recurring, "", 204)
	one, two := e.add("2001-01-01T00:00:00Z", "acme.music.drop", `{"AlbumId": 1}`), e.add("2001-01-01T00:00:00Z", "acme.music.drop", `{"AlbumId": 2}`)
	finished := func(path, as string) string { return strings.Replace(path, "point-in-time", as, 1) }
	e.run(plan.Failed, "404 from a.example")
	r.get("oste-list-failed-activities", "/failed-activities?reason=404&detail=404&from=2001-01-01T00:00:00Z", "", 200)
	r.get("oste-get-failed-activity", finished(one, "failed"), "", 200)
	r.get("oste-retry-failed-activity", finished(one, "failed")+"/retry", "", 200)
	r.get("oste-retry-failed-activity", finished(one, "failed")+"/retry", "", 404)
	r.get("oste-retry-failed-activities", "/failed-activities/retry?type=acme.music.drop", "", 200)
	e.run(plan.Failed, "404 from a.example")
	r.get("oste-change-failed-activity", finished(two, "failed"), `{"Parameter": {"AlbumId": 2, "again": true}}`, 200)
	r.get("oste-delete-failed-activity", finished(one, "failed"), "", 204)
	e.run(plan.Succeeded, "")
	r.get("oste-list-successful-activities", "/successful-activities?object=2", "", 200)
	r.get("oste-get-successful-activity", finished(two, "successful"), "", 200)
	r.get("oste-delete-successful-activity", finished(two, "successful"), "", 204)
}

// The document tells what the name of a plan may be, and a plan file takes the same names.
func TestTheDocumentTellsThePlanNamesThatAreTaken(t *testing.T) {
	s := serve(t)
	var doc struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]struct {
					Pattern   string
					MaxLength int
				}
			}
		}
	}
	s.must("GET", "/openapi.json", "", &doc)
	name := doc.Components.Schemas["NewPlan"].Properties["name"]
	pattern := regexp.MustCompile(name.Pattern)
	for _, word := range []string{
		"a", "Z", "0", "_", "-", "_a", "-a", "a-", "0-", "a.b", "a b", "a[0]", "", "é", "a\n", strings.Repeat("x", 200), strings.Repeat("x", 201),
		strings.Repeat("a", 23), strings.Repeat("a", 24), strings.Repeat("A", 24), strings.Repeat("a", 25), strings.Repeat("a", 23) + "g", strings.Repeat("a", 23) + "-",
		strings.Repeat("0", 200), strings.Repeat("0", 201),
	} {
		told := pattern.MatchString(word) && len(word) <= name.MaxLength
		body, _ := json.Marshal(map[string]string{"name": word})
		status, text := s.ask("PUT", "/plans/"+plan.NewID(time.Now()).String(), string(body))
		if taken, valid := status == 200, compiler.CheckName("the plan", word) == nil; taken != told || taken != valid {
			t.Errorf("%.30q: the document allows it: %v, PUT answers %d %s, a plan file may have it: %v", word, told, status, text, valid)
		}
	}
}
