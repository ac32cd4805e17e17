//go:build unix

package auth

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// openRegular opens a file for reading, and waits for nobody if it is a pipe.
func openRegular(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
}

// private refuses a file that others may read or write, or that belongs to somebody else.
func private(path string, info fs.FileInfo, edit bool) error {
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Errorf("%s can be read or written by others (mode %#o), who could then log in as anybody; chmod 600 %s", path, mode, path)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if me := os.Geteuid(); ok && int(owner.Uid) != me && owner.Uid != 0 && (!edit || me != 0) {
		return fmt.Errorf("%s belongs to user %d, who could let anybody in; chown it to user %d, as whom this runs, or to root", path, owner.Uid, me)
	}
	return nil
}

// keepOwner gives a file owner, group and mode of the one that it replaces.
func keepOwner(f *os.File, was fs.FileInfo) error {
	old, ok := was.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	if int(old.Uid) != os.Geteuid() || int(old.Gid) != os.Getegid() {
		err := f.Chown(int(old.Uid), int(old.Gid))
		if err != nil && int(old.Uid) != os.Geteuid() { // of the group nothing depends: it may do nothing
			return err
		}
	}
	return f.Chmod(was.Mode().Perm())
}

// openLock opens a file to lock, and makes it if it does not exist. It follows no link, because
// root may edit a file in another user's folder.
func openLock(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
}

// lockFile waits until no other handle has the file locked. The lock goes with the handle.
func lockFile(f *os.File) error {
	for {
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// syncFolder has a folder's changes be on the disk.
func syncFolder(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := dir.Sync(); err != nil && !errors.Is(err, unix.EINVAL) { // some file systems have no such thing
		return err
	}
	return nil
}
