//go:build unix

package auth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

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
		s.do(t, "POST", "/ui/login", "{", "Content-Type", "application/json")
		s.do(t, "POST", "/ui/logout", "")
		s.do(t, "POST", "/public", "")
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
	// If no new file can be opened, entries continue to go to the old one, and the log says so.
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

// Somebody moved the log away, and put something else in its place that the server must not write into.
func TestAnAuditLogReplacesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit")
	precious := errors.New("it is something else now")
	a, err := OpenAudit(path, func(path string) error {
		if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
			return precious
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	other := filepath.Join(t.TempDir(), "store")
	if err := errors.Join(os.WriteFile(other, []byte("precious"), 0o600), os.Rename(path, path+".1"), os.Symlink(other, path)); err != nil {
		t.Fatal(err)
	}
	if err := a.write(&Entry{Path: "/plans"}); !errors.Is(err, precious) {
		t.Errorf("the error is %v", err)
	}
	if text, err := os.ReadFile(other); string(text) != "precious" {
		t.Errorf("the other file has %q, %v", text, err)
	}
	if text, err := os.ReadFile(path + ".1"); err != nil || !strings.Contains(string(text), "/plans") {
		t.Errorf("the log that was moved away has %q, %v", text, err)
	}
}
