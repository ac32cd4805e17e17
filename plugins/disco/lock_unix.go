//go:build unix

package disco

import (
	"os"

	"golang.org/x/sys/unix"
)

// The kinds of locks. try is added to one that is not waited for.
const (
	shared    = unix.LOCK_SH
	exclusive = unix.LOCK_EX
	try       = unix.LOCK_NB
)

// lock locks a file, which it makes, and returns a function that releases it. A file that was
// deleted meanwhile is made and locked again.
func lock(path string, how int) (unlock func(), err error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		err = unix.Flock(int(f.Fd()), how)
		for err == unix.EINTR {
			err = unix.Flock(int(f.Fd()), how)
		}
		if err != nil {
			f.Close()
			return nil, os.NewSyscallError("flock", err)
		}
		locked, err := f.Stat()
		if there, now := os.Stat(path); err == nil && now == nil && os.SameFile(locked, there) {
			return func() { f.Close() }, nil
		}
		f.Close()
	}
}
