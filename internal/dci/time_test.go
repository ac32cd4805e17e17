package dci

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// raw connects to a server, sends a text, and returns the connection, which gives up after a time that is over for nobody.
func raw(t *testing.T, address, text string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestABodyThatDoesNotComeIsNotWaitedFor(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/unread", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	mux.HandleFunc("/read", func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err == nil {
			t.Error("the body is said to be there")
		}
		w.WriteHeader(http.StatusRequestTimeout)
	})
	s := httptest.NewServer(timely(mux, 200*time.Millisecond, time.Minute))
	defer s.Close()
	for _, request := range []string{
		"POST /unread HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n{",
		"GET /unread HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc",
		"POST /read HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n{",
	} {
		answer, err := io.ReadAll(raw(t, s.Listener.Addr().String(), request))
		if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 40") {
			t.Errorf("%q: %q, %v", request, answer, err)
		}
	}
}

func TestABodyThatComesSlowlyHasTheTimeThatItTakes(t *testing.T) {
	const part = leastRate / 2 // half a second more
	s := httptest.NewServer(timely(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, n, " ", err)
	}), 2*time.Second, time.Minute))
	defer s.Close()
	c := raw(t, s.Listener.Addr().String(), fmt.Sprintf("POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: %d\r\n\r\n", 12*part))
	for range 12 {
		if _, err := c.Write(make([]byte, part)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(250 * time.Millisecond)
	}
	if answer, err := io.ReadAll(c); err != nil || !strings.HasSuffix(string(answer), fmt.Sprint(12*part, " <nil>")) {
		t.Errorf("%q, %v", answer, err)
	}
}

// How long a handler takes is neither the body's time nor the answer's, also where it sets a deadline for the body itself.
func TestAHandlerMayTakeItsTime(t *testing.T) {
	s := httptest.NewServer(timely(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(200 * time.Millisecond))
		if _, err := io.ReadAll(r.Body); err != nil {
			t.Error(err)
		}
		select {
		case <-r.Context().Done():
			t.Error("the caller is said to be gone")
		case <-time.After(time.Second):
		}
		fmt.Fprint(w, "done")
	}), 200*time.Millisecond, 200*time.Millisecond))
	defer s.Close()
	for range 2 { // over one connection
		a, err := http.Post(s.URL, "text/plain", strings.NewReader("body"))
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(a.Body); err != nil || string(text) != "done" {
			t.Errorf("%q, %v", text, err)
		}
		a.Body.Close()
	}
}

func TestACrowdLetsInSoMany(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	all := newCrowd(l, 2, slog.New(slog.DiscardHandler))
	s := &http.Server{Handler: http.NotFoundHandler(), ConnState: all.state}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(all) }()
	const ask = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
	heard := func(c net.Conn, within time.Duration) bool {
		_ = c.SetReadDeadline(time.Now().Add(within))
		n, _ := c.Read(make([]byte, 1))
		return n > 0
	}
	first, second := raw(t, l.Addr().String(), ask), raw(t, l.Addr().String(), ask)
	if !heard(first, 20*time.Second) || !heard(second, 20*time.Second) {
		t.Fatal("two are not let in")
	}
	third := raw(t, l.Addr().String(), ask)
	if heard(third, 300*time.Millisecond) {
		t.Error("a third is let in")
	}
	first.Close()
	if !heard(third, 20*time.Second) {
		t.Error("the third is not let in when the first has gone")
	}
	raw(t, l.Addr().String(), ask) // waits at the end
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != http.ErrServerClosed {
		t.Error(err)
	}
}

func TestHalfOfTheFilesAreNotForConnections(t *testing.T) {
	if n := connections(); n < 1 || n > mostConnections {
		t.Errorf("there may be %d connections", n)
	}
}
