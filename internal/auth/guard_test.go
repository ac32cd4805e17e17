//go:build unix

package auth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
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

// serve starts a server. Of its kinds there are tcp, tls and unix.
func serve(t *testing.T, kind string, c Config) *testServer {
	t.Helper()
	s := &testServer{audit: filepath.Join(t.TempDir(), "audit"), log: &lines{}}
	audit, err := OpenAudit(s.audit)
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

func TestWhoMayDoWhat(t *testing.T) {
	f, tokens := everybody(t)
	s := serve(t, "tls", Config{Access: f})
	for _, scope := range scopes {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"} {
			path := "/plans/" + string(scope)
			for has, token := range tokens {
				status := http.StatusForbidden
				if has == scope {
					if status = http.StatusOK; method == "DELETE" {
						status = http.StatusNoContent
					}
				}
				s.want(t, status, "", method, path, "", "Authorization", "Bearer "+token)
			}
			for _, role := range Roles() {
				status := http.StatusForbidden
				if role.Scopes().Has(scope) {
					if status = http.StatusOK; method == "DELETE" {
						status = http.StatusNoContent
					}
				}
				s.want(t, status, "", method, path, "", "Authorization", basic(string(role), password))
			}
			s.want(t, http.StatusUnauthorized, "", method, path, "")
		}
	}
	s.want(t, http.StatusForbidden, "this needs the scope submit; ci-read has read", "POST", "/plans/submit", "", "Authorization", "Bearer "+tokens[Read])
}

func TestWhatNobodySaidTheScopeOfIsRefused(t *testing.T) {
	f, _ := everybody(t)
	for _, method := range []string{"GET", "POST"} {
		serve(t, "tcp", Config{Access: f}).want(t, http.StatusForbidden, "does not know who may", method, "/unknown", "", "Authorization", basic("admin", password))
		serve(t, "tcp", Config{}).want(t, http.StatusForbidden, "does not know who may", method, "/unknown", "")
	}
}

func TestWhatIsPublicIsForAll(t *testing.T) {
	f, _ := everybody(t)
	s := serve(t, "tcp", Config{Access: f})
	s.want(t, http.StatusOK, " by  may ", "GET", "/public/style.css", "")
	s.want(t, http.StatusOK, " by  may ", "GET", "/public/style.css", "", "Authorization", "Bearer wrong")
	s.want(t, http.StatusForbidden, "another site", "POST", "/public/form", "", "Sec-Fetch-Site", "cross-site")
	s.want(t, http.StatusMisdirectedRequest, "", "GET", "/public/style.css", "", "Host", "evil.example.com")
}

func TestLoopbackNeedsNoPassword(t *testing.T) {
	for _, kind := range []string{"tcp", "tls", "unix"} {
		t.Run(kind, func(t *testing.T) {
			s := serve(t, kind, Config{})
			s.want(t, http.StatusOK, "local by local may read,operate,submit,admin", "POST", "/submit", "")
			s.want(t, http.StatusOK, "local by local", "GET", "/plans", "", "Authorization", "Basic whatever")
			s.want(t, http.StatusMisdirectedRequest, "", "GET", "/plans", "", "Host", "evil.example.com")
			s.want(t, http.StatusForbidden, "another site", "POST", "/submit", "", "Sec-Fetch-Site", "cross-site")
			for _, header := range forwardedBy {
				s.want(t, http.StatusForbidden, "came through a proxy", "GET", "/plans", "", header, "1.2.3.4")
			}
		})
	}
}

func TestWithoutUsersNobodyFromElsewhereIsLetIn(t *testing.T) {
	g, err := New(Config{Hosts: []string{"sluice"}})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest("GET", "http://sluice/plans", nil)
	r.RemoteAddr = "192.0.2.1:1234"
	w := httptest.NewRecorder()
	g.Wrap(http.NotFoundHandler(), need).ServeHTTP(w, r)
	if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "--access FILE") {
		t.Errorf("got %d: %s", w.Code, w.Body)
	}
}

func TestOnlyTheServersOwnNamesReachIt(t *testing.T) {
	f, _ := everybody(t)
	for _, c := range []struct {
		host string
		ok   bool
	}{
		{"localhost", true}, {"LOCALHOST:8080", true}, {"localhost.:8080", true}, {"127.0.0.1:1", true}, {"127.9.9.9", true}, {"[::1]:8080", true},
		{"sluice.example.com", true}, {"Sluice.Example.COM.:9000", true}, {"192.0.2.7:80", true}, {"[2001:db8::1]", true}, {"mig01", true},
		{"evil.example.com", false}, {"localhost.evil.example.com", false}, {"sluice.example.com.evil.com", false}, {"127.0.0.1.evil.com", false},
		{"192.0.2.8", false}, {"0.0.0.0", false}, {"xlocalhost", false}, {"unix", false}, {"x@localhost", false},
	} {
		for _, access := range []*File{nil, f} {
			s := serve(t, "tcp", Config{Access: access, Listen: "mig01:8080", Hosts: []string{"sluice.example.com", "192.0.2.7:443", "[2001:db8::1]"}})
			for _, method := range []string{"GET", "POST"} {
				resp, text := s.do(t, method, "/plans", "", "Host", c.host, "Authorization", basic("admin", password))
				if got := resp.StatusCode == http.StatusOK; got != c.ok || !got && resp.StatusCode != http.StatusMisdirectedRequest && resp.StatusCode != http.StatusBadRequest {
					t.Errorf("%s with Host %s: %s: %s", method, c.host, resp.Status, text)
				}
			}
		}
	}
	serve(t, "unix", Config{}).want(t, http.StatusOK, "local", "GET", "/plans", "", "Host", "unix")
	serve(t, "tcp", Config{}).want(t, http.StatusMisdirectedRequest, "start it with --host evil.example.com", "GET", "/plans", "", "Host", "evil.example.com:80")
	if _, err := New(Config{Hosts: []string{"https://sluice.example.com/"}}); err == nil || !strings.Contains(err.Error(), "--host") {
		t.Errorf("a URL as a name: %v", err)
	}
}

