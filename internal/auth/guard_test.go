//go:build unix

package auth

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

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
			s.want(t, http.StatusOK, "local by local may read,operate,approve,submit,admin", "POST", "/submit", "")
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
	// The credentials of the request decide, not the browser's cookie.
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
		if got := strings.Contains(challenges, `Basic realm="disbatch"`); got != c.basic || resp.Header.Get("Location") != c.location || c.status == 401 && !strings.Contains(challenges, "Bearer") {
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
