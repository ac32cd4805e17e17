package disbatch_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/auth"
	"github.com/seed-1177d267/sluice/internal/store/storetest/model"
	"github.com/seed-1177d267/sluice/plan"
)

// The audit log names the queues, tasks and nodes that a request changes, and has no line for a search.
func TestTheAuditLogNamesWhatDisbatchsRoutesChange(t *testing.T) {
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
	st := model.New(model.Options{})
	i := plan.Instance{ID: plan.InstanceID{ID: plan.NewID(time.Now())}, Node: "n1", Lease: time.Minute}
	if err := st.Register(t.Context(), i); err != nil {
		t.Fatal(err)
	}
	h := serve(t, st, conf)
	srv := httptest.NewServer(guard.Wrap(h, h.Scope))
	defer srv.Close()
	oids := regexp.MustCompile(`[0-9a-f]{24}`)
	ask := func(path, body string) (ids []string) {
		t.Helper()
		kind, method := "application/x-www-form-urlencoded", "POST"
		if strings.HasPrefix(body, "{") || strings.HasPrefix(body, "[") {
			kind = "application/json"
		}
		if body == "DELETE" {
			method, body = "DELETE", ""
		}
		r, err := http.NewRequestWithContext(t.Context(), method, srv.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", kind)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("%s %s: %s, %v: %s", method, path, answer.Status, err, text)
		}
		for _, id := range oids.FindAllString(string(text), -1) {
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
		return ids
	}
	q := ask("/queues", "name=demo&plugin=Disbatch::Plugin::Demo")
	two := ask("/tasks", `{"queue":"demo","params":[{"commands":"a"},{"commands":"b"}]}`)
	old := ask("/tasks/demo", `[{"commands":"c"}]`)
	ask("/queues/demo", "threads=2")
	ask("/nodes/n1", "maxthreads=3")
	ask("/tasks/search", `{"filter":{"status":-2}}`)
	ask("/search-tasks-json", "queue="+q[0])
	other := ask("/start-queue-json", "type=Disbatch::Plugin::Demo&name=three")
	ask("/set-queue-attr-json", "queueid="+other[0]+"&attr=threads&value=3")
	third := ask("/queue-create-tasks-json", "queueid="+other[0]+`&object=[{"commands":"d"}]`)
	ask("/delete-queue-json", "id="+other[0])
	ask("/queues/demo", "DELETE")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(text)) {
		var e auth.Entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		got = append(got, e.Path+" "+strings.Join(e.IDs, ","))
	}
	want := []string{
		"/queues " + q[0], "/tasks " + strings.Join(two, ","), "/tasks/demo " + old[0], "/queues/demo " + q[0], "/nodes/n1 n1", "/start-queue-json " + other[0],
		"/set-queue-attr-json " + other[0], "/queue-create-tasks-json " + third[0], "/delete-queue-json " + other[0], "/queues/demo " + q[0],
	}
	if !slices.Equal(got, want) {
		t.Errorf("the audit log has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
