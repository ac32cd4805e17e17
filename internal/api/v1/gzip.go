package v1

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/seed-1177d267/sluice/internal/api"
)

// leastGzip is how many bytes an answer has that is worth compressing: less fits into a packet as it is.
const leastGzip = 1400

// decoded decompresses the body of a request. Body limits apply to the decompressed bytes, so that
// a small request cannot become a large one.
func decoded(r *http.Request) error {
	switch r.Header.Get("Content-Encoding") {
	case "", "identity":
	case "gzip":
		r.Body = &gzipBody{from: r.Body}
		r.Header.Del("Content-Encoding")
		r.ContentLength = -1
	default:
		return api.NewProblem(http.StatusUnsupportedMediaType, api.CodeUnsupported, "a request is sent as it is, or with gzip; not with %q", r.Header.Get("Content-Encoding"))
	}
	return nil
}

// A gzipBody begins to read when it is read: until then no deadline holds.
type gzipBody struct {
	from io.ReadCloser
	z    *gzip.Reader
}

func (b *gzipBody) Read(p []byte) (n int, err error) {
	if b.z == nil {
		if b.z, err = gzip.NewReader(b.from); err != nil {
			return 0, notGzip(err)
		}
	}
	n, err = b.z.Read(p)
	return n, notGzip(err)
}

func (b *gzipBody) Close() error { return b.from.Close() }

// notGzip makes the client's fault of what is no gzip.
func notGzip(err error) error {
	if errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) || errors.Is(err, io.ErrUnexpectedEOF) {
		return api.NewProblem(http.StatusBadRequest, api.CodeInvalid, "the body is said to be gzip, and is not: %v", err)
	}
	return err
}

var zippers = sync.Pool{New: func() any {
	z, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is one
	return z
}}

// A gzipWriter compresses a JSON answer that is not small. It leaves streams, such as events,
// alone. It holds the status back until the first bytes decide.
type gzipWriter struct {
	http.ResponseWriter
	status int
	sent   bool
	z      *gzip.Writer
}

func acceptsGzip(r *http.Request) bool {
	for _, word := range strings.Split(r.Header.Get("Accept-Encoding"), ",") {
		if name, weight, _ := strings.Cut(strings.TrimSpace(word), ";"); name == "gzip" {
			return strings.ReplaceAll(weight, " ", "") != "q=0"
		}
	}
	return false
}

func (w *gzipWriter) WriteHeader(status int) {
	if status < 200 { // it tells that another one follows
		w.ResponseWriter.WriteHeader(status)
	} else if w.status == 0 {
		w.status = status
	}
}

func (w *gzipWriter) send() {
	if !w.sent {
		w.sent = true
		if w.status != 0 {
			w.ResponseWriter.WriteHeader(w.status)
		}
	}
}

func (w *gzipWriter) Write(p []byte) (int, error) {
	if h := w.Header(); !w.sent && len(p) >= leastGzip && strings.HasPrefix(h.Get("Content-Type"), "application/json") {
		h.Set("Content-Encoding", "gzip")
		h.Add("Vary", "Accept-Encoding")
		h.Del("Content-Length")
		w.z = zippers.Get().(*gzip.Writer)
		w.z.Reset(w.ResponseWriter)
	}
	w.send()
	if w.z != nil {
		return w.z.Write(p)
	}
	return w.ResponseWriter.Write(p)
}

// FlushError is what http.ResponseController asks for.
func (w *gzipWriter) FlushError() error {
	w.send()
	if w.z != nil {
		if err := w.z.Flush(); err != nil {
			return err
		}
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Unwrap is for http.ResponseController, too.
func (w *gzipWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *gzipWriter) close() {
	w.send()
	if w.z != nil {
		_ = w.z.Close() // who asked is gone
		zippers.Put(w.z)
	}
}
