package auth

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

func TestNextStaysOnThisServer(t *testing.T) {
	for next, ok := range map[string]bool{
		"/": true, "/ui/": true, "/ui/plan/nightly%231?x=1&y=//a#b": true, "/a:b": true, "/?next=https://evil.com": true, "/ünï": true,
		"": false, "ui": false, "/%2F%2Fevil.com": false, "//evil.com": false, "///evil.com": false, "/\\evil.com": false, "\\\\evil.com": false, "/\t/evil.com": false, "/\n/evil.com": false,
		"https://evil.com": false, "javascript:alert(1)": false, "http:evil.com": false, " //evil.com": false, "/ /evil.com": false, "/%": false,
		"/a\\b": false, "/a\x00b": false, "/a\r\nSet-Cookie: x": false, "/" + strings.Repeat("a", 2048): false, "/\xff": false,
	} {
		got := LocalPath(next, "/home")
		if want := map[bool]string{true: next, false: "/home"}[ok]; got != want {
			t.Errorf("%q leads to %q, want %q", next, got, want)
		}
		checkStays(t, got)
	}
}

// checkStays follows a redirect from a page as a browser does.
func checkStays(t *testing.T, next string) {
	t.Helper()
	w := httptest.NewRecorder()
	http.Redirect(w, httptest.NewRequest("POST", "https://sluice.example.com/ui/login", nil), next, http.StatusSeeOther)
	to := strings.Map(func(r rune) rune { // WHATWG URL: \ is /, and tabs and ends of lines are not there
		switch r {
		case '\\':
			return '/'
		case '\t', '\n', '\r':
			return -1
		}
		return r
	}, strings.TrimSpace(w.Header().Get("Location")))
	base, _ := url.Parse("https://sluice.example.com/ui/login")
	u, err := base.Parse(to)
	if err != nil || u.Scheme != "https" || u.Host != "sluice.example.com" || strings.HasPrefix(to, "//") {
		t.Errorf("%q leads to %q: %v, %v", next, to, u, err)
	}
}

func FuzzLocalPath(f *testing.F) {
	for _, next := range []string{"/", "//e", "/\\e", "/\t/e", "/ui/?a=b#c", "/%2f", "/..//e", "https://e", "/@e", "/.//e"} {
		f.Add(next)
	}
	f.Fuzz(func(t *testing.T, next string) {
		if got := LocalPath(next, "no"); got != "no" {
			checkStays(t, got)
		}
	})
}

func FuzzAuthorization(f *testing.F) {
	for _, header := range []string{"Bearer sluice_x", "basic YTpi", "Basic  YTpi ", "BASIC", "Bearer", "", "Basic YQ==", "Basic /w==", "Digest a=b"} {
		f.Add(header)
	}
	f.Fuzz(func(t *testing.T, header string) {
		scheme, name, secret := parseAuthorization(header)
		switch scheme {
		case "basic":
			if strings.Contains(name, ":") {
				t.Errorf("the name is %q", name)
			}
		case "bearer":
			if name != "" || len(secret) > len(header) {
				t.Errorf("name %q, secret %q", name, secret)
			}
		case "":
			if name != "" || secret != "" {
				t.Errorf("no scheme, but name %q, secret %q", name, secret)
			}
		default:
			t.Errorf("scheme %q", scheme)
		}
	})
}
