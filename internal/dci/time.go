package dci

import (
	"io"
	"net/http"
	"time"
)

// timely returns the handler with a time for each body to arrive and for each answer to be taken. A
// body has bodyTime, and a second more for each leastRate bytes received. An answer has the given
// time from its first byte on, unless its handler says otherwise, as that of events does. The time
// between the two belongs to the handler.
func timely(h http.Handler, bodyTime, answerTime time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t := &timedWriter{ResponseWriter: w, control: http.NewResponseController(w), time: answerTime}
		_ = t.control.SetWriteDeadline(time.Time{}) // of the request before; not every connection has deadlines, here and below
		if r.Body != nil && r.Body != http.NoBody {
			b := &timedBody{ReadCloser: r.Body, control: t.control, until: time.Now().Add(bodyTime)}
			// This also holds for a handler that does not read the body: the server reads the rest
			// before it answers.
			_ = b.control.SetReadDeadline(b.until)
			r.Body = b
		}
		h.ServeHTTP(t, r)
	})
}

// leastRate is how many bytes of a body have to come in a second.
const leastRate = 64 << 10

// A timedBody has to come in time.
type timedBody struct {
	io.ReadCloser
	control *http.ResponseController
	until   time.Time
}

// Read implements io.Reader.
func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case err == io.EOF:
		// A remaining deadline, ours or a handler's own, would end the request when it passes,
		// because the server keeps reading to notice that the caller hangs up.
		_ = b.control.SetReadDeadline(time.Time{})
	case n > 0:
		b.until = b.until.Add(time.Duration(n) * time.Second / leastRate)
		_ = b.control.SetReadDeadline(b.until)
	}
	return n, err
}

// A timedWriter gives an answer its time when it begins.
type timedWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	time    time.Duration
	begun   bool
}

func (t *timedWriter) begin() {
	if !t.begun {
		t.begun = true
		_ = t.control.SetWriteDeadline(time.Now().Add(t.time))
	}
}

// WriteHeader implements http.ResponseWriter.
func (t *timedWriter) WriteHeader(status int) {
	if status >= 200 {
		t.begin()
	}
	t.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (t *timedWriter) Write(p []byte) (int, error) {
	t.begin()
	return t.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (t *timedWriter) Unwrap() http.ResponseWriter { return t.ResponseWriter }
