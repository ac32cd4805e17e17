package client

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/plan"
)

// How long an answer may take, all of it.
const (
	lookTime  = 2 * time.Minute
	writeTime = 15 * time.Minute // of many tasks, or documents to delete
)

// mostAnswer is the most bytes of an answer that the client reads. A page has at most api.MostPage
// tasks, and most of them are small. A larger answer is not from a server of Sluice, or would fill
// this program's memory.
const mostAnswer = 1 << 30

// leastGzip is how many bytes a request has that is worth compressing.
const leastGzip = 8 << 10

// A request is one thing that is asked.
type request struct {
	method, path string // the path below api.Root, escaped
	query        url.Values
	match        string // If-Match
	body         any
	stream       *io.SectionReader // the body, instead, as it is
	again        bool              // it may be made again whatever became of it: doing it twice does it once
	timeout      time.Duration
	unread       bool // nobody wants its answer but for the status
}

// in makes a path of words, which may be anything.
func in(words ...string) string {
	var b strings.Builder
	for _, w := range words {
		b.WriteByte('/')
		b.WriteString(url.PathEscape(w))
	}
	return b.String()
}

// get asks for what changes nothing.
func get[T any](ctx context.Context, c *Client, query url.Values, path ...string) (out T, err error) {
	err = c.do(ctx, &request{method: "GET", path: in(path...), query: query, again: true, timeout: lookTime}, &out)
	return out, err
}

// do makes the request, again if need be, and reads its answer into out, unless that is nil.
func (c *Client) do(ctx context.Context, r *request, out any) error {
	body, zipped, err := c.encode(r.body)
	if err != nil {
		return err
	}
	r.unread = out == nil
	return c.trying(ctx, r, func() error {
		text, err := c.once(ctx, r, body, zipped)
		if err != nil || out == nil {
			return err
		}
		if err := json.Unmarshal(text, out); err != nil {
			return c.nonsense(err)
		}
		if lacks(text, out) {
			return c.nonsense(errLacks)
		}
		return nil
	})
}

// lacks reports whether an answer has none of the fields that all answers of its type have, so that it says
// nothing. Only an answer that was decoded to nothing is read again for that.
func lacks(text []byte, out any) bool {
	is := reflect.ValueOf(out).Elem()
	if !is.IsZero() {
		return false
	}
	var said map[string]json.RawMessage
	_ = json.Unmarshal(text, &said) // null, or an object, which was decoded before
	return !slices.ContainsFunc(reflect.VisibleFields(is.Type()), func(f reflect.StructField) bool {
		name, omitted, _ := strings.Cut(f.Tag.Get("json"), ",")
		_, there := said[name]
		return there && omitted == ""
	})
}

// nonsense is the error of an answer that no server of Sluice gives.
func (c *Client) nonsense(why error) error {
	return fmt.Errorf("the server %s did not answer as a server of Sluice does: %w", c.shown, why)
}

// errLacks is an answer with other fields than those of its route, as another program may give.
var errLacks = errors.New("its answer has none of the fields of such an answer")

// errStandsStill is a page that says of itself that it is the next one.
var errStandsStill = errors.New("its list does not end")

