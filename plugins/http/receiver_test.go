package http

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestAReceiverIsAnAddressThatNothingFillsAndThatTheNodeReaches(t *testing.T) {
	p := New(Options{})
	defer p.Close()
	for _, c := range []struct{ uri, want string }{
		{"https://example.com/batches?of=acme", ""},
		{"http://198.41.0.4:8080", ""},
		{"ftp://example.com/", "does not begin with http:// or https:// and a host"},
		{"example.com", "does not begin with http:// or https:// and a host"},
		{"https://{host}/x", "{host}: nothing fills the address of a receiver; write it out, with %7B and %7D for braces"},
		{"https://example.com/{song}", "{song}: nothing fills the address of a receiver"},
		{"https://me:secret@example.com/", "a user name in it would be stored and shown"},
		{"https://example.com:99999/", "the port 99999 is not 1 to 65535"},
		{"https://example.com/a/../b", "leads upwards"},
		{"http://10.1.2.3/", "10.1.2.3 is not a permitted destination"},
		{"http://localhost:8080/", "name it with --allow-net, on each node and server"},
		{"http://[::1]/", "name it with --allow-net, on each node and server"},
		{"http://[::ffff:10.1.2.3]/", "10.1.2.3 is not a permitted destination"},
	} {
		switch err := p.CheckReceiver(c.uri); {
		case c.want == "" && err != nil:
			t.Errorf("%s is refused: %v", c.uri, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "headers")):
			t.Errorf("%s: got %v, want an error that says %q", c.uri, err, c.want)
		}
	}
	p.Allow(loopback...)
	if err := p.CheckReceiver("http://localhost:8080/"); err != nil {
		t.Errorf("an address that the node may reach is refused: %v", err)
	}
	if err := CheckReceiver("http://10.1.2.3/"); err != nil {
		t.Errorf("without a node the address is refused: %v", err)
	}
}

func TestAPostIsReceivedOrSaysWhyNot(t *testing.T) {
	var seen *http.Request
	var body []byte
	uri := receive(t, func(w http.ResponseWriter, r *http.Request) {
		seen = r
		body, _ = io.ReadAll(r.Body)
		switch r.URL.Path {
		case "/busy":
			w.Header().Set("Retry-After", "7")
			http.Error(w, "not now", http.StatusServiceUnavailable)
		case "/moved":
			http.Redirect(w, r, "/", http.StatusFound)
		}
	})
	p := newPlugin(t)
	if err := p.Post(t.Context(), uri+"/ok", "k1", []byte(`{"a":1}`)); err != nil {
		t.Fatal(err)
	}
	if seen.Method != "POST" || seen.Header.Get("Idempotency-Key") != "k1" || seen.Header.Get("Content-Type") != "application/json" || string(body) != `{"a":1}` {
		t.Errorf("the receiver got %s with %v and %s", seen.Method, seen.Header, body)
	}
	var refused *Refused
	if err := p.Post(t.Context(), uri+"/busy", "k1", nil); !errors.As(err, &refused) || refused.After != 7*time.Second || !strings.Contains(err.Error(), "not now") {
		t.Errorf("a busy receiver: %v", err)
	}
	if err := p.Post(t.Context(), uri+"/moved", "k1", nil); !errors.As(err, &refused) || !strings.Contains(err.Error(), "302") {
		t.Errorf("a redirect: %v", err)
	}
	p.Allow()
	if err := p.Post(t.Context(), uri, "k1", nil); err == nil || !strings.Contains(err.Error(), "--allow-net") && !strings.Contains(err.Error(), "EOF") {
		t.Logf("a connection that was kept open is used again: %v", err)
	}
}