func TestOnAllAddressesTheOneThatWasCalledIsItsName(t *testing.T) {
	g, err := New(Config{Listen: "0.0.0.0:8080"})
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]bool{"192.0.2.7:8080": true, "192.0.2.8:8080": false, "0.0.0.0:8080": false, "localhost": true, "mig01": false} {
		r := httptest.NewRequest("GET", "http://"+host+"/", nil)
		local := &net.TCPAddr{IP: net.ParseIP("192.0.2.7"), Port: 8080}
		if got := g.ours(r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, local))); got != want {
			t.Errorf("Host %s: %v, want %v", host, got, want)
		}
	}
}

func TestPagesOfOtherSitesChangeNothing(t *testing.T) {
	f, tokens := everybody(t, `{"header": "X-User", "from": ["127.0.0.1"], "role": "admin"}`)
	for name, credentials := range map[string][]string{
		"local": nil, "basic": {"Authorization", basic("admin", password)}, "token": {"Authorization", "Bearer " + tokens[Submit]}, "proxy": {"X-User", "eve"},
	} {
		access := f
		if name == "local" {
			access = nil
		}
		s := serve(t, "tcp", Config{Access: access})
		for _, c := range []struct {
			headers []string
			ok      bool
		}{
			{nil, true}, // a program
			{[]string{"Sec-Fetch-Site", "same-origin"}, true},
			{[]string{"Sec-Fetch-Site", "none"}, true},
			{[]string{"Sec-Fetch-Site", "cross-site"}, false},
			{[]string{"Sec-Fetch-Site", "same-site"}, false}, // another port of this machine, too
			{[]string{"Sec-Fetch-Site", "cross-site", "Origin", s.URL}, false},
			{[]string{"Origin", s.URL}, true},
			{[]string{"Origin", "http://evil.example.com"}, false},
			{[]string{"Origin", "http://localhost:1"}, false},
			{[]string{"Origin", "null"}, false},
		} {
			for _, path := range []string{"/submit", "/api/v1/submit", "/ui/submit"} {
				for _, method := range []string{"POST", "DELETE", "GET"} { // a GET that needs more than to read changes something
					resp, text := s.do(t, method, path, "", append(c.headers, credentials...)...)
					if got := resp.StatusCode < 300; got != c.ok || !got && !strings.Contains(text, "another site") {
						t.Errorf("%s: %s %s with %q: %s: %s", name, method, path, c.headers, resp.Status, text)
					}
				}
			}
		}
		if name != "token" {
			s.want(t, http.StatusOK, "", "GET", "/plans", "", append([]string{"Sec-Fetch-Site", "cross-site"}, credentials...)...) // a link
		}
	}
}

func TestCredentialsThatAreNone(t *testing.T) {
	f, tokens := everybody(t)
	s := serve(t, "tls", Config{Access: f})
	for name, header := range map[string]string{
		"no password": basic("admin", ""), "a wrong one": basic("admin", password+"x"), "another name": basic("nobody", password), "no name": basic("", password),
		"a token that is none": "Bearer sluice_" + strings.Repeat("x", 43), "a hash as token": "Bearer " + f.Access().Tokens[0].SHA256,
		"a hash as password": basic("admin", f.Access().Users[3].Password), "a token as password": basic("admin", tokens[Admin]),
		"another scheme": "Digest x", "no secret": "Bearer", "nothing": "", "no base64": "Basic x", "no colon": "Basic YWRtaW4=",
	} {
		resp := s.want(t, http.StatusUnauthorized, "", "GET", "/plans", "", "Authorization", header)
		if resp.Header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s: no WWW-Authenticate", name)
		}
	}
	s.want(t, http.StatusBadRequest, "several Authorization headers", "GET", "/plans", "", "Authorization", "Bearer "+tokens[Read], "Authorization", basic("admin", password))
	// What the request shows decides, not what the browser has beside it.
	jar := s.login(t, "admin")
	s.want(t, http.StatusOK, "admin by session", "GET", "/plans", "", "Cookie", jar)
	s.want(t, http.StatusUnauthorized, "", "GET", "/plans", "", "Cookie", jar, "Authorization", "Bearer wrong")
}

func TestATokenThatIsTakenBackOrOverIsRefused(t *testing.T) {
	f, tokens := everybody(t)
	s := serve(t, "tls", Config{Access: f})
	s.want(t, http.StatusOK, "ci-read by token may read", "GET", "/plans", "", "Authorization", "bearer "+tokens[Read])
	for _, change := range []func(*Access){
		func(a *Access) { a.Tokens[0].Expires = time.Now().Add(-time.Second) },
		func(a *Access) { a.Tokens = a.Tokens[1:] },
	} {
		edit(t, f, change)
		s.want(t, http.StatusUnauthorized, "the token is not known, or its time is over", "GET", "/plans", "", "Authorization", "Bearer "+tokens[Read])
	}
}

func edit(t *testing.T, f *File, change func(*Access)) {
	t.Helper()
	if err := errors.Join(Edit(f.path, false, func(a *Access) error { change(a); return nil }), f.Reload()); err != nil {
		t.Fatal(err)
	}
}

