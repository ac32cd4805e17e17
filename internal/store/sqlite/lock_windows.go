package sqlite

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// A byte far behind what is written is locked, since locks are mandatory here and the count of notices is read without one.
var lockedByte = windows.Overlapped{OffsetHigh: 1}

func lock(f *os.File) error { return lockFile(f, windows.LOCKFILE_EXCLUSIVE_LOCK) }

func tryLock(f *os.File) (bool, error) {
	err := lockFile(f, windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return false, nil
	}
	return err == nil, err
}

func lockFile(f *os.File, flags uint32) error {
	at := lockedByte
	return windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, &at)
}

func unlock(f *os.File) error {
	at := lockedByte
	return windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, &at)
}

// writable returns why the file may not be written to at all, if so.
func writable(path string) error {
	info, err := os.Stat(path)
	if err == nil && info.Mode().Perm()&0o200 == 0 {
		return os.ErrPermission
	}
	return err
}
