//go:build unix

package auth

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

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
