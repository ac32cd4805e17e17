// Package http is the plugin that sends HTTP requests. Each attempt of a task sends one request,
// and follows redirects of a GET on the same host. The params of a task are:
//
//	url      the address, an RFC 6570 template; see url.go for its fields
//	method   GET, POST, PUT, PATCH or DELETE; by default POST if there is a body, else GET
//	body     what POST, PUT and PATCH send, as JSON; its fields also fill the url
//	headers  a mapping of names to texts, or to secrets as {"from_env": NAME} or {"from_file": PATH}
//	query    a mapping of names to the same, which is added to the url
//	timeout  how long one request may take, as in "30s", or a number of seconds; default 1 min
//	sign     a secret of Standard Webhooks, or a list of them: the request then has a signature
package http

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"code.dny.dev/ssrf"
	"golang.org/x/sync/semaphore"

	"github.com/seed-1177d267/sluice/internal/secret"
	"github.com/seed-1177d267/sluice/internal/textfile"
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
)

// Name is what plans call the plugin.
const Name = "http"

// Limits of what the plugin reads of an answer, and how long it tries.
const (
	mostHeaders   = 64 << 10 // an answer with more fails
	mostBody      = 1 << 20  // of the output; a longer body is cut
	mostRedirects = 10
	connectWithin = 30 * time.Second
)

// freeBody is how much of a body each attempt may hold. Bodies that are longer share sharedBodies,
// so that a thousand attempts at once do not fill the memory.
const (
	freeBody     = 64 << 10
	sharedBodies = 36 << 20
)

// Options say what the plugin may reach. The zero value of a field means its default.
type Options struct {
	Allow    []netip.Prefix // addresses that are reached although they are private; default none
	Resolver *net.Resolver  // default: the host's
}

// A Plugin sends requests. Any number of goroutines may call its methods at once.
type Plugin struct {
	client *http.Client
	guard  atomic.Pointer[ssrf.Guardian]
	large  *semaphore.Weighted
}

// New returns the plugin. Its connections are its own, and no proxy of the environment is used.
func New(o Options) *Plugin {
	p := &Plugin{large: semaphore.NewWeighted(sharedBodies)}
	p.Allow(o.Allow...)
	dialer := &net.Dialer{Timeout: connectWithin, Resolver: o.Resolver, Control: p.control}
	p.client = &http.Client{
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				return dialer.DialContext(traceDial(ctx), network, address)
			},
			ForceAttemptHTTP2: true, TLSHandshakeTimeout: connectWithin,
			MaxIdleConns: 1000, MaxIdleConnsPerHost: 1000, IdleConnTimeout: 90 * time.Second, MaxResponseHeaderBytes: mostHeaders,
		},
		CheckRedirect: follow,
	}
	return p
}

// Allow replaces the addresses that are reached although they are private.
func (p *Plugin) Allow(prefixes ...netip.Prefix) {
	var v4, v6 []netip.Prefix
	for _, a := range prefixes {
		if a.Addr().Is4() {
			v4 = append(v4, a)
		} else {
			v6 = append(v6, a)
		}
	}
	p.guard.Store(ssrf.New(ssrf.WithAnyPort(), ssrf.WithAllowedV4Prefixes(v4...), ssrf.WithAllowedV6Prefixes(v6...)))
}

// Close ends the connections that no request uses.
func (p *Plugin) Close() error { p.client.CloseIdleConnections(); return nil }

// Silent implements plugins.Silent.
func (*Plugin) Silent() {}

// control refuses addresses that the node may not reach, after a name was resolved.
func (p *Plugin) control(network, address string, c syscall.RawConn) error {
	return p.guard.Load().Safe(network, address, c)
}

// follow says which redirects are followed: those of a GET on the same host. Any other is the
// answer.
func follow(next *http.Request, before []*http.Request) error {
	first := before[0]
	if first.Method != http.MethodGet || next.URL.Host != first.URL.Host || len(before) > mostRedirects ||
		next.URL.Scheme != first.URL.Scheme && next.URL.Scheme != "https" {
		return http.ErrUseLastResponse
	}
	return nil
}

