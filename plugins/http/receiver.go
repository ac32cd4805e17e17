package http

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"code.dny.dev/ssrf"

	"github.com/seed-1177d267/sluice/internal/duration"
	"github.com/seed-1177d267/sluice/plan"
)

// readReceiver reads an address that nothing fills, by the rules of the param url.
func readReceiver(uri string) (*url.URL, error) {
	if e := expression.FindString(uri); e != "" {
		return nil, fmt.Errorf("%s: nothing fills the address of a receiver; write it out, with %%7B and %%7D for braces", e)
	}
	t, err := readTemplate(uri, &fields{}, false)
	if err != nil {
		return nil, err
	}
	return t.expand()
}

// CheckReceiver returns why Post could send nothing to an address, whatever a node may reach.
func CheckReceiver(uri string) error {
	_, err := readReceiver(uri)
	return err
}

// CheckReceiver returns why Post could send nothing to an address. A host that is a name is looked up by
// Post alone.
func (p *Plugin) CheckReceiver(uri string) error {
	to, err := readReceiver(uri)
	if err != nil {
		return err
	}
	host := strings.ToLower(strings.TrimSuffix(to.Hostname(), "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") { // RFC 6761, section 6.3
		host = "127.0.0.1"
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return nil
	}
	if err := p.guard.Load().SafeAddr(ip.Unmap()); err != nil {
		return reachable(err)
	}
	return nil
}

// reachable adds to the refusal of an address how to reach it all the same.
func reachable(err error) error {
	return fmt.Errorf("%w; name it with --allow-net, on each node and server", err)
}

// A Refused is the error of a request that was not answered with 2xx.
type Refused struct {
	Detail string
	After  time.Duration // as the receiver asked by Retry-After; 0: it did not ask
}

// Error implements error.
func (r *Refused) Error() string { return r.Detail }

// Post sends JSON to an address that nothing fills, by the rules of a task's request, with the
// Idempotency-Key. It returns nil if the answer is 2xx, and a Refused for any other answer.
func (p *Plugin) Post(ctx context.Context, uri, key string, body []byte) error {
	to, err := readReceiver(uri)
	if err != nil {
		return err
	}
	s := &settings{method: http.MethodPost, url: to, body: body, timeout: defaultTimeout}
	limited, cancel := context.WithTimeoutCause(ctx, s.timeout, errSlow)
	defer cancel()
	req, err := s.request(limited, &values{header: http.Header{"Idempotency-Key": {key}}})
	if err != nil {
		return err
	}
	got, err := p.do(req)
	if err != nil {
		switch {
		case errors.Is(context.Cause(limited), errSlow):
			return fmt.Errorf("%w: it may take %v", errSlow, s.timeout)
		case errors.Is(err, ssrf.ErrProhibitedIP):
			return reachable(err)
		}
		return err
	}
	defer got.Body.Close()
	a := &answer{status: got.StatusCode, header: got.Header, host: req.URL.Host, release: func() {}}
	defer func() { a.release() }()
	_ = p.readBody(limited, got, a) // the status says more than how the body ended
	if a.success() {
		return nil
	}
	return &Refused{a.detail(), duration.RetryAfter(a.header.Get("Retry-After"), time.Now(), plan.MaxAfter)}
}
