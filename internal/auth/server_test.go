//go:build unix

package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// need is a server's table: which scope each of its requests needs.
func need(r *http.Request) Scope {
	switch {
	case strings.HasPrefix(r.URL.Path, "/public"), r.URL.Path == "/ui/login", r.URL.Path == "/ui/logout":
		return Public
	case strings.HasSuffix(r.URL.Path, "/unknown"):
		return ""
	case strings.HasSuffix(r.URL.Path, "/operate"), strings.HasSuffix(r.URL.Path, "/panic"):
		return Operate
	case strings.HasSuffix(r.URL.Path, "/approve"):
		return Approve
	case strings.HasSuffix(r.URL.Path, "/submit"):
		return Submit
	case strings.HasSuffix(r.URL.Path, "/admin"):
		return Admin
	}
	return Read
}

// A testServer answers each request that gets through with who sent it.
type testServer struct {
	*httptest.Server
	guard *Guard
	audit string // path
	log   *lines
}

// serve starts a server of the kind tcp, tls or unix.
func serve(t *testing.T, kind string, c Config) *testServer {
	t.Helper()
	s := &testServer{audit: filepath.Join(t.TempDir(), "audit"), log: &lines{}}
	audit, err := OpenAudit(s.audit, func(string) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	c.Audit, c.Log = audit, slog.New(slog.NewTextHandler(s.log, nil))
	if c.LoginPath == "" {
		c.LoginPath, c.Home = "/ui/login", "/ui/"
	}
	if s.guard, err = New(c); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("POST /ui/login", s.guard.Login())
	mux.Handle("POST /ui/logout", s.guard.Logout())
	mux.HandleFunc("/{what...}", func(w http.ResponseWriter, r *http.Request) {
		who := From(r.Context())
		Changed(r.Context(), "plan:"+r.PathValue("what"))
		if strings.HasSuffix(r.URL.Path, "/panic") {
			panic(http.ErrAbortHandler)
		}
		if r.Method == "DELETE" {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		fmt.Fprintf(w, "%s by %s may %s %s", who.Name, who.By, who.Scopes, who.CSRF)
	})
	s.Server = httptest.NewUnstartedServer(s.guard.Wrap(mux, need))
	s.Server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	switch kind {
	case "unix":
		_ = s.Listener.Close()
		path := filepath.Join(t.TempDir(), "s")
		if s.Listener, err = Listen(t.Context(), "unix:"+path); err != nil {
			t.Fatal(err)
		}
		s.Start()
		s.URL = "http://localhost"
		s.Client().Transport = &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", path) }}
	case "tls":
		s.StartTLS()
	default:
		s.Start()
	}
	s.Client().CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	t.Cleanup(func() {
		s.Close()
		if err := audit.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// do sends a request with headers, in pairs. Host is one of them.
func (s *testServer) do(t *testing.T, method, path, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequest(method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
			continue
		}
		r.Header.Add(headers[i], headers[i+1])
	}
	resp, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(text)
}

func (s *testServer) want(t *testing.T, status int, text, method, path, body string, headers ...string) *http.Response {
	t.Helper()
	resp, got := s.do(t, method, path, body, headers...)
	if resp.StatusCode != status || !strings.Contains(got, text) {
		t.Errorf("%s %s with %q: got %s: %s; want %d: %s", method, path, headers, resp.Status, got, status, text)
	}
	return resp
}

// entries returns what is in the audit log.
func (s *testServer) entries(t *testing.T) (all []*Entry) {
	t.Helper()
	text, err := os.ReadFile(s.audit)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		e := &Entry{}
		if err := json.Unmarshal([]byte(line), e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		all = append(all, e)
	}
	return all
}

const password = "correct horse battery"

// everybody is an access file with a user of each role, by the role's name, and a token of each scope.
func everybody(t *testing.T, more ...string) (f *File, tokens map[Scope]string) {
	t.Helper()
	a := struct {
		Users  []User          `json:"users"`
		Tokens []Token         `json:"tokens"`
		Proxy  json.RawMessage `json:"proxy,omitempty"`
	}{}
	hash := hashOf(password)
	for _, role := range Roles() {
		a.Users = append(a.Users, User{Name: string(role), Password: hash, Role: role})
	}
	tokens = map[Scope]string{}
	for _, scope := range scopes {
		token, sum := NewToken()
		tokens[scope] = token
		a.Tokens = append(a.Tokens, Token{ID: "ci-" + string(scope), SHA256: sum, Scopes: Scopes{scope}})
	}
	if len(more) > 0 {
		a.Proxy = json.RawMessage(more[0])
	}
	text, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	return accessFile(t, string(text)), tokens
}

func basic(name, password string) string {
	r := http.Request{Header: http.Header{}}
	r.SetBasicAuth(name, password)
	return r.Header.Get("Authorization")
}

func edit(t *testing.T, f *File, change func(*Access)) {
	t.Helper()
	if err := errors.Join(Edit(f.path, false, func(a *Access) error { change(a); return nil }), f.Reload()); err != nil {
		t.Fatal(err)
	}
}

// login logs in as a page does, and returns the cookie.
func (s *testServer) login(t *testing.T, name string) string {
	t.Helper()
	resp := s.want(t, http.StatusSeeOther, "", "POST", "/ui/login", url.Values{"name": {name}, "password": {password}}.Encode(), "Content-Type", "application/x-www-form-urlencoded")
	if len(resp.Cookies()) != 1 {
		t.Fatalf("cookies are %v", resp.Cookies())
	}
	return resp.Cookies()[0].Name + "=" + resp.Cookies()[0].Value
}

// csrf returns the token of a session.
func (s *testServer) csrf(t *testing.T, cookie string) string {
	t.Helper()
	_, text := s.do(t, "GET", "/plans", "", "Cookie", cookie)
	return text[strings.LastIndex(text, " ")+1:]
}