// trying makes a request, some times where it fails and may be made again.
func (c *Client) trying(ctx context.Context, r *request, do func() error) error {
	for tries := c.tryingFor(ctx); ; {
		err := do()
		if err == nil || ctx.Err() != nil || !mayTryAgain(r, err) && !tries.outlast(r, err) {
			return err
		}
		pause, again := tries.next(err)
		if !again {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// encode writes a request's body, once for all tries.
func (c *Client) encode(body any) (text []byte, zipped bool, err error) {
	if body == nil {
		return nil, false, nil
	}
	if text, err = json.Marshal(body); err != nil || c.local || len(text) < leastGzip {
		return text, false, err
	}
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed) // the level is one
	_, _ = z.Write(text)                            // to memory
	_ = z.Close()
	return b.Bytes(), true, nil
}

// once makes the request once and returns the whole of its answer.
func (c *Client) once(ctx context.Context, r *request, body []byte, zipped bool) ([]byte, error) {
	limited, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	answer, err := c.send(limited, r, body, zipped)
	if err != nil {
		return nil, c.unanswered(ctx, r, err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, c.mostAnswer+1))
	if answer.StatusCode/100 == 2 && r.unread {
		return nil, nil // the server has done it, however its answer ends
	}
	if err != nil {
		return nil, c.unanswered(ctx, r, &cutError{err})
	}
	if int64(len(text)) > c.mostAnswer {
		return nil, c.nonsense(fmt.Errorf("it is longer than %d bytes", c.mostAnswer))
	}
	if answer.StatusCode/100 != 2 {
		return nil, c.refused(answer, text)
	}
	return text, nil
}

func (c *Client) send(ctx context.Context, r *request, body []byte, zipped bool) (*http.Response, error) {
	address := c.base + api.Root + r.path
	if len(r.query) > 0 {
		address += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if r.stream != nil {
		req.Body = io.NopCloser(io.NewSectionReader(r.stream, 0, r.stream.Size()))
		req.ContentLength, req.GetBody = r.stream.Size(), nil
	}
	if len(body) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	if zipped {
		req.Header.Set("Content-Encoding", "gzip")
	}
	if r.match != "" {
		req.Header.Set("If-Match", r.match)
	}
	req.Header.Set("User-Agent", strings.TrimSuffix("sluice/"+c.c.Version, "/"))
	switch {
	case c.c.Token != "":
		req.Header.Set("Authorization", "Bearer "+c.c.Token)
	case c.c.User != "":
		req.SetBasicAuth(c.c.User, c.c.Password)
	}
	return c.http.Do(req)
}

// An awayError means that the server did not answer, or not as a whole. It is a plan.ErrUnavailable.
type awayError struct {
	text  string
	cause error // nil: something on the way answered for it
}

func (e *awayError) Error() string { return e.text }

func (e *awayError) Unwrap() []error {
	if e.cause == nil {
		return []error{plan.ErrUnavailable}
	}
	return []error{plan.ErrUnavailable, e.cause}
}

// A cutError is an answer that ended before it was whole.
type cutError struct{ err error }

func (e *cutError) Error() string { return "its answer is cut off: " + e.err.Error() }
func (e *cutError) Unwrap() error { return e.err }

// unanswered is the error of a request that got no answer; ctx is the caller's.
func (c *Client) unanswered(ctx context.Context, r *request, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if asked, ok := errors.AsType[*url.Error](err); ok { // it names the URL once more
		err = asked.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return &awayError{fmt.Sprintf("the server %s has not answered in %v", c.shown, r.timeout), nil}
	}
	text := err.Error()
	if host := new(net.OpError); errors.As(err, &host) && host.Op == "dial" && host.Err != nil {
		text = host.Err.Error()
	}
	if unknown := (x509.UnknownAuthorityError{}); errors.As(err, &unknown) {
		text += "; an authority of your own is named by SSL_CERT_FILE, its certificate's file, or added to the system's"
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		text += "; start sluice serve there, or check the host and the port"
	}
	return &awayError{fmt.Sprintf("the server %s does not answer: %s", c.shown, text), err}
}

// mayTryAgain reports whether a failed request may be repeated: it did not leave, or its fate is
// unknown and it does nothing twice.
func mayTryAgain(r *request, err error) bool {
	var away *awayError
	var op *net.OpError
	var cert *tls.CertificateVerificationError
	switch {
	case !errors.As(err, &away) || errors.As(err, &cert):
		return false
	case errors.As(err, &op) && op.Op == "dial":
		var dns *net.DNSError
		return !errors.As(err, &dns) || !dns.IsNotFound
	}
	return r.again
}

// refused is the error of an answer of no success.
func (c *Client) refused(answer *http.Response, text []byte) error {
	var p api.Problem
	if strings.HasPrefix(answer.Header.Get("Content-Type"), "application/problem+json") && json.Unmarshal(text, &p) == nil && p.Code != "" {
		switch p.Status {
		case http.StatusUnauthorized:
			return fmt.Errorf("%w; say who asks by --token-file FILE or SLUICE_TOKEN, or by http://USER:PASSWORD@HOST", &p)
		case http.StatusForbidden:
			return fmt.Errorf("%w; give --token-file FILE or SLUICE_TOKEN of a user who may", &p)
		}
		return &p
	}
	switch status := answer.StatusCode; {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return fmt.Errorf("%w: %s; give --token-file FILE or SLUICE_TOKEN, or http://USER:PASSWORD@HOST",
			api.NewProblem(status, api.CodeUnauthorized, "the server %s does not let this in", c.shown), answer.Status)
	case status == http.StatusRequestEntityTooLarge:
		return api.NewProblem(status, api.CodeTooLarge, "the request is too large for %s, or for what is before it", c.shown)
	case status == http.StatusBadGateway, status == http.StatusServiceUnavailable, status == http.StatusGatewayTimeout:
		return &awayError{fmt.Sprintf("the server %s does not answer: %s", c.shown, answer.Status), nil}
	case status/100 == 3:
		return fmt.Errorf("the server %s redirects to %s; name that server", c.shown, Redact(answer.Header.Get("Location")))
	case status == http.StatusBadRequest && answer.Request != nil && answer.Request.URL.Scheme == "http": // as Go's server answers who speaks no TLS
		return fmt.Errorf("%s is no server of Sluice, or one that is asked by https://", c.shown)
	}
	return fmt.Errorf("%s is no server of Sluice; it answers %s", c.shown, answer.Status)
}
