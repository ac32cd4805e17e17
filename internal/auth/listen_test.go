//go:build unix

package auth

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestWhereAServerMayStart(t *testing.T) {
	some := &Access{Users: []User{{Name: "alice"}}, Tokens: make([]Token, 2)}
	proxied := &Access{Proxy: &Proxy{Header: "X-User", From: []string{"unix"}}}
	for _, c := range []struct {
		name  string
		setup Setup
		want  string // in the notice or the error
		fails bool
		loud  bool
	}{
		{"loopback without users", Setup{Listen: "127.0.0.1:8080"}, "all accounts on this machine may submit", false, false},
		{"all of 127/8", Setup{Listen: "127.1.2.3:0"}, "all accounts on this machine", false, false},
		{"loopback of IPv6", Setup{Listen: "[::1]:8080"}, "all accounts on this machine", false, false},
		{"loopback of IPv6 as IPv4", Setup{Listen: "[::ffff:127.0.0.1]:8080"}, "all accounts on this machine", false, false},
		{"localhost", Setup{Listen: "LocalHost:8080"}, "all accounts on this machine", false, false},
		{"a socket", Setup{Listen: "unix:/tmp/x"}, "your account, and root, may submit", false, false},
		{"a socket with users", Setup{Listen: "unix:/tmp/x", Access: some}, "let in are 1 user, 2 tokens", false, false},
		{"loopback with users", Setup{Listen: "127.0.0.1:8080", Access: some}, "let in are 1 user", false, false},
		{"a proxy's users", Setup{Listen: "unix:/tmp/x", Access: proxied}, "the proxy at unix names in X-User", false, false},
		{"all addresses with users and TLS", Setup{Listen: ":8080", Access: some, TLS: true}, "let in are", false, false},
		{"all addresses with users and --insecure", Setup{Listen: ":8080", Access: some, Insecure: true}, "let in are", false, true},
		{"all addresses", Setup{Listen: ":8080"}, "--access FILE", true, false},
		{"all addresses, written out", Setup{Listen: "0.0.0.0:8080"}, "--access FILE", true, false},
		{"all addresses of IPv6", Setup{Listen: "[::]:8080", TLS: true}, "--access FILE", true, false},
		{"a name", Setup{Listen: "mig01:8080", TLS: true}, "or listen on 127.0.0.1:8080 or unix:PATH", true, false},
		{"--insecure is for TLS, not for users", Setup{Listen: ":8080", Insecure: true}, "--access FILE", true, false},
		{"users without TLS", Setup{Listen: "192.0.2.1:8080", Access: some}, "--tls-cert FILE --tls-key FILE", true, false},
		{"a name that only looks local", Setup{Listen: "localhost.example.com:80"}, "--access FILE", true, false},
		{"a number that only looks local", Setup{Listen: "127.0.0.1.example.com:80"}, "--access FILE", true, false},
		{"nobody in the file", Setup{Listen: "127.0.0.1:80", Access: &Access{}}, "no user and no token", true, false},
		{"a proxy that names nobody", Setup{Listen: "127.0.0.1:80", Access: &Access{Proxy: &Proxy{}}}, "no user and no token", true, false},
		{"other names without users", Setup{Listen: "127.0.0.1:80", Hosts: []string{"localhost", "sluice.example.com"}}, "--host sluice.example.com", true, false},
		{"other names with users", Setup{Listen: "127.0.0.1:80", Hosts: []string{"sluice.example.com"}, Access: some}, "let in are", false, false},
		{"no port", Setup{Listen: "127.0.0.1"}, "write HOST:PORT", true, false},
		{"an empty port", Setup{Listen: "127.0.0.1:"}, "has no port", true, false},
		{"nothing", Setup{}, "is not an address", true, false},
		{"a socket without a path", Setup{Listen: "unix:"}, "has no path", true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Check(c.setup)
			text := got.Notice
			if err != nil {
				text = err.Error()
			}
			if (err != nil) != c.fails || !strings.Contains(text, c.want) || (got.Warning != "") != c.loud {
				t.Errorf("got %+v, %v; want %q", got, err, c.want)
			}
		})
	}
}

func TestASocketIsItsOwnersAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := Listen(t.Context(), "unix:"+path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(path)
	if err != nil || info.Mode() != fs.ModeSocket|0o600 {
		t.Errorf("the socket has mode %v, %v", info.Mode(), err)
	}
	if got := l.Addr().String(); got != path {
		t.Errorf("it listens on %s, want %s", got, path)
	}
	if conn, err := net.Dial("unix", path); err != nil {
		t.Error(err)
	} else {
		_ = conn.Close()
	}
	if _, err := Listen(t.Context(), "unix:"+path); err == nil || !strings.Contains(err.Error(), "another process serves this path") {
		t.Errorf("a second one: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestASocketThatNobodyServesIsReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	dead, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	dead.(*net.UnixListener).SetUnlinkOnClose(false)
	_ = dead.Close()
	l, err := Listen(t.Context(), "unix:"+path)
	if err != nil {
		t.Fatal(err)
	}
	// Closing does not remove a file that another process has put there.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	writeFile(t, path, "mine")
	_ = l.Close()
	if text, err := os.ReadFile(path); string(text) != "mine" {
		t.Errorf("the file is %q, %v", text, err)
	}
	if _, err := Listen(t.Context(), "unix:"+path); err == nil || !strings.Contains(err.Error(), "a file that is no socket") {
		t.Errorf("in the place of a file: %v", err)
	}
}

func TestOfManyThatStartAtOnceOneServes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	dead, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	dead.(*net.UnixListener).SetUnlinkOnClose(false)
	_ = dead.Close()
	var all sync.WaitGroup
	var serve atomic.Int32
	for range 8 {
		all.Go(func() {
			l, err := Listen(t.Context(), "unix:"+path)
			if err == nil {
				serve.Add(1)
				t.Cleanup(func() { _ = l.Close() })
			} else if !strings.Contains(err.Error(), "another process serves this path") {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := serve.Load(); got != 1 {
		t.Errorf("%d serve", got)
	}
}

func TestWhoStartsWaitsForWhoIsStartingInTheFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	folder, err := lockFolder(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	began := make(chan error)
	go func() {
		l, err := Listen(t.Context(), "unix:"+path)
		if err == nil {
			err = l.Close()
		}
		began <- err
	}()
	select {
	case err := <-began:
		t.Fatalf("another one started meanwhile: %v", err)
	case <-time.After(300 * time.Millisecond): // without the lock it takes a few
	}
	if err := folder.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-began; err != nil {
		t.Error(err)
	}
}

func TestSocketsThatAreRefused(t *testing.T) {
	dir := t.TempDir()
	open := filepath.Join(dir, "open")
	if err := errors.Join(os.Mkdir(open, 0o700), os.Chmod(open, 0o777)); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(open, "s"):                        "other users may change the folder",
		filepath.Join(dir, "nosuch", "s"):               "does not exist; make it first",
		filepath.Join(dir, strings.Repeat("long/", 30)): "does not exist",
		filepath.Join(longFolder(t, dir), "s"):          "the path is too long for a socket",
	} {
		if _, err := Listen(t.Context(), "unix:"+path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	for _, mode := range []fs.FileMode{0o777 | fs.ModeSticky, 0o775} { // as /tmp; as folders are where each has a group of one's own
		if err := os.Chmod(open, mode); err != nil {
			t.Fatal(err)
		}
		l, err := Listen(t.Context(), "unix:"+filepath.Join(open, "s"))
		if err != nil {
			t.Fatal(err)
		}
		_ = l.Close()
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can give a folder to another group")
	}
	if err := os.Chown(open, -1, 12345); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(t.Context(), "unix:"+filepath.Join(open, "s")); err == nil || !strings.Contains(err.Error(), "other users may change") {
		t.Errorf("another group's folder: %v", err)
	}
}

func longFolder(t *testing.T, dir string) string {
	dir = filepath.Join(dir, strings.Repeat("x", 100))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestListenOnLoopback(t *testing.T) {
	for _, listen := range []string{"127.0.0.1:0", "localhost:0"} {
		l, err := Listen(context.Background(), listen)
		if err != nil {
			t.Fatal(err)
		}
		if at := address(l.Addr().String()); !at.IsLoopback() {
			t.Errorf("%s is %s", listen, at)
		}
		_ = l.Close()
	}
}
