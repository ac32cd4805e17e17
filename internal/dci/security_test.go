package dci_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/api/v1"
	"github.com/seed-1177d267/sluice/internal/auth"
	"github.com/seed-1177d267/sluice/internal/dci"
	"github.com/seed-1177d267/sluice/internal/store/storetest/model"
)

// An operation is one of the OpenAPI document.
type operation struct {
	method, path, scope string
}

// guarded starts a server with an access file that has a token for each scope, and returns its URL, the tokens by scope and its operations.
func guarded(t *testing.T) (url string, tokens map[auth.Scope]string, all []operation) {
	t.Helper()
	return guardedLogging(t, slog.New(slog.DiscardHandler))
}

func guardedLogging(t *testing.T, log *slog.Logger) (url string, tokens map[auth.Scope]string, all []operation) {
	t.Helper()
	st := model.New(model.Options{})
	path, tokens := filepath.Join(t.TempDir(), "access.json"), map[auth.Scope]string{}
	err := auth.Edit(path, true, func(a *auth.Access) error {
		for _, s := range []auth.Scope{auth.Read, auth.Operate, auth.Submit, auth.Admin} {
			token, hash := auth.NewToken()
			tokens[s] = token
			a.Tokens = append(a.Tokens, auth.Token{ID: string(s), SHA256: hash, Scopes: auth.Scopes{s}})
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
	guard, err := auth.New(auth.Config{Access: access, Listen: "127.0.0.1:0", LoginPath: "/ui/login", Home: "/ui/", Log: log})
	if err != nil {
		t.Fatal(err)
	}
	a := v1.New(v1.Config{Store: st})
	s, _ := start(t, dci.Config{Store: st, API: a, Guard: guard, Log: log}, "127.0.0.1:0")
	doc, err := a.OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	var parsed struct {
		Paths map[string]map[string]struct{ Security []map[string][]string }
	}
	if err := json.Unmarshal(doc, &parsed); err != nil {
		t.Fatal(err)
	}
	for path, methods := range parsed.Paths {
		for method, op := range methods {
			if len(op.Security) == 0 || len(op.Security[0]["token"]) != 1 {
				t.Fatalf("%s %s does not say which scope it needs", method, path)
			}
			all = append(all, operation{strings.ToUpper(method), path, op.Security[0]["token"][0]})
		}
	}
	if len(all) < 30 {
		t.Fatalf("the document has %d operations", len(all))
	}
	return s.URL(), tokens, all
}

func TestEveryRouteRefusesWhoMayNot(t *testing.T) {
	url, tokens, all := guarded(t)
	ask := func(o operation, token string) int {
		t.Helper()
		path := strings.NewReplacer("{stream}", "stdout", "{node}", "n1").Replace(o.path)
		for strings.Contains(path, "{") {
			i, j := strings.Index(path, "{"), strings.Index(path, "}")
			path = path[:i] + strings.Repeat("0", 24) + path[j+1:]
		}
		ctx, done := context.WithTimeout(t.Context(), time.Minute)
		defer done()
		r, err := http.NewRequestWithContext(ctx, o.method, url+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		a.Body.Close()
		return a.StatusCode
	}
	others := []operation{{"GET", "/metrics", "read"}, {"GET", "/debug/pprof/", "admin"}, {"GET", "/api/v1/openapi.json", "read"}, {"GET", "/api/v1/nowhere", "read"}}
	for _, o := range slices.Concat(all, others) {
		if status := ask(o, ""); status != http.StatusUnauthorized {
			t.Errorf("%s %s of nobody: %d", o.method, o.path, status)
		}
		if status := ask(o, "sluice_"+strings.Repeat("x", 43)); status != http.StatusUnauthorized {
			t.Errorf("%s %s of an unknown token: %d", o.method, o.path, status)
		}
		for scope, token := range tokens {
			status := ask(o, token)
			if refused := status == http.StatusForbidden; refused != (string(scope) != o.scope) || status == http.StatusUnauthorized {
				t.Errorf("%s %s, which needs %s, with %s: %d", o.method, o.path, o.scope, scope, status)
			}
		}
	}
}

func TestAPlanKeepsWhoSubmittedIt(t *testing.T) {
	url, tokens, _ := guarded(t)
	ask := func(scope auth.Scope, method, path, kind, body string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, url+"/api/v1"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", kind)
		r.Header.Set("Authorization", "Bearer "+tokens[scope])
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Body.Close()
		text, _ := io.ReadAll(a.Body)
		return a.StatusCode, string(text)
	}
	const id = "6b017f8cece173de520010b0"
	if status, text := ask(auth.Submit, "POST", "/plans", "application/yaml", "plan: whole\ntasks: {a: {plugin: demo}}\n"); status != 201 || !strings.Contains(text, `"submitted_by":"submit"`) {
		t.Errorf("a file: %d %s", status, text)
	}
	if status, text := ask(auth.Submit, "PUT", "/plans/"+id, "application/json", `{"name":"forged","submitted_by":"admin"}`); status != 422 {
		t.Errorf("with another one's name: %d %s", status, text)
	}
	if status, text := ask(auth.Submit, "PUT", "/plans/"+id, "application/json", `{"name":"made"}`); status != 200 {
		t.Errorf("task by task: %d %s", status, text)
	}
	for _, path := range []string{"/plans/whole", "/plans/made", "/plans?name=made"} {
		if _, text := ask(auth.Read, "GET", path, "", ""); !strings.Contains(text, `"submitted_by":"submit"`) {
			t.Errorf("GET %s: %s", path, text)
		}
	}
}

func TestTheAuditLogSaysWhoMadeWhat(t *testing.T) {
	var lines syncBuffer
	url, tokens, _ := guardedLogging(t, slog.New(slog.NewJSONHandler(&lines, nil)))
	r, err := http.NewRequestWithContext(t.Context(), "POST", url+"/api/v1/plans", strings.NewReader("plan: nightly\ntasks: {a: {plugin: demo}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/yaml")
	r.Header.Set("Authorization", "Bearer "+tokens[auth.Submit])
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	var made struct{ ID string }
	if err := json.NewDecoder(a.Body).Decode(&made); err != nil || a.StatusCode != 201 {
		t.Fatalf("%s %v", a.Status, err)
	}
	for _, want := range []string{`"submit"`, made.ID, `"/api/v1/plans"`, "201"} {
		if !strings.Contains(lines.String(), want) {
			t.Errorf("there is no %s in %s", want, lines.String())
		}
	}
	if strings.Contains(lines.String(), tokens[auth.Submit]) {
		t.Error("the token is in the log")
	}
}

// A syncBuffer is a buffer that several goroutines write to.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func TestPathsLeadNowhereElse(t *testing.T) {
	url, _, _ := guarded(t)
	for _, path := range []string{
		"/ui/../../../../etc/passwd", "/ui/%2e%2e/%2e%2e/etc/passwd", "/ui/..%2f..%2fetc%2fpasswd", `/ui/..\..\etc\passwd`, "/ui//etc/passwd", "/ui/static/../web.go", "/ui/.git/config",
	} {
		c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n", path)
		answer, err := io.ReadAll(c)
		c.Close()
		if err != nil {
			t.Fatal(err)
		}
		if text := string(answer); strings.Contains(text, "root:") || strings.Contains(text, "package web") || strings.Contains(text, "[core]") {
			t.Errorf("%s: %.300s", path, text)
		}
	}
}

// A slow client is given up, and holds up nobody.
func TestASlowClientIsGivenUp(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes as long as a header may")
	}
	t.Parallel()
	s, _ := serve(t, "127.0.0.1:0")
	c, err := net.Dial("tcp", strings.TrimPrefix(s.URL(), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "GET /api/v1/plans HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
	if a, err := http.Get(s.URL() + "/healthz"); err != nil || a.StatusCode != 200 {
		t.Errorf("%v %v", a, err)
	}
	_ = c.SetReadDeadline(time.Now().Add(time.Minute))
	began := time.Now()
	if _, err := io.ReadAll(c); err != nil {
		t.Errorf("after %v: %v", time.Since(began), err)
	}
}

func TestABodyWithoutEndIsRefused(t *testing.T) {
	s, _ := serve(t, "127.0.0.1:0")
	var sent atomic.Int64 // also while the client learns that it has sent too much
	endless := readerFunc(func(p []byte) (int, error) {
		for i := range p {
			p[i] = ' '
		}
		if sent.Add(int64(len(p))) > 1<<30 {
			return 0, io.ErrUnexpectedEOF
		}
		return len(p), nil
	})
	r, err := http.NewRequestWithContext(t.Context(), "POST", s.URL()+"/api/v1/queues", endless)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if a, err := http.DefaultClient.Do(r); err == nil { // the connection may be cut before the answer is read
		a.Body.Close()
		if a.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("it is answered with %d", a.StatusCode)
		}
	}
	if n := sent.Load(); n > 64<<20 {
		t.Errorf("%d MiB were taken", n>>20)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
