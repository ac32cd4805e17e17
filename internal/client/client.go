// Package client is a store over HTTP: a [Client] asks a server of Sluice's REST API for plans,
// tasks and queues. So a command works on a server as on a store. The client refuses the calls of a
// node, because nodes need the store itself.
//
// Package api owns the wire format, and the client decides nothing: its errors are those of the
// server's store. If a connection fails, the client repeats a request a few times, provided that
// the request does nothing twice. In a context of [Patient] it repeats for longer.
package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/backoff"
	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/store"
)

// Config says which server is asked, and as whom.
type Config struct {
	URL            string       // http://HOST:PORT, https://HOST, or unix:PATH of a socket; a path before the API's own may follow
	Token          string       // says who asks; or
	User, Password string       // these do, or those in the URL
	HTTP           *http.Client // default: one of its own
	Version        string       // of this program, for the server's log
}

// ErrURL means that the text names no server.
var ErrURL = errors.New("write http://HOST:PORT, https://HOST or unix:PATH")

// A Client is a store behind a server. Any number of goroutines may use it at once.
type Client struct {
	http  *http.Client
	base  string // without a slash at its end
	shown string // is it for people, without a password
	local bool   // on this host: nothing is worth compressing
	c     Config

	tries    int           // that a request is made at most
	pause    backoff.Retry // between them
	mostBody int           // of a request that adds tasks

	mostAnswer int64
}

var (
	_ store.Store        = (*Client)(nil)
	_ store.QueueDeleter = (*Client)(nil)
	_ store.Balance      = (*Client)(nil)
	_ store.Results      = (*Client)(nil)
	_ store.Packs        = (*Client)(nil)
	_ store.Waiter       = (*Client)(nil)
	_ store.Fitter       = (*Client)(nil)
	_ store.Refuser      = (*Client)(nil)
)

// New makes a client. Nothing is asked of the server yet. It returns ErrURL for a text that names none.
func New(c Config) (*Client, error) {
	cl := &Client{
		http: c.HTTP, c: c, tries: 4, pause: backoff.Retry{Initial: 200 * time.Millisecond, Factor: 3}, mostBody: api.TasksBody, mostAnswer: mostAnswer,
	}
	if err := cl.name(c.URL); err != nil {
		return nil, err
	}
	if strings.ContainsFunc(c.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("the token has blanks or other characters that no token has; give it as it was shown")
	}
	return cl, nil
}

// name reads the URL.
func (c *Client) name(text string) error {
	if path, ok := strings.CutPrefix(text, "unix:"); ok {
		if path = "/" + strings.TrimLeft(path, "/"); !strings.HasPrefix(text, "unix:/") {
			path = strings.TrimPrefix(text, "unix:")
		}
		if path == "" || path == "/" {
			return fmt.Errorf("%q is not the URL of a server: %w", text, ErrURL)
		}
		c.base, c.shown, c.local = "http://localhost", "unix:"+path, true
		c.dial(func(ctx context.Context, d *net.Dialer) (net.Conn, error) {
			return d.DialContext(ctx, "unix", filepath.FromSlash(path))
		})
		return nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("%q is not the URL of a server: %w", Redact(text), ErrURL)
	}
	if u.User != nil {
		c.c.User = u.User.Username()
		c.c.Password, _ = u.User.Password()
		u.User = nil
	}
	c.base = strings.TrimSuffix(strings.TrimRight(u.String(), "/"), api.Root)
	c.shown = c.base
	ip := net.ParseIP(u.Hostname())
	c.local = u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
	c.dial(nil)
	return nil
}

// dial makes the http.Client, unless one was given. It does not follow where a server sends it: a token would go along, and what is to be
// written become a look.
func (c *Client) dial(dial func(context.Context, *net.Dialer) (net.Conn, error)) {
	if c.http != nil {
		return
	}
	d := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}
	t := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: d.DialContext, TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: time.Minute,
		MaxIdleConnsPerHost: 4, ForceAttemptHTTP2: true, DisableCompression: c.local, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
	}
	if dial != nil {
		t.Proxy = nil
		t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, d) }
	}
	c.http = &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// Redact returns a server's URL without its password, for printing. A text may be no URL, as when
// the password has a slash that is not written %2F. Then everything before the last @ counts as a
// user and a password.
func Redact(text string) string {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		scheme, rest = "", text
		if strings.HasPrefix(text, "unix:") {
			return text
		}
	} else {
		scheme += "://"
	}
	end := len(rest)
	if slash := strings.IndexByte(rest, '/'); slash >= 0 && parses(text) {
		end = slash
	}
	at := strings.LastIndexByte(rest[:end], '@')
	if at < 0 {
		return text
	}
	user, _, secret := strings.Cut(rest[:at], ":")
	if secret {
		user += ":***"
	}
	return scheme + user + rest[at:]
}

func parses(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Host != ""
}

// String returns the server's URL without a password.
func (c *Client) String() string { return c.shown }

// Close implements store.Store.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	return nil
}
