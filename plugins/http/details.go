package http

import (
	"context"
	"crypto/tls"
	"maps"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/seed-1177d267/sluice/internal/jsontext"
	"github.com/seed-1177d267/sluice/internal/secret"
)

// Limits of what a task's log keeps of an answer.
const (
	loggedHeaders = 8 << 10
	loggedBody    = 64 << 10
)

// details are what the log says of one attempt, as a line of JSON. Times are milliseconds from its
// begin on.
type details struct {
	Method  string            `json:"method"`
	URL     string            `json:"url"`
	Status  int               `json:"status,omitempty"`
	Error   string            `json:"error,omitempty"`
	Times   times             `json:"ms"`
	Headers map[string]string `json:"headers,omitempty"`
	Body    string            `json:"body,omitempty"`
	Cut     bool              `json:"cut,omitempty"` // the body is longer

	began              time.Time
	name, connect, got atomic.Int64 // what Times will say; of connections that are made beside, too
}

// times are when the name was resolved, the connection was there, and the first byte and all of the
// answer had come. A connection that was there before has no name.
type times struct {
	Name      float64 `json:"name,omitempty"`
	Connect   float64 `json:"connect,omitempty"`
	FirstByte float64 `json:"first_byte,omitempty"`
	End       float64 `json:"end"`
}

func newDetails() *details { return &details{began: time.Now()} }

// trace notes when something happens to the requests of a context.
func (d *details) trace(ctx context.Context) context.Context {
	note := func(at *atomic.Int64) { at.Store(int64(time.Since(d.began))) }
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		DNSDone:              func(httptrace.DNSDoneInfo) { note(&d.name) },
		ConnectDone:          func(_, _ string, err error) { note(&d.connect) },
		TLSHandshakeDone:     func(tls.ConnectionState, error) { note(&d.connect) },
		GotFirstResponseByte: func() { note(&d.got) },
	})
}

// end notes how it ended.
func (d *details) end(a *answer, err error) {
	ms := func(d int64) float64 { return float64(d/int64(10*time.Microsecond)) / 100 }
	d.Times = times{ms(d.name.Load()), ms(d.connect.Load()), ms(d.got.Load()), ms(int64(time.Since(d.began)))}
	if err != nil {
		d.Error = err.Error()
	}
	if a == nil {
		return
	}
	d.Status, d.Headers = a.status, map[string]string{}
	left := loggedHeaders
	for _, name := range slices.Sorted(maps.Keys(a.header)) {
		value := strings.Join(a.header[name], ", ")
		if left -= len(name) + len(value); left < 0 {
			break
		}
		d.Headers[name] = strings.ToValidUTF8(value, "\uFFFD")
	}
	d.Cut = a.cut || len(a.body) > loggedBody
	d.Body = string(a.body[:min(len(a.body), 2*loggedBody)])
}

// text returns the line, without secrets. The body is masked before it is put into JSON: as a part
// of it, it would spell them in ways of its own.
func (d *details) text(masks []string) string {
	d.URL, d.Error, d.Body = secret.HideText(d.URL, masks), secret.HideText(d.Error, masks), secret.HideText(d.Body, masks)
	d.Body = strings.ToValidUTF8(d.Body[:min(len(d.Body), loggedBody)], "\uFFFD") // only now: a cut secret would not be found
	for name, value := range d.Headers {
		d.Headers[name] = secret.HideText(value, masks)
	}
	line, _ := jsontext.Marshal(d) // of nothing that could fail
	return string(line)
}
