package dci

import (
	"io"
	"log/slog"
	"net"
	"net/http"
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
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	return c
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
	if !heard(first, time.Minute) || !heard(second, time.Minute) {
		t.Fatal("two are not let in")
	}
	third := raw(t, l.Addr().String(), ask)
	if heard(third, 300*time.Millisecond) {
		t.Error("a third is let in")
	}
	first.Close()
	if !heard(third, time.Minute) {
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