func TestWhoIsAskedForAPasswordAndHow(t *testing.T) {
	f, _ := everybody(t)
	s := serve(t, "tls", Config{Access: f})
	for _, c := range []struct {
		name, method, path string
		headers            []string
		status             int
		location           string
		basic              bool
	}{
		{"an old client", "GET", "/plans", nil, 401, "", true},
		{"a program", "GET", "/api/v1/plans", []string{"Accept", "application/json"}, 401, "", true},
		{"a browser", "GET", "/ui/plans?state=failed&x=1", []string{"Accept", "text/html,application/xhtml+xml"}, 303, "/ui/login?next=%2Fui%2Fplans%3Fstate%3Dfailed%26x%3D1", false},
		{"a script of a page", "GET", "/api/v1/plans", []string{"Accept", "*/*", "Sec-Fetch-Site", "same-origin"}, 401, "", false},
		{"a form of a page", "POST", "/ui/submit", []string{"Accept", "text/html", "Sec-Fetch-Site", "same-origin"}, 401, "", false},
		{"a path that browsers take for a host", "GET", "//evil.example.com", []string{"Accept", "text/html"}, 303, "/ui/login", false},
	} {
		resp := s.want(t, c.status, "", c.method, c.path, "", c.headers...)
		challenges := strings.Join(resp.Header.Values("WWW-Authenticate"), ", ")
		if got := strings.Contains(challenges, "Basic"); got != c.basic || resp.Header.Get("Location") != c.location || c.status == 401 && !strings.Contains(challenges, "Bearer") {
			t.Errorf("%s: asked for %q, sent to %s; want Basic %v, %s", c.name, challenges, resp.Header.Get("Location"), c.basic, c.location)
		}
	}
	edit(t, f, func(a *Access) { a.Users = nil })
	s.want(t, 401, "", "GET", "/ui/", "", "Accept", "text/html") // there is nobody who could log in on a page
}

func TestAnswersCannotBeFramedOrTakenForSomethingElse(t *testing.T) {
	f, _ := everybody(t)
	s := serve(t, "tcp", Config{Access: f})
	for _, resp := range []*http.Response{
		s.want(t, 200, "", "GET", "/ui/plans", "", "Authorization", basic("viewer", password)), s.want(t, 200, "", "GET", "/public/login", ""),
		s.want(t, 401, "", "GET", "/ui/plans", ""), s.want(t, 421, "", "GET", "/", "", "Host", "evil.example.com"),
	} {
		for header, want := range map[string]string{"X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Cross-Origin-Resource-Policy": "same-origin"} {
			if got := resp.Header.Get(header); got != want {
				t.Errorf("%s: %s is %q, want %q", resp.Status, header, got, want)
			}
		}
	}
}

