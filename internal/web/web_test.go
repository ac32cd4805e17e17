package web_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/internal/states"
	"github.com/seed-1177d267/sluice/internal/web"
	"github.com/seed-1177d267/sluice/plan"
)

func get(t *testing.T, method, path string, header ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	web.New().ServeHTTP(w, r)
	return w.Result()
}

func body(t *testing.T, r io.Reader) string {
	t.Helper()
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestEveryPathOfAPageIsThePages(t *testing.T) {
	for _, c := range []struct {
		method, path string
		status       int
		kind         string
	}{
		{"GET", "/", 200, "text/html; charset=utf-8"},
		{"GET", "/plans/nightly%231/tasks", 200, "text/html; charset=utf-8"},
		{"GET", "/plans/my.plan", 200, "text/html; charset=utf-8"},
		{"GET", "/tasks/0123", 200, "text/html; charset=utf-8"},
		{"GET", "/app.js", 200, "text/javascript; charset=utf-8"},
		{"GET", "/style.css", 200, "text/css; charset=utf-8"},
		{"GET", "/favicon.svg", 200, "image/svg+xml"},
		{"GET", "/nowhere", 404, "text/html; charset=utf-8"},
		{"GET", "/nowhere.js", 404, "text/plain; charset=utf-8"},
		{"GET", "/../web.go", 404, "text/plain; charset=utf-8"},
		{"POST", "/", 405, "text/plain; charset=utf-8"},
	} {
		a := get(t, c.method, c.path)
		if a.StatusCode != c.status || a.Header.Get("Content-Type") != c.kind {
			t.Errorf("%s %s: %d %s, want %d %s", c.method, c.path, a.StatusCode, a.Header.Get("Content-Type"), c.status, c.kind)
		}
		if policy := a.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
			t.Errorf("%s %s has the policy %q", c.method, c.path, policy)
		}
	}
}

func TestWhatABrowserHasIsNotSentAgain(t *testing.T) {
	whole := get(t, "GET", "/app.js")
	short := get(t, "GET", "/app.js", "Accept-Encoding", "br, gzip")
	text := body(t, whole.Body)
	if short.Header.Get("Content-Encoding") != "gzip" || short.Header.Get("ETag") == whole.Header.Get("ETag") || short.Header.Get("Vary") != "Accept-Encoding" {
		t.Errorf("compressed: %v", short.Header)
	}
	z, err := gzip.NewReader(short.Body)
	if err != nil {
		t.Fatal(err)
	}
	if body(t, z) != text {
		t.Error("what is compressed is another text")
	}
	if a := get(t, "GET", "/app.js", "Accept-Encoding", "gzip;q=0"); a.Header.Get("Content-Encoding") != "" {
		t.Error("it was compressed for who does not take that")
	}
	for _, h := range []string{whole.Header.Get("ETag"), "W/" + whole.Header.Get("ETag"), `"x", ` + whole.Header.Get("ETag")} {
		if a := get(t, "GET", "/app.js", "If-None-Match", h); a.StatusCode != 304 || body(t, a.Body) != "" {
			t.Errorf("If-None-Match: %s: %d", h, a.StatusCode)
		}
	}
	if a := get(t, "GET", "/app.js", "If-None-Match", `"x"`); a.StatusCode != 200 {
		t.Errorf("another ETag: %d", a.StatusCode)
	}
	if a := get(t, "HEAD", "/app.js"); a.StatusCode != 200 || body(t, a.Body) != "" || a.ContentLength == 0 {
		t.Errorf("HEAD: %d", a.StatusCode)
	}
}

// The policy refuses these in a browser; here it is seen without one.
func TestNoFileMakesHTMLOfTextOrAsksAnotherHost(t *testing.T) {
	files, err := filepath.Glob("static/*")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	bad := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\(|new Function|https?://|\sstyle="|\son[a-z]+="`)
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			if found := bad.FindString(line); found != "" && !strings.Contains(line, "http://www.w3.org/") {
				t.Errorf("%s:%d has %q", name, i+1, found)
			}
		}
	}
}

func TestPagesSayTheWordsForStatesThatCommandsSay(t *testing.T) {
	text := body(t, get(t, "GET", "/words.js").Body)
	said := map[string]string{}
	for _, m := range regexp.MustCompile(`(\w+): '(\w+)'`).FindAllStringSubmatch(text, -1) {
		said[m[1]] = m[2]
	}
	for s := plan.Orphaned; s <= plan.Failed; s++ {
		if word, ok := said[s.String()]; ok && word != states.OfStatus(s) || !ok && states.OfStatus(s) != s.String() {
			t.Errorf("pages say %q for %s, commands say %q", word, s, states.OfStatus(s))
		}
		delete(said, s.String())
	}
	if len(said) > 0 {
		t.Errorf("pages have words for what is no state: %v", said)
	}
}

// The document names each module that its script imports, so that a browser asks for all of them at once.
func TestEveryModuleIsAskedForAtOnce(t *testing.T) {
	imports := regexp.MustCompile(`(?m)^import .*'\./(\w+\.js)';$`)
	var want []string
	var walk func(name string)
	walk = func(name string) {
		for _, m := range imports.FindAllStringSubmatch(body(t, get(t, "GET", "/"+name).Body), -1) {
			if !slices.Contains(want, m[1]) {
				want = append(want, m[1])
				walk(m[1])
			}
		}
	}
	walk("app.js")
	slices.Sort(want)
	var named []string
	for _, m := range regexp.MustCompile(`rel="modulepreload" href="/ui/(\w+\.js)"`).FindAllStringSubmatch(body(t, get(t, "GET", "/").Body), -1) {
		named = append(named, m[1])
	}
	if !slices.Equal(named, want) {
		t.Errorf("index.html preloads %q, and app.js imports %q", named, want)
	}
}
