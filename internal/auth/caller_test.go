//go:build unix

package auth

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

func TestAProxyIsBelievedAndNobodyElse(t *testing.T) {
	const roles = `"header": "x-remote-user", "roles": {"alice": "admin", "DOM\\bob": "operator"}`
	for _, c := range []struct {
		name, kind, proxy string
		headers           []string
		status            int
		text              string
	}{
		{"the proxy's user", "tcp", `{"from": ["127.0.0.0/8"], ` + roles + `}`, []string{"X-Remote-User", "alice"}, 200, "alice by proxy may read,operate,approve,submit,admin"},
		{"a user of another directory", "tcp", `{"from": ["127.0.0.1"], ` + roles + `}`, []string{"X-Remote-User", `DOM\bob`}, 200, `DOM\bob by proxy may read,operate`},
		{"over a socket", "unix", `{"from": ["unix"], ` + roles + `}`, []string{"X-Remote-User", "alice"}, 200, "alice by proxy"},
		{"who has no role", "tcp", `{"from": ["127.0.0.1"], ` + roles + `}`, []string{"X-Remote-User", "eve"}, 403, `user \"eve\" has no role`},
		{"who has the role of all", "tcp", `{"from": ["127.0.0.1"], "role": "viewer", ` + roles + `}`, []string{"X-Remote-User", "eve"}, 200, "eve by proxy may read"},
		{"from elsewhere", "tcp", `{"from": ["10.0.0.0/8", "unix"], ` + roles + `}`, []string{"X-Remote-User", "alice"}, 401, ""},
		{"from elsewhere, as if from there", "tcp", `{"from": ["10.0.0.0/8"], "client_header": "X-Forwarded-For", ` + roles + `}`, []string{"X-Remote-User", "alice", "X-Forwarded-For", "10.0.0.1", "Forwarded", "for=10.0.0.1"}, 401, ""},
		{"over another socket", "unix", `{"from": ["127.0.0.1"], ` + roles + `}`, []string{"X-Remote-User", "alice"}, 401, ""},
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
	// A caller other than the proxy has the address of its connection, whatever its headers say.
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