func TestRefusalsAreWrittenAsTheRouteHasThem(t *testing.T) {
	f, _ := everybody(t)
	s := serve(t, "tcp", Config{Access: f})
	for path, want := range map[string]string{"/api/v1/plans": "application/problem+json", "/plans": "application/json"} {
		resp, text := s.do(t, "GET", path, "")
		var body struct {
			Title, Detail, Error, Code string
			Status                     int
		}
		if err := json.Unmarshal([]byte(text), &body); err != nil {
			t.Fatal(err)
		}
		if resp.Header.Get("Content-Type") != want || body.Code != "unauthorized" || body.Detail+body.Error == "" || strings.HasPrefix(path, "/api") != (body.Status == 401) {
			t.Errorf("%s: %s: %s", path, resp.Header.Get("Content-Type"), text)
		}
	}
	own := serve(t, "tcp", Config{Access: f, Error: func(w http.ResponseWriter, _ *http.Request, refused Refusal) {
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprint(w, refused.Code, refused.Status)
	}})
	own.want(t, http.StatusTeapot, "unauthorized401", "GET", "/plans", "")
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

func TestSessionsHaveCookiesThatStayWhereTheyAre(t *testing.T) {
	f, _ := everybody(t)
	for kind, want := range map[string]string{
		"tcp": "sluice=X; Path=/; HttpOnly; SameSite=Lax", "tls": "__Host-sluice=X; Path=/; HttpOnly; Secure; SameSite=Lax",
	} {
		s := serve(t, kind, Config{Access: f})
		resp := s.want(t, http.StatusSeeOther, "", "POST", "/ui/login", "name=editor&next=/ui/plans?x=1&password="+url.QueryEscape(password), "Content-Type", "application/x-www-form-urlencoded")
		if got := resp.Header.Get("Location"); got != "/ui/plans?x=1" {
			t.Errorf("sent to %s", got)
		}
		got := resp.Header.Get("Set-Cookie")
		id := resp.Cookies()[0].Value
		if got = strings.Replace(got, id, "X", 1); got != want || len(id) != 43 {
			t.Errorf("%s: the cookie is %s, want %s", kind, got, want)
		}
		jar, err := cookiejar.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		u, _ := url.Parse(s.URL)
		jar.SetCookies(u, resp.Cookies())
		s.Client().Jar = jar
		s.want(t, http.StatusOK, "editor by session may read,operate,submit ", "GET", "/plans", "")
		csrf := s.csrf(t, "")
		resp = s.want(t, http.StatusNoContent, "", "POST", "/ui/logout", "", CSRFHeader, csrf)
		if !strings.Contains(resp.Header.Get("Set-Cookie"), "Max-Age=0") {
			t.Errorf("the cookie after the logout is %s", resp.Header.Get("Set-Cookie"))
		}
		s.want(t, http.StatusUnauthorized, "", "GET", "/plans", "")
		s.want(t, http.StatusUnauthorized, "", "GET", "/plans", "", "Cookie", cookie(id, kind == "tls").Name+"="+id) // also for who kept it
	}
}

func TestALoginMakesANewSession(t *testing.T) {
	f, _ := everybody(t)
	s := serve(t, "tcp", Config{Access: f})
	first := s.login(t, "admin")
	second := s.want(t, http.StatusSeeOther, "", "POST", "/ui/login", "name=viewer&password="+url.QueryEscape(password),
		"Content-Type", "application/x-www-form-urlencoded", "Cookie", first).Cookies()[0]
	s.want(t, http.StatusUnauthorized, "", "GET", "/plans", "", "Cookie", first)
	s.want(t, http.StatusOK, "viewer by session", "GET", "/plans", "", "Cookie", second.Name+"="+second.Value)
	// Nobody's id is taken for one, as that of somebody who wants to know it.
	resp := s.want(t, http.StatusSeeOther, "", "POST", "/ui/login", "name=viewer&password="+url.QueryEscape(password),
		"Content-Type", "application/x-www-form-urlencoded", "Cookie", "sluice=chosen")
	if resp.Cookies()[0].Value == "chosen" {
		t.Error("the session has the id that came")
	}
}

func TestALoginByJSON(t *testing.T) {
	f, _ := everybody(t)
	s := serve(t, "tcp", Config{Access: f})
	resp, text := s.do(t, "POST", "/ui/login", `{"name":"operator","password":"`+password+`"}`, "Content-Type", "application/json; charset=utf-8")
	var got struct {
		Name   string
		Scopes Scopes
		CSRF   string `json:"csrf_token"`
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil || resp.StatusCode != 200 || got.Name != "operator" || got.Scopes.String() != "read,operate" {
		t.Fatalf("%s: %s, %v", resp.Status, text, err)
	}
	if resp.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("the answer may be kept: %v", resp.Header)
	}
	cookie := "sluice=" + resp.Cookies()[0].Value
	s.want(t, http.StatusOK, "operator by session", "POST", "/operate", "", "Cookie", cookie, CSRFHeader, got.CSRF)
	s.want(t, http.StatusUnauthorized, "the name or the password is wrong", "POST", "/ui/login", `{"name":"operator","password":"x"}`, "Content-Type", "application/json")
	s.want(t, http.StatusBadRequest, "a login is", "POST", "/ui/login", `{"password":"s3cret"`, "Content-Type", "application/json")
	s.want(t, http.StatusUnsupportedMediaType, "", "POST", "/ui/login", `{}`, "Content-Type", "text/plain") // as a form of another site could send
	s.want(t, http.StatusForbidden, "another site", "POST", "/ui/login", `{}`, "Content-Type", "application/json", "Sec-Fetch-Site", "cross-site")
	serve(t, "tcp", Config{}).want(t, http.StatusOK, `"name":"local"`, "POST", "/ui/login", `{}`, "Content-Type", "application/json")
}

func TestALoginThatFailsLeadsBack(t *testing.T) {
	f, _ := everybody(t)
	s := serve(t, "tcp", Config{Access: f})
	form := []string{"Content-Type", "application/x-www-form-urlencoded"}
	for body, want := range map[string]string{
		"name=admin&password=x": "/ui/login?failed=wrong", "name=&password=": "/ui/login?failed=wrong",
		"name=admin&password=x&next=/ui/plans": "/ui/login?failed=wrong&next=%2Fui%2Fplans", "name=a&password=x&next=https://evil.example.com": "/ui/login?failed=wrong",
	} {
		resp := s.want(t, http.StatusSeeOther, "", "POST", "/ui/login", body, form...)
		if got := resp.Header.Get("Location"); got != want || len(resp.Cookies()) > 0 {
			t.Errorf("%s leads to %s, want %s; cookies %v", body, got, want, resp.Cookies())
		}
	}
	for range addressBurst {
		s.do(t, "POST", "/ui/login", "name=admin&password=x", form...)
	}
	resp := s.want(t, http.StatusSeeOther, "", "POST", "/ui/login", "name=admin&password=x", form...)
	if got := resp.Header.Get("Location"); got != "/ui/login?failed=wait" || resp.Header.Get("Retry-After") == "" {
		t.Errorf("too many lead to %s, Retry-After %s", got, resp.Header.Get("Retry-After"))
	}
}

func TestASessionHasToMeanWhatItChanges(t *testing.T) {
	f, _ := everybody(t)
	s := serve(t, "tls", Config{Access: f})
	mine, theirs := s.login(t, "admin"), s.login(t, "admin")
	token, other := s.csrf(t, mine), s.csrf(t, theirs)
	if len(token) != 43 || token == other {
		t.Fatalf("tokens are %q and %q", token, other)
	}
	form := "application/x-www-form-urlencoded"
	for _, c := range []struct {
		name          string
		ok            bool
		path, body    string
		headers       []string
		readIsAllowed bool
	}{
		{"no token", false, "/submit", "", nil, true},
		{"the header", true, "/submit", "", []string{CSRFHeader, token}, true},
		{"the field", true, "/submit", "a=b&csrf_token=" + token, []string{"Content-Type", form}, true},
		{"another session's", false, "/submit", "", []string{CSRFHeader, other}, true},
		{"an empty one", false, "/submit", "csrf_token=", []string{"Content-Type", form, CSRFHeader, ""}, true},
		{"one in the URL", false, "/submit?csrf_token=" + token, "a=b", []string{"Content-Type", form}, true},
		{"one in text", false, "/submit", "csrf_token=" + token, []string{"Content-Type", "text/plain"}, true},
		{"a form that is too long", false, "/submit", "a=" + strings.Repeat("x", mostForm) + "&csrf_token=" + token, []string{"Content-Type", form}, true},
	} {
		for _, method := range []string{"POST", "PUT", "DELETE"} {
			if method == "DELETE" && c.body != "" {
				continue // it has no form
			}
			resp, text := s.do(t, method, c.path, c.body, append([]string{"Cookie", mine}, c.headers...)...)
			if got := resp.StatusCode < 300; got != c.ok || !got && !strings.Contains(text, "lacks the token of its session") {
				t.Errorf("%s, %s: %s: %s", c.name, method, resp.Status, text)
			}
		}
	}
	s.want(t, http.StatusOK, "admin", "GET", "/plans", "", "Cookie", mine)
	s.want(t, http.StatusForbidden, "lacks the token", "GET", "/submit", "", "Cookie", mine) // an old route that changes by GET
	s.want(t, http.StatusForbidden, "another site", "POST", "/submit", "", "Cookie", mine, CSRFHeader, token, "Sec-Fetch-Site", "same-site")
}

func TestASessionEndsWithItsUser(t *testing.T) {
	f, _ := everybody(t)
	s := serve(t, "tcp", Config{Access: f})
	cookie := s.login(t, "viewer")
	edit(t, f, func(a *Access) { a.Users[0].Role = Admins })
	s.want(t, http.StatusOK, "may read,operate,submit,admin", "GET", "/plans", "", "Cookie", cookie) // a role is that of now
	edit(t, f, func(a *Access) { a.Users[0].Password = hashOf(password) })
	s.want(t, http.StatusOK, "", "GET", "/plans", "", "Cookie", cookie) // the same hash
	edit(t, f, func(a *Access) { a.Users[0].Password = HashPassword(password) })
	s.want(t, http.StatusUnauthorized, "", "GET", "/plans", "", "Cookie", cookie)
	cookie = s.login(t, "viewer")
	s.want(t, http.StatusOK, "", "GET", "/plans", "", "Authorization", basic("viewer", password))
	edit(t, f, func(a *Access) { a.Users = a.Users[1:] })
	s.want(t, http.StatusUnauthorized, "", "GET", "/plans", "", "Cookie", cookie)
	s.want(t, http.StatusUnauthorized, "", "GET", "/plans", "", "Authorization", basic("viewer", password)) // though it was right a moment ago
}

// A bench calls a guard without a network, whose waits a test's clock cannot see.
type bench struct {
	h http.Handler
}

func newBench(t *testing.T, f *File) bench {
	g, err := New(Config{Access: f, LoginPath: "/ui/login", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("POST /ui/login", g.Login())
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, From(r.Context()).Name) })
	return bench{g.Wrap(mux, need)}
}

