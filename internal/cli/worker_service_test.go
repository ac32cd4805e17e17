//go:build unix

package cli

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A notified is a service manager, which reads what a node told it in that order.
type notified struct{ *net.UnixConn }

func newNotified(t *testing.T) notified {
	t.Helper()
	dir, err := os.MkdirTemp("", "n") // the name of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	name := &net.UnixAddr{Name: filepath.Join(dir, "s"), Net: "unixgram"}
	conn, err := net.ListenUnixgram(name.Net, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	t.Setenv("NOTIFY_SOCKET", name.Name)
	return notified{conn}
}

// heard returns the first lines of what was told until now.
func (n notified) heard(t *testing.T, s *service) (lines []string) {
	t.Helper()
	s.tell("SO FAR")
	_ = n.SetReadDeadline(time.Now().Add(time.Minute))
	for b := make([]byte, 4096); ; {
		size, err := n.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		line, _, _ := strings.Cut(string(b[:size]), "\n")
		if line == "SO FAR" {
			return lines
		}
		lines = append(lines, line)
	}
}

func TestAServiceThatEndsHasSaidThatItStops(t *testing.T) {
	m := newNotified(t)
	for range 100 {
		s := newService(slog.New(slog.DiscardHandler), time.Second)
		ctx, stop := context.WithCancel(t.Context())
		over := s.stopsWith(ctx)
		stop()
		over()
		if got := strings.Join(m.heard(t, s), " "); got != "STOPPING=1" {
			t.Fatalf("its manager heard %q when it ended, want that it stops, once", got)
		}
	}
	s := newService(slog.New(slog.DiscardHandler), time.Second)
	s.stopsWith(t.Context())()
	if got := m.heard(t, s); len(got) > 0 {
		t.Errorf("its manager heard %q of a node that nobody stopped", got)
	}
}

func TestAServiceIsNotHeldUpByAConfigurationThatIsRead(t *testing.T) {
	m := newNotified(t)
	s := newService(slog.New(slog.DiscardHandler), time.Second)
	reload := func(during func()) {
		reads, read, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			s.reload(func() {
				close(reads)
				select {
				case <-read:
				case <-time.After(time.Minute): // what waits for it is not to wait for ever
				}
			})
		}()
		<-reads
		during()
		close(read)
		<-done
	}
	hears := func(want ...string) {
		t.Helper()
		if got := m.heard(t, s); strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("its manager heard %q, want %q", got, want)
		}
	}
	reload(func() { s.ready(); hears("READY=1") })
	hears() // it had not been told of that
	reload(func() { s.ready(); hears("RELOADING=1") })
	hears("READY=1")
	reload(func() { s.stopping(); hears("RELOADING=1", "STOPPING=1") })
	s.ready()
	hears()
}
