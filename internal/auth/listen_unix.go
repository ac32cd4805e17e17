//go:build unix

package auth

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// listenUnix makes the socket in a folder that only this process can use, sets its mode, and moves
// it to its place. So others can connect at no instant, and no umask changes the files of other
// goroutines.
func listenUnix(ctx context.Context, path string) (_ net.Listener, failed error) {
	path, err := filepath.Abs(path) // the process may go elsewhere before it is closed
	if err != nil {
		return nil, err
	}
	folder, err := lockFolder(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("--listen unix:%s: %w", path, err)
	}
	defer folder.Close()
	if err := unserved(ctx, path); err != nil {
		return nil, err
	}
	private, err := os.MkdirTemp(filepath.Dir(path), ".sl") // with mode 0700
	if err != nil {
		return nil, fmt.Errorf("--listen unix:%s: %w", path, err)
	}
	defer os.RemoveAll(private)
	first := filepath.Join(private, "s")
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", first)
	if errors.Is(err, unix.EINVAL) {
		return nil, fmt.Errorf("--listen unix:%s: the path is too long for a socket, which takes about 80 bytes; choose a shorter one", path)
	}
	if err != nil {
		return nil, fmt.Errorf("--listen unix:%s: %w", path, err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false) // of the first path
	defer func() {
		if failed != nil {
			_ = l.Close()
		}
	}()
	if err := os.Chmod(first, 0o600); err != nil {
		return nil, err
	}
	info, err := os.Lstat(first)
	if err != nil {
		return nil, err
	}
	if err := os.Rename(first, path); err != nil {
		return nil, err
	}
	return &socket{Listener: l, path: path, info: info}, nil
}

// unserved refuses a path at which there is something else than a socket that nobody serves any more.
func unserved(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode()&fs.ModeSocket == 0:
		return fmt.Errorf("--listen unix:%s: a file that is no socket has this path; choose another path", path)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if errors.Is(err, unix.ECONNREFUSED) {
		return nil // the server of the socket has died
	}
	if err == nil {
		_ = conn.Close()
	}
	return fmt.Errorf("--listen unix:%s: another process serves this path; stop that process, or choose another path", path)
}

// lockFolder keeps others out who start to serve in a folder at the same time. It refuses one in which anybody may replace the socket by
// one of his own.
func lockFolder(path string) (*os.File, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the folder %s does not exist; make it first", path)
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Mode()&fs.ModeSticky == 0 && changedByOthers(info) {
		err = fmt.Errorf("other users may change the folder %s (mode %#o), and put their own socket there; chmod go-w it, or choose another", path, info.Mode().Perm())
	}
	for tries := 0; err == nil; tries++ {
		switch err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
		case err == nil:
			return f, nil
		case !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR):
		case tries == 100: // 10 s: nobody has it for long but who means harm
			err = fmt.Errorf("another process has the folder %s locked; end it, or choose another folder", path)
		default:
			time.Sleep(100 * time.Millisecond)
			err = nil
		}
	}
	_ = f.Close()
	return nil, err
}

// changedByOthers reports whether others may put something into a folder. A folder that the user's
// own group may write counts as the user's: where people share a group, folders are not writable
// for the group.
func changedByOthers(info fs.FileInfo) bool {
	owner, ok := info.Sys().(*syscall.Stat_t)
	ours := ok && int(owner.Gid) == os.Getegid()
	return info.Mode().Perm()&0o002 != 0 || info.Mode().Perm()&0o020 != 0 && !ours
}

// A socket takes its file with it when it is closed.
type socket struct {
	net.Listener
	path string
	info fs.FileInfo
}

// Addr implements net.Listener.
func (s *socket) Addr() net.Addr { return &net.UnixAddr{Name: s.path, Net: "unix"} }

// Close implements net.Listener. It leaves alone what another process has put in the socket's place.
func (s *socket) Close() error {
	if info, err := os.Lstat(s.path); err == nil && os.SameFile(info, s.info) {
		_ = os.Remove(s.path) // before nobody answers: who starts now finds nothing
	}
	return s.Listener.Close()
}