func (b bench) do(from, method, path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://localhost"+path, nil)
	r.RemoteAddr = net.JoinHostPort(from, "1234")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	b.h.ServeHTTP(w, r)
	return w
}

func TestASessionEndsByTheClock(t *testing.T) {
	f, _ := everybody(t)
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, f)
		login := func() string {
			r := httptest.NewRequest("POST", "http://localhost/ui/login", strings.NewReader("name=viewer&password="+url.QueryEscape(password)))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			w := httptest.NewRecorder()
			b.h.ServeHTTP(w, r)
			return strings.Split(w.Header().Get("Set-Cookie"), ";")[0]
		}
		goesOn := func(cookie string) bool {
			return b.do("127.0.0.1", "GET", "/plans", "Cookie", cookie).Code == http.StatusOK
		}
		idle := login()
		time.Sleep(SessionIdle)
		if goesOn(idle) {
			t.Errorf("a session goes on after %v without a request", SessionIdle)
		}
		busy, began := login(), time.Now()
		for goesOn(busy) && time.Since(began) < 2*SessionMost {
			time.Sleep(SessionIdle - time.Minute)
		}
		if got := time.Since(began); got < SessionMost || got > SessionMost+SessionIdle {
			t.Errorf("a session that is used goes on for %v, want %v", got, SessionMost)
		}
	})
}

func TestGuessingIsSlow(t *testing.T) {
	f, _ := everybody(t)
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, f)
		guess := func(from, name, password string) *httptest.ResponseRecorder {
			return b.do(from, "GET", "/plans", "Authorization", basic(name, password))
		}
		const attacker, home = "192.0.2.66", "198.51.100.1"
		if w := guess(home, "admin", password); w.Code != http.StatusOK {
			t.Fatalf("a login: %d", w.Code)
		}
		looked, began := 0, time.Now()
		for time.Since(began) < 10*time.Minute {
			switch w := guess(attacker, "admin", fmt.Sprint("guess", looked)); w.Code {
			case http.StatusUnauthorized:
				looked++
			case http.StatusTooManyRequests:
				if after := w.Header().Get("Retry-After"); after == "" || after == "0" {
					t.Fatalf("Retry-After is %q", after)
				}
			default:
				t.Fatalf("a guess: %d", w.Code)
			}
			time.Sleep(time.Second)
		}
		if most := addressBurst + int(10*time.Minute/addressEach) + 1; looked > most {
			t.Errorf("%d passwords were looked at in 10 minutes, want %d at most", looked, most)
		}
		// Not even the right one helps who has to wait, or he would know it.
		for guess(attacker, "admin", "wrong").Code != http.StatusTooManyRequests {
		}
		if w := guess(attacker, "editor", password); w.Code != http.StatusTooManyRequests {
			t.Errorf("the right password meanwhile: %d", w.Code)
		}
		if w := guess(home, "admin", password); w.Code != http.StatusOK {
			t.Errorf("admin at home: %d", w.Code)
		}
		if w := guess("203.0.113.5", "editor", password); w.Code != http.StatusOK {
			t.Errorf("editor elsewhere: %d", w.Code)
		}
		// Names of nobody are counted as those of somebody.
		for i := range 2 * addressBurst {
			code := guess("192.0.2.77", "nobody", "x").Code
			if want := map[bool]int{true: 401, false: 429}[i < addressBurst]; code != want {
				t.Errorf("guess %d at nobody: %d, want %d", i+1, code, want)
			}
		}
		time.Sleep(addressEach)
		if w := guess(attacker, "editor", password); w.Code != http.StatusOK {
			t.Errorf("after the wait: %d", w.Code)
		}
	})
}