// Run implements plugins.Plugin. An answer of 2xx is success, and the output has its status and its
// body. Any other end is a failure. It is Final unless another attempt may end better.
func (p *Plugin) Run(ctx context.Context, t *plugins.Task) plan.Result {
	s, _, err := readSettings(t.Params, nil, false)
	if err != nil {
		return plan.Result{Status: plan.Failed, Reason: plan.ReasonInput, Detail: err.Error(), Final: true}
	}
	v, err := s.read(ctx, t.Secrets)
	switch {
	case err != nil && ctx.Err() != nil:
		return plan.Result{Status: plan.Terminated, Detail: err.Error()}
	case err != nil: // another node may have the secret
		return plan.Result{Status: plan.Failed, Reason: plan.ReasonError, Detail: fmt.Sprintf("on node %s: %v", t.Node, err), Lacks: plugins.LacksOf(err)}
	}
	limited, cancel := context.WithTimeoutCause(ctx, s.timeout, errSlow)
	defer cancel()
	d := newDetails()
	a, err := p.send(limited, t, s, v, d)
	if a != nil {
		defer a.release()
		if a.cut || err != nil {
			a.body = secret.WithoutBegun(a.body, v.masks) // later it would not be found as a secret
		}
	}
	t.Log.Append(plan.System, d.line(a, err, v.masks))
	switch {
	case err == nil || a == nil:
	case a.success(): // the receiver has accepted the request: the body, or its end, changes nothing
		a.cut, err = true, nil
	case ctx.Err() == nil:
		err = nil // the status says more than how the body ended
	}
	if err != nil {
		r := failure(ctx, limited, s, err)
		r.Detail = secret.HideText(r.Detail, v.masks)
		return r
	}
	r := a.result(time.Now())
	if secret.Holds(r.Output, v.secrets) {
		r.Output = a.output(nil) // the request was received: it must not fail for this
		t.Log.Append(plan.System, "the answer holds a secret of the params: its body is not kept")
	}
	return r
}

// send sends the request and reads the answer. It may return an answer with an error: one whose
// body did not end well.
func (p *Plugin) send(ctx context.Context, t *plugins.Task, s *settings, v *values, d *details) (*answer, error) {
	req, err := s.request(d.trace(ctx), v)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errRequest, err)
	}
	id := t.ID.String()
	req.Header["Idempotency-Key"] = []string{id}
	req.Header["Sluice-Attempt"] = []string{strconv.Itoa(t.Attempt)}
	sign(req.Header, v.keys, id, time.Now(), s.sent())
	d.method, d.url = req.Method, req.URL.String()
	if len(v.secrets) == 0 {
		d.sent = s.sent()
	}
	got, err := p.do(req)
	if err != nil {
		return nil, err
	}
	defer got.Body.Close()
	a := &answer{status: got.StatusCode, header: got.Header, host: req.URL.Host, masks: v.masks, release: func() {}}
	for before := got.Request.Response; before != nil; before = before.Request.Response {
		a.redirects++
	}
	return a, p.readBody(ctx, got, a)
}

// do sends a request. No redirect of any other method than GET is followed, so that these need no copies
// of the headers, as http.Client makes them for each request.
func (p *Plugin) do(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodGet {
		got, err := p.client.Transport.RoundTrip(req)
		var record tls.RecordHeaderError
		if errors.As(err, &record) && string(record.RecordHeader[:]) == "HTTP/" {
			err = http.ErrSchemeMismatch // as http.Client says it
		}
		return got, err
	}
	got, err := p.client.Do(req)
	var outer *url.Error // which repeats the address
	if errors.As(err, &outer) {
		err = outer.Err
	}
	return got, err
}

// readBody reads at most mostBody bytes of a body. An attempt takes its share of the memory for
// long bodies at once, so that no two attempts wait for each other.
func (p *Plugin) readBody(ctx context.Context, got *http.Response, a *answer) (err error) {
	defer func() { a.body = textfile.WithoutMark(a.body) }()
	from := got.Body
	if n := got.ContentLength; 0 <= n && n < freeBody {
		a.body = make([]byte, n+1) // with a byte to see the end, after which the connection has the next request
		read, err := io.ReadFull(from, a.body)
		if a.body = a.body[:read]; int64(read) >= n {
			return nil
		}
		return err
	}
	if a.body, err = io.ReadAll(io.LimitReader(from, freeBody)); err != nil || len(a.body) < freeBody {
		return err
	}
	const share = 3 * mostBody // the body, the output, and what reading wastes
	if err := p.large.Acquire(ctx, share); err != nil {
		return err
	}
	a.release = func() { p.large.Release(share) }
	more, err := io.ReadAll(io.LimitReader(from, mostBody-freeBody+1))
	if a.body = append(a.body, more...); len(a.body) > mostBody {
		a.body, a.cut, err = a.body[:mostBody], true, nil
	}
	return err
}

// Refuse implements plugins.Refuser.
func (*Plugin) Refuse(params json.RawMessage, given map[string]json.RawMessage) (key string, err error) {
	_, key, err = readSettings(params, given, true)
	return key, err
}

// Check implements plugins.Checker. A secret that this process does not have will never appear, and
// a missing file can only be made by a task that runs before.
func (*Plugin) Check(params json.RawMessage, first bool) (lacks []plugins.Lack) {
	s, key, err := readSettings(params, nil, true)
	if err != nil && key != "url" { // whose fields may be those of the plan
		return nil // it is refused for that
	}
	for name, v := range s.all() {
		if !v.Secret() || v.FromFile != "" && !first || strings.Contains(v.FromEnv+v.FromFile, "${{") {
			continue
		}
		if err := v.There(); err != nil {
			lacks = append(lacks, plugins.Lack{Key: "params", Variable: name, Err: err})
		}
	}
	return lacks
}
