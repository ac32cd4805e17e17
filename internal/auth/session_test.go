//go:build unix

package auth

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

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
		s.want(t, http.StatusOK, "editor by session may read,operate,approve,submit ", "GET", "/plans", "")
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
	if err := json.Unmarshal([]byte(text), &got); err != nil || resp.StatusCode != 200 || got.Name != "operator" || got.Scopes.String() != "read,operate,approve" {
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
	s.want(t, http.StatusOK, "may read,operate,approve,submit,admin", "GET", "/plans", "", "Cookie", cookie) // a role is that of now
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

// A stream, such as events, ends with the session, token or user of its caller.
func TestWhoIsShutOutMayNotGoOn(t *testing.T) {
	f, tokens := everybody(t, `{"from": ["127.0.0.1"], "header": "X-Remote-User", "roles": {"carol": "viewer"}}`)
	g, err := New(Config{Access: f, LoginPath: "/ui/login", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("POST /ui/login", g.Login())
	mux.Handle("POST /ui/logout", g.Logout())
	var asked context.Context
	mux.HandleFunc("GET /plans", func(_ http.ResponseWriter, r *http.Request) { asked = r.Context() })
	b := bench{g.Wrap(mux, need)}
	begin := func(headers ...string) context.Context {
		t.Helper()
		asked = nil
		if w := b.do("127.0.0.1", "GET", "/plans", headers...); asked == nil || !Still(asked) {
			t.Fatalf("%v: %d", headers, w.Code)
		}
		return asked
	}
	login := func(name string) string {
		t.Helper()
		r := httptest.NewRequest("POST", "http://localhost/ui/login", strings.NewReader(url.Values{"name": {name}, "password": {password}}.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		b.h.ServeHTTP(w, r)
		cookie, _, _ := strings.Cut(w.Header().Get("Set-Cookie"), ";")
		return cookie
	}
	cookie := login("viewer")
	session, left, other := begin("Cookie", cookie), begin("Cookie", login("viewer")), begin("Cookie", login("admin"))
	token, kept := begin("Authorization", "Bearer "+tokens[Read]), begin("Authorization", basic("admin", password))
	old, proxied := begin("Authorization", basic("viewer", password)), begin("X-Remote-User", "carol")
	b.do("127.0.0.1", "POST", "/ui/logout", "Cookie", cookie)
	if Still(session) || !Still(left) {
		t.Error("a logout does not end its session's requests, or another's")
	}
	edit(t, f, func(a *Access) {
		_, sum := NewToken()
		a.Tokens[0].SHA256 = sum // another one by the same id
		a.Users = a.Users[1:]
		a.Proxy.Roles = map[string]Role{"dave": Viewer}
	})
	for what, ctx := range map[string]context.Context{"session": left, "token": token, "password": old, "proxy": proxied} {
		if Still(ctx) {
			t.Errorf("what let in by a %s goes on when it is gone", what)
		}
	}
	if !Still(other) || !Still(kept) {
		t.Error("others are shut out, too")
	}
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