// atOnceVerify lets n attempts wait for the password to be looked at, and then all go on, and counts how they ended.
func atOnceVerify(t *testing.T, n int, attempt func(v *verifier, i int) error) map[string]int {
	t.Helper()
	v := newVerifier()
	for range atOnce {
		v.slots <- struct{}{}
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	ended := map[string]int{}
	for i := range n {
		all.Go(func() {
			err := attempt(v, i)
			mu.Lock()
			defer mu.Unlock()
			ended[strings.TrimRight(fmt.Sprint(err), "0123456789 s")]++
		})
	}
	for v.waiting.Load() < int32(min(n, mostWaiting)) {
		time.Sleep(time.Millisecond)
	}
	for range atOnce {
		<-v.slots
	}
	all.Wait()
	return ended
}

func TestGuessesAtOnceDoNotSlipThrough(t *testing.T) {
	f, _ := everybody(t)
	from := caller{client: network("192.0.2.1").Addr()}
	got := atOnceVerify(t, 50, func(v *verifier, i int) error {
		_, err := v.verify(t.Context(), f.Access(), "admin", fmt.Sprint("guess", i), from)
		return err
	})
	if got[errPassword.Error()] != addressBurst || got["too many passwords were wrong; try again in"] != 50-addressBurst {
		t.Errorf("attempts ended so: %v; want %d passwords looked at", got, addressBurst)
	}
}

func TestOldClientsThatComeAtOnceAreLetIn(t *testing.T) {
	a := &Access{Users: []User{{Name: "alice", Password: HashPassword(password), Role: Viewer}}}
	if err := a.check(); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got := atOnceVerify(t, mostWaiting, func(v *verifier, _ int) error {
		_, err := v.verify(t.Context(), a, "alice", password, caller{})
		return err
	})
	runtime.ReadMemStats(&after)
	if got["<nil>"] != mostWaiting {
		t.Errorf("attempts ended so: %v", got)
	}
	if hashed := (after.TotalAlloc - before.TotalAlloc) / (hashMemory << 10); hashed > 2*atOnce {
		t.Errorf("one password was hashed %d times", hashed)
	}
}

func TestPasswordsWaitInALineThatEnds(t *testing.T) {
	f, _ := everybody(t)
	v := newVerifier()
	for range atOnce {
		v.slots <- struct{}{}
	}
	verify := func(ctx context.Context) error {
		_, err := v.verify(ctx, f.Access(), "admin", password, caller{})
		return err
	}
	hangUp, gone := context.WithCancel(t.Context())
	gone()
	if err := verify(hangUp); !errors.Is(err, context.Canceled) || v.waiting.Load() != 0 {
		t.Errorf("who hung up gets %v; %d wait", err, v.waiting.Load())
	}
	var all sync.WaitGroup
	for range mostWaiting {
		all.Go(func() {
			if err := verify(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	for v.waiting.Load() < mostWaiting {
		time.Sleep(time.Millisecond)
	}
	if err := verify(t.Context()); !errors.Is(err, errBusy) {
		t.Errorf("one more gets %v", err)
	}
	for range atOnce {
		<-v.slots
	}
	all.Wait()
}

func TestANameOfNobodyCostsAsMuchAsOneOfSomebody(t *testing.T) {
	a := &Access{Users: []User{{Name: "alice", Password: HashPassword(password), Role: Viewer}}}
	if err := a.check(); err != nil {
		t.Fatal(err)
	}
	if h, n := a.Users[0].hash, newVerifier().nobody; h.memory != n.memory || h.passes != n.passes || h.lanes != n.lanes || len(h.key) != len(n.key) || len(h.salt) != len(n.salt) {
		t.Errorf("a password costs %+v, none %+v", h, n)
	}
	took := func(name, password string) uint64 { // bytes: what is measured is the work, not the machine
		var before, after runtime.MemStats
		v := newVerifier()
		runtime.ReadMemStats(&before)
		if _, err := v.verify(t.Context(), a, name, password, caller{}); !errors.Is(err, errPassword) {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	for _, wrong := range []string{"wrong", ""} {
		somebody, nobody := took("alice", wrong), took("nobody", wrong)
		if least := uint64(hashMemory) << 10; somebody < least || nobody < least || nobody > 2*least {
			t.Errorf("a wrong password takes %d bytes, a wrong name %d", somebody, nobody)
		}
	}
}

func TestAProxyIsBelievedAndNobodyElse(t *testing.T) {
	const roles = `"header": "x-remote-user", "roles": {"alice": "admin", "DOM\\bob": "operator"}`
	for _, c := range []struct {
		name, kind, proxy string
		headers           []string
		status            int
		text              string
	}{
		{"the proxy's user", "tcp", `{"from": ["127.0.0.0/8"], ` + roles + `}`, []string{"X-Remote-User", "alice"}, 200, "alice by proxy may read,operate,submit,admin"},
		{"a user of another directory", "tcp", `{"from": ["127.0.0.1"], ` + roles + `}`, []string{"X-Remote-User", `DOM\bob`}, 200, `DOM\bob by proxy may read,operate`},
		{"over a socket", "unix", `{"from": ["unix"], ` + roles + `}`, []string{"X-Remote-User", "alice"}, 200, "alice by proxy"},
		{"who has no role", "tcp", `{"from": ["127.0.0.1"], ` + roles + `}`, []string{"X-Remote-User", "eve"}, 403, `user \"eve\" has no role`},
		{"who has the role of all", "tcp", `{"from": ["127.0.0.1"], "role": "viewer", ` + roles + `}`, []string{"X-Remote-User", "eve"}, 200, "eve by proxy may read"},
		{"from elsewhere", "tcp", `{"from": ["10.0.0.0/8", "unix"], ` + roles + `}`, []string{"X-Remote-User", "alice"}, 401, ""},
		{"from elsewhere, as if from there", "tcp", `{"from": ["10.0.0.0/8"], "client_header": "X-Forwarded-For", ` + roles + `}`, []string{"X-Remote-User", "alice", "X-Forwarded-For", "10.0.0.1", "Forwarded", "for=10.0.0.1"}, 401, ""},
		{"over a socket that is not the proxy's", "unix", `{"from": ["127.0.0.1"], ` + roles + `}`, []string{"X-Remote-User", "alice"}, 401, ""},
		{"two users", "tcp", `{"from": ["127.0.0.1"], ` + roles + `}`, []string{"X-Remote-User", "eve", "X-Remote-User", "alice"}, 400, "does not name one user"},
		{"an empty and a user", "tcp", `{"from": ["127.0.0.1"], ` + roles + `}`, []string{"X-Remote-User", "", "X-Remote-User", "alice"}, 400, "does not name one user"},
		{"a list of users", "tcp", `{"from": ["127.0.0.1"], ` + roles + `}`, []string{"X-Remote-User", "eve, alice"}, 403, "has no role"},
		{"a header of nearly that name", "tcp", `{"from": ["127.0.0.1"], ` + roles + `}`, []string{"X_Remote_User", "alice"}, 401, ""},
		{"nobody", "tcp", `{"from": ["127.0.0.1"], ` + roles + `}`, []string{"X-Remote-User", ""}, 401, ""},
		{"a user of the file", "tcp", `{"from": ["127.0.0.1"], ` + roles + `}`, []string{"Authorization", basic("viewer", password)}, 200, "viewer by basic"},
		{"who showed the proxy its own password", "tcp", `{"from": ["127.0.0.1"], ` + roles + `}`, []string{"X-Remote-User", "alice", "Authorization", basic("alice", "of the proxy")}, 200, "alice by proxy"},
		{"a proxy that names nobody", "tcp", `{"from": ["127.0.0.1"], "client_header": "X-Forwarded-For"}`, []string{"X-Remote-User", "alice"}, 401, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, _ := everybody(t, c.proxy)
			serve(t, c.kind, Config{Access: f}).want(t, c.status, c.text, "GET", "/plans", "", c.headers...)
		})
	}
}

func TestBehindAProxyEachCallerIsOne(t *testing.T) {
	f, _ := everybody(t, `{"from": ["127.0.0.1"], "client_header": "X-Forwarded-For"}`)
	s := serve(t, "tcp", Config{Access: f})
	wrong := func(forwarded ...string) int {
		headers := []string{"Authorization", basic("admin", "x")}
		for _, f := range forwarded {
			headers = append(headers, "X-Forwarded-For", f)
		}
		resp, _ := s.do(t, "GET", "/plans", "", headers...)
		return resp.StatusCode
	}
	for i := range addressBurst { // what stands before is the caller's own word
		if got := wrong(fmt.Sprintf("10.0.0.%d, 192.0.2.1", i), "  192.0.2.1:99 "); got != 401 {
			t.Fatalf("attempt %d: %d", i+1, got)
		}
	}
	if got := wrong("10.9.9.9", "192.0.2.1"); got != 429 {
		t.Errorf("one more of the same caller: %d", got)
	}
	if got := wrong("192.0.2.1, 192.0.2.2"); got != 401 {
		t.Errorf("another caller: %d", got)
	}
	if got := s.entries(t)[0].From; got != "192.0.2.1" {
		t.Errorf("the audit log has it from %s", got)
	}
	// Who is not the proxy is where he is, whatever he says.
	f, _ = everybody(t, `{"from": ["10.0.0.0/8"], "client_header": "X-Forwarded-For"}`)
	other := serve(t, "tcp", Config{Access: f})
	for i := range addressBurst + 1 {
		resp, _ := other.do(t, "GET", "/plans", "", "Authorization", basic("admin", "x"), "X-Forwarded-For", fmt.Sprint("192.0.2.", i), "X-Forwarded-Proto", "https")
		if want := map[bool]int{true: 401, false: 429}[i < addressBurst]; resp.StatusCode != want {
			t.Errorf("attempt %d of who is not the proxy: %s, want %d", i+1, resp.Status, want)
		}
	}
	if got := other.entries(t)[0].From; got != "127.0.0.1" {
		t.Errorf("the audit log has who is not the proxy from %s", got)
	}
	// The proxy has the certificate.
	resp := s.want(t, http.StatusSeeOther, "", "POST", "/ui/login", "name=viewer&password="+url.QueryEscape(password),
		"Content-Type", "application/x-www-form-urlencoded", "X-Forwarded-Proto", "https")
	if got := resp.Header.Get("Set-Cookie"); !strings.HasPrefix(got, "__Host-sluice=") || !strings.Contains(got, "; Secure") {
		t.Errorf("the cookie is %s", got)
	}
}

func TestWhoChangedWhatIsKept(t *testing.T) {
	f, tokens := everybody(t)
	s := serve(t, "tls", Config{Access: f})
	s.want(t, 200, "", "GET", "/plans?q=s3cret", "", "Authorization", "Bearer "+tokens[Read]) // looks
	s.want(t, 200, "", "POST", "/plans/7/operate?q=s3cret", "s3cret", "Authorization", "Bearer "+tokens[Operate], "X-Other", "s3cret")
	s.want(t, 204, "", "DELETE", "/plans/7/admin", "", "Authorization", basic("admin", password))
	s.want(t, 403, "", "POST", "/plans/7/submit", "", "Authorization", "Bearer "+tokens[Read])
	s.want(t, 401, "", "POST", "/plans/7/submit", "")
	s.want(t, 401, "", "GET", "/plans", "", "Authorization", basic("viewer", "s3cret"))
	s.want(t, 401, "", "GET", "/plans", "", "Authorization", basic("s3cret in the wrong field", ""))
	s.want(t, 403, "", "POST", "/submit", "", "Sec-Fetch-Site", "cross-site", "Authorization", "Bearer "+tokens[Submit])
	s.want(t, 421, "", "POST", "/submit", "", "Host", "evil.example.com")
	cookie := s.login(t, "editor")
	s.want(t, 200, "", "POST", "/submit", "", "Cookie", cookie, CSRFHeader, s.csrf(t, cookie))
	s.want(t, 303, "", "POST", "/ui/login", "name=editor&password=s3cret", "Content-Type", "application/x-www-form-urlencoded")
	s.want(t, 401, "", "POST", "/plans/panic", "")
	r, _ := http.NewRequest("POST", s.URL+"/plans/panic", nil)
	r.Header.Set("Authorization", "Bearer "+tokens[Operate])
	if _, err := s.Client().Do(r); err == nil {
		t.Error("the handler did not panic")
	}
	var got []string
	for _, e := range s.entries(t) {
		if e.From != "127.0.0.1" || time.Since(e.Time) > time.Minute || e.Time.Location() != time.UTC {
			t.Errorf("an entry is from %s at %v", e.From, e.Time)
		}
		got = append(got, fmt.Sprintf("%s/%s %s %s [%s] %d %v %s", e.Who, e.By, e.Method, e.Path, e.Route, e.Status, e.IDs, e.Refused))
	}
	want := `ci-operate/token POST /plans/7/operate [/{what...}] 200 [plan:plans/7/operate] 
admin/basic DELETE /plans/7/admin [/{what...}] 204 [plan:plans/7/admin] 
ci-read/token POST /plans/7/submit [] 403 [] forbidden
/ POST /plans/7/submit [] 401 [] unauthorized
viewer/ GET /plans [] 401 [] unauthorized
/ GET /plans [] 401 [] unauthorized
/ POST /submit [] 403 [] cross_origin
/ POST /submit [] 421 [] host
editor/session POST /ui/login [POST /ui/login] 303 [] 
editor/session POST /submit [/{what...}] 200 [plan:submit] 
editor/ POST /ui/login [POST /ui/login] 303 [] unauthorized
/ POST /plans/panic [] 401 [] unauthorized
ci-operate/token POST /plans/panic [/{what...}] 500 [plan:plans/panic] `
	if text := strings.Join(got, "\n"); text != want {
		t.Errorf("the audit log has\n%s\nwant\n%s", text, want)
	}
	text, err := os.ReadFile(s.audit)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"s3cret", password, tokens[Operate], strings.SplitN(cookie, "=", 2)[1]} {
		if bytes.Contains(text, []byte(secret)) || strings.Contains(s.log.String(), secret) {
			t.Errorf("%q is in\n%s\n%s", secret, text, s.log)
		}
	}
	if info, err := os.Stat(s.audit); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the audit log has mode %v, %v", info.Mode(), err)
	}
	lines := strings.Split(strings.TrimSuffix(s.log.String(), "\n"), "\n")
	if len(lines) != len(got) {
		t.Fatalf("the log has %d lines, the file %d:\n%s", len(lines), len(got), s.log)
	}
	for i, e := range s.entries(t) {
		_, route, has := strings.Cut(lines[i], " route=")
		if has != (e.Route != "") || !strings.HasPrefix(strings.TrimPrefix(route, `"`), e.Route) {
			t.Errorf("the log has %s, the file the route %q", lines[i], e.Route)
		}
	}
}

func TestNobodyFillsTheAuditLog(t *testing.T) {
	f, tokens := everybody(t)
	s := serve(t, "tcp", Config{Access: f})
	for range 10 * quietBurst {
		s.do(t, "POST", "/submit", "")
		s.do(t, "GET", "/plans", "", "Authorization", "Bearer wrong")
		s.do(t, "POST", "/ui/login", "name=x&password=y", "Content-Type", "application/x-www-form-urlencoded")
	}
	if got := len(s.entries(t)); got != quietBurst {
		t.Errorf("%d refusals are kept, want %d", got, quietBurst)
	}
	for range 2 * quietBurst {
		s.do(t, "POST", "/submit", "", "Authorization", "Bearer "+tokens[Submit])
	}
	if got := len(s.entries(t)); got != 3*quietBurst {
		t.Errorf("%d entries are kept, want all changes beside: %d", got, 3*quietBurst)
	}
}

func TestAnAuditLogGoesOnInANewFileWhenItWasMovedAway(t *testing.T) {
	s := serve(t, "tcp", Config{})
	s.want(t, 200, "", "POST", "/a/submit", "")
	if err := os.Rename(s.audit, s.audit+".1"); err != nil {
		t.Fatal(err)
	}
	s.want(t, 200, "", "POST", "/b/submit", "")
	if err := s.guard.Audit.Reopen(); err != nil {
		t.Fatal(err)
	}
	s.want(t, 200, "", "POST", "/c/submit", "")
	if old, err := os.ReadFile(s.audit + ".1"); err != nil || bytes.Count(old, []byte("\n")) != 1 || len(s.entries(t)) != 2 {
		t.Errorf("the old file has %s, %v; the new one %v", old, err, s.entries(t))
	}
	// Where there can be no new one, the entries go on to where they went, and the log says so.
	if err := errors.Join(os.Rename(s.audit, s.audit+".2"), os.Mkdir(s.audit, 0o700)); err != nil {
		t.Fatal(err)
	}
	s.want(t, 200, "", "POST", "/d/submit", "")
	if old, err := os.ReadFile(s.audit + ".2"); err != nil || bytes.Count(old, []byte("\n")) != 3 || !strings.Contains(s.log.String(), "the audit log cannot be opened") {
		t.Errorf("the old file has %s, %v; the log\n%s", old, err, s.log)
	}
	if err := s.guard.Audit.Close(); err != nil {
		t.Fatal(err)
	}
	s.want(t, 200, "", "POST", "/e/submit", "")
	if !strings.Contains(s.log.String(), "it is closed") {
		t.Errorf("the log does not say so:\n%s", s.log)
	}
}

func TestAnEntryNamesAHundredIDs(t *testing.T) {
	done := &call{entry: &Entry{}}
	ctx := context.WithValue(t.Context(), callKey{}, done)
	for i := range mostIDs + 5 {
		Changed(ctx, fmt.Sprint(i))
	}
	Changed(t.Context(), "of no request")
	if len(done.entry.IDs) != mostIDs || done.entry.More != 5 {
		t.Errorf("%d ids, and %d more", len(done.entry.IDs), done.entry.More)
	}
}

func TestAnswersThatStreamAreNotHeldBack(t *testing.T) {
	g, err := New(Config{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	goOn := make(chan struct{})
	s := httptest.NewServer(g.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "first")
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		<-goOn
	}), need))
	defer s.Close()
	defer close(goOn)
	resp, err := http.Post(s.URL+"/submit", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	line := make([]byte, 6)
	if _, err := io.ReadFull(resp.Body, line); err != nil || string(line) != "first\n" {
		t.Errorf("got %q, %v", line, err)
	}
}
