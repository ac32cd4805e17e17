package v1

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/auth"
	"github.com/seed-1177d267/sluice/internal/store/storetest/model"
	"github.com/seed-1177d267/sluice/plan"
)

// The audit log names what each request changes, and has nothing of those that change nothing.
func TestTheAuditLogNamesWhatChanges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	audit, err := auth.OpenAudit(path, func(string) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	defer audit.Close()
	guard, err := auth.New(auth.Config{Log: slog.New(slog.DiscardHandler), Audit: audit})
	if err != nil {
		t.Fatal(err)
	}
	a := New(Config{Store: model.New(model.Options{}), Log: slog.New(slog.DiscardHandler)})
	srv := httptest.NewServer(guard.Wrap(a, a.Scope))
	defer srv.Close()
	ask := func(want int, method, path, body, key string) (id string) {
		t.Helper()
		r, _ := http.NewRequest(method, srv.URL+api.Root+path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		if strings.HasPrefix(path, "/plans?") || path == "/plans" {
			r.Header.Set("Content-Type", "application/yaml")
		}
		if key != "" {
			r.Header.Set("Idempotency-Key", key)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		var made struct{ ID, Detail string }
		_ = json.NewDecoder(answer.Body).Decode(&made) // some answers have no body
		if answer.StatusCode != want {
			t.Fatalf("%s %s: %s, want %d: %s", method, path, answer.Status, want, made.Detail)
		}
		return made.ID
	}
	const file = "plan: p\ntasks: {a: {run: 'true'}}\n"
	ask(200, "POST", "/plans?check=true", file, "")
	ask(422, "POST", "/plans?check=true", "plan: p\n", "")
	p := ask(201, "POST", "/plans", file, "k")
	ask(200, "POST", "/plans", file, "k")
	ask(204, "POST", "/plans/"+p+"/cancel", "", "")
	q := ask(201, "POST", "/queues", `{"name": "q", "plugin": "exec", "threads": 2}`, "")
	ask(200, "PUT", "/queues/q", `{"threads": 3}`, "")
	ask(201, "POST", "/groups", `{"name": "acme"}`, "")
	ask(200, "PUT", "/groups/acme", `{"paused": true}`, "")
	ask(204, "DELETE", "/groups/acme", "", "")
	const minted = "6b02f4390138e68ab00062b6"
	ask(200, "PUT", "/plans/"+minted, `{"name": "by-a-command"}`, "")
	ask(204, "PUT", "/nodes/n", `{"maxthreads": 3}`, "")
	c := ask(201, "POST", "/schedules", `{"name": "daily", "cron": "@daily", "task": {"queue": "q", "params": {"run": "true"}}}`, "")
	ask(422, "POST", "/schedules", `{"name": "none", "cron": "@daily"}`, "")
	ask(200, "PUT", "/schedules/daily", `{"cron": "@hourly", "task": {"queue": "q", "params": {"run": "true"}}}`, "")
	ask(200, "POST", "/schedules/daily/pause", "", "")
	ask(200, "POST", "/schedules/daily/resume", "", "")
	ask(202, "POST", "/schedules/daily/run", "", "")
	const span = `"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z"`
	ask(200, "POST", "/schedules/daily/backfill", `{`+span+`, "dry": true}`, "")
	ask(200, "POST", "/schedules/daily/backfill", `{`+span+`}`, "")
	ask(204, "DELETE", "/schedules/daily", "", "")
	task := `{"tasks": [{"id": "` + minted + `", "queue_id": "` + q + `"}]}`
	ask(204, "POST", "/tasks", task, "")
	ask(200, "PATCH", "/tasks/"+minted, `{"attempts": 2}`, "")
	// Two portions that change tasks, and two requests that change nothing.
	many := make([]string, 1002)
	for i := range many {
		many[i] = `{"id": "` + plan.NewID(time.Now()).String() + `", "queue_id": "` + q + `"}`
	}
	ask(204, "POST", "/tasks", `{"tasks": [`+strings.Join(many, ",")+`]}`, "")
	const filter = `{"filter": {"queue": "q", "state": ["queued"], "older_than": "0s"}`
	ask(200, "POST", "/tasks/matching/cancel", filter+`, "check": true}`, "")
	ask(200, "POST", "/tasks/matching/cancel", filter+`}`, "")
	ask(200, "POST", "/tasks/matching/cancel", filter+`}`, "")
	ask(200, "POST", "/tasks/matching/cancel", filter+`}`, "")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got [][]string
	var portions []string
	for line := range strings.Lines(string(text)) {
		var e auth.Entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		if e.Filter != "" {
			portions = append(portions, fmt.Sprint(e.Filter, " ", len(e.IDs), "+", e.More))
			continue
		}
		if len(e.IDs) > 1 {
			e.IDs = nil // of many
		}
		got = append(got, e.IDs)
	}
	if want := []string{"queue=q state=queued 100+900", "queue=q state=queued 3+0"}; !slices.Equal(portions, want) {
		t.Errorf("the portions are %q, want %q", portions, want)
	}
	want := [][]string{{p}, {p}, {q}, {q}, {"acme"}, {"acme"}, {"acme"}, {minted}, {"n"}, {c}, nil, {c}, {c}, {c}, {c}, {c}, {c}, {minted}, {minted}, nil}
	if !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("the audit log has the ids %v, want %v:\n%s", got, want, text)
	}
}
