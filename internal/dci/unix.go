package dci

import (
	"net"
	"os"
	"path/filepath"
)

// listenPrivately makes a socket that only its owner can connect to. It is made in a folder that nobody else can enter, and only then
// moved to its place: between bind and chmod anybody could.
func listenPrivately(path string) (net.Listener, error) {
	dir, err := os.MkdirTemp(filepath.Dir(path), ".s")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	inside := filepath.Join(dir, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: inside, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // it is not there any more
	if err := os.Chmod(inside, 0o600); err != nil {
		return nil, err
	}
	if err := os.Rename(inside, path); err != nil {
		return nil, err
	}
	return &socket{l, path}, nil
}

// A socket is a listener that knows where it was moved to.
type socket struct {
	net.Listener
	path string
}

// Addr implements net.Listener.
func (s *socket) Addr() net.Addr { return &net.UnixAddr{Name: s.path, Net: "unix"} }

// Close implements net.Listener.
func (s *socket) Close() error {
	_ = os.Remove(s.path)
	return s.Listener.Close()
}
