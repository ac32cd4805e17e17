package http

import (
	"context"
	"crypto/tls"
	"net/http/httptrace"
	"slices"
	"strconv"
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

// details are what the log says of one attempt. Times are nanoseconds from its begin on. Connections
// that are made beside note theirs, too; one that was there before has no name.
type details struct {
	method, url              string
	sent                     []byte // the body; nil: it has secrets, or there is none
	began                    time.Time
	name, connect, firstByte atomic.Int64
}

func newDetails() *details { return &details{began: time.Now()} }

// detailsOf is the key of the details in the context of their requests.
type detailsOf struct{}

func (d *details) note(at *atomic.Int64) { at.Store(int64(time.Since(d.began))) }

// trace notes when something happens to the requests of a context.
func (d *details) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(context.WithValue(ctx, detailsOf{}, d), &httptrace.ClientTrace{
		TLSHandshakeDone:     func(tls.ConnectionState, error) { d.note(&d.connect) },
		GotFirstResponseByte: func() { d.note(&d.firstByte) },
	})
}

// traceDial notes what comes before a connection is there, in the details of the request that it is made
// for. Most requests have a connection, and are not to pay for this.
func traceDial(ctx context.Context) context.Context {
	d, ok := ctx.Value(detailsOf{}).(*details)
	if !ok {
		return ctx
	}
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		DNSDone:     func(httptrace.DNSDoneInfo) { d.note(&d.name) },
		ConnectDone: func(string, string, error) { d.note(&d.connect) },
	})
}

// line returns the line of JSON, without secrets. A text is masked before it is put into JSON: as a
// part of it, it would spell them in ways of its own.
func (d *details) line(a *answer, err error, masks []string) string {
	var body string
	if a != nil {
		body = secret.HideText(string(a.body[:min(len(a.body), 2*loggedBody)]), masks)
		body = strings.ToValidUTF8(body[:min(len(body), loggedBody)], "\uFFFD") // only now: a cut secret would not be found
	}
	b := slices.Grow(make([]byte, 0, 1<<10), 512+len(body)+len(body)/8) // mostly on the stack
	text := func(key, text string) { b = jsontext.AppendText(append(b, key...), text) }
	ms := func(key string, at int64) {
		b = strconv.AppendFloat(append(b, key...), float64(at/int64(10*time.Microsecond))/100, 'f', -1, 64)
	}
	text(`{"method":`, d.method)
	text(`,"url":`, secret.HideText(d.url, masks))
	if a != nil {
		b = strconv.AppendInt(append(b, `,"status":`...), int64(a.status), 10)
	}
	if err != nil {
		text(`,"error":`, secret.HideText(err.Error(), masks))
	}
	b = append(b, `,"ms":{`...)
	for _, t := range [...]struct {
		key string
		at  int64
	}{{`"name":`, d.name.Load()}, {`"connect":`, d.connect.Load()}, {`"first_byte":`, d.firstByte.Load()}} {
		if t.at >= int64(10*time.Microsecond) {
			ms(t.key, t.at)
			b = append(b, ',')
		}
	}
	ms(`"end":`, int64(time.Since(d.began)))
	b = append(b, '}')
	if a != nil {
		b = a.appendHeaders(b, masks)
	}
	if body != "" {
		text(`,"body":`, body)
	}
	if len(d.sent) > 0 && len(d.sent) <= loggedBody && (a == nil || !a.success()) { // a person may change it before the next try
		text(`,"sent":`, string(d.sent))
	}
	if a != nil && (a.cut || len(a.body) > loggedBody) {
		b = append(b, `,"cut":true`...)
	}
	return string(append(b, '}', '\n'))
}

// appendHeaders writes the headers that the log keeps, as JSON.
func (a *answer) appendHeaders(b []byte, masks []string) []byte {
	left, next := loggedHeaders, `,"headers":{`
	names := make([]string, 0, 16) // mostly on the stack
	for name := range a.header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		value := strings.Join(a.header[name], ", ")
		if left -= len(name) + len(value); left < 0 {
			break
		}
		b = append(jsontext.AppendText(append(b, next...), name), ':')
		b = jsontext.AppendText(b, secret.HideText(strings.ToValidUTF8(value, "\uFFFD"), masks))
		next = ","
	}
	if next == "," {
		b = append(b, '}')
	}
	return b
}
