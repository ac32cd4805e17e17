// Package web owns the pages that a browser gets, embedded in the program. The pages read the REST
// API and hold no data themselves. They ask no other host for anything. They work under the strict
// Content-Security-Policy that this package sends with them.
//
// There is no build step: static holds ES modules, a style sheet and one HTML file, as they are served. app.js is where to begin.
package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
)

//go:embed static
var static embed.FS

// policy lets pages load what this program sends, and nothing else, and no script make HTML, or a script, of text.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; base-uri 'none'; " +
	"form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// pages are the first parts of the paths of pages, which are all one document: its script shows what the path names.
var pages = []string{"", "plans", "tasks", "submit", "queues", "groups", "nodes", "schedules", "balance", "login"}

// kinds are the types of what static holds; the system's tables, which package mime reads, may say something else.
var kinds = map[string]string{
	".css": "text/css; charset=utf-8", ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
}

// A file is what is sent of one, as it is and compressed.
type file struct {
	kind, etag     string
	whole, gzipped []byte // gzipped is nil where it would not be shorter
}

// New returns the handler of the pages, below where it is mounted.
func New() http.Handler {
	files, err := read()
	if err != nil {
		panic(err) // the folder is embedded above, and memory can be written to
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cache-Control", "no-cache") // asked for each time, and mostly answered with 304
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			h.Set("Allow", "GET, HEAD")
			http.Error(w, "pages are read with GET", http.StatusMethodNotAllowed)
			return
		}
		name := strings.TrimPrefix(r.URL.Path, "/")
		f, ok := files[name]
		status := http.StatusOK
		if !ok {
			first, _, _ := strings.Cut(name, "/")
			f = files["index.html"]
			if !slices.Contains(pages, first) {
				status = http.StatusNotFound // the page says so
			}
			if status == http.StatusNotFound && path.Ext(name) != "" {
				http.Error(w, "there is no such file", status)
				return
			}
		}
		f.send(w, r, status)
	})
}

func (f *file) send(w http.ResponseWriter, r *http.Request, status int) {
	h := w.Header()
	h.Set("Content-Type", f.kind)
	h.Set("Vary", "Accept-Encoding")
	body, etag := f.whole, f.etag
	if f.gzipped != nil && takesGzip(r) {
		body, etag = f.gzipped, f.etag+"-gzip"
		h.Set("Content-Encoding", "gzip")
	}
	etag = `"` + etag + `"`
	if status == http.StatusOK {
		h.Set("ETag", etag)
		for _, known := range strings.Split(r.Header.Get("If-None-Match"), ",") {
			if strings.TrimPrefix(strings.TrimSpace(known), "W/") == etag {
				h.Del("Content-Encoding")
				w.WriteHeader(http.StatusNotModified)
				return
			}
		}
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // who asked may be gone
	}
}

func takesGzip(r *http.Request) bool {
	for _, one := range strings.Split(r.Header.Get("Accept-Encoding"), ",") {
		name, weight, _ := strings.Cut(strings.TrimSpace(one), ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			q, err := strconv.ParseFloat(strings.TrimPrefix(strings.TrimSpace(weight), "q="), 64)
			return err != nil || q > 0
		}
	}
	return false
}

// read reads what is embedded, once.
func read() (map[string]*file, error) {
	files := map[string]*file{}
	err := fs.WalkDir(static, "static", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		whole, err := static.ReadFile(name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(whole)
		f := &file{whole: whole, etag: hex.EncodeToString(sum[:12]), kind: kinds[path.Ext(name)]}
		if f.kind == "" {
			f.kind = mime.TypeByExtension(path.Ext(name))
		}
		if f.kind == "" {
			return fmt.Errorf("%s is of no known type", name)
		}
		var short bytes.Buffer
		z, err := gzip.NewWriterLevel(&short, gzip.BestCompression)
		if err == nil {
			_, err = z.Write(whole)
		}
		if err == nil {
			err = z.Close()
		}
		if err != nil {
			return err
		}
		if short.Len() < len(whole) {
			f.gzipped = short.Bytes()
		}
		files[strings.TrimPrefix(name, "static/")] = f
		return nil
	})
	return files, err
}
