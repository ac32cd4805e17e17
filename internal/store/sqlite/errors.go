package sqlite

import (
	"errors"
	"fmt"
	"syscall"

	"zombiezen.com/go/sqlite"

	"github.com/seed-1177d267/sluice/plan"
)

// allow says what lets a file be written that cannot be, for that reason.
func allow(why error) string {
	if errors.Is(why, syscall.EROFS) {
		return "its file system is read-only: mount it for writing, or copy the file to another"
	}
	return "look at the owner and permissions of the file and its folder"
}

// translate makes an error of the driver one of plan's where a caller can act on it, and names the file.
func (s *Store) translate(err error) error {
	if _, ok := errors.AsType[dbError](err); !ok {
		return err
	}
	if gone := s.there(); errors.Is(gone, plan.ErrStoreGone) { // whatever SQLite makes of that
		return gone
	}
	switch code := sqlite.ErrCode(err); code.ToPrimary() {
	case sqlite.ResultFull:
		return fmt.Errorf("%s: no room on its disk; make some and try again: %w: %w", s.path, plan.ErrFull, err)
	case sqlite.ResultIOErr:
		// Growing the index of the write-ahead log on a full disk is reported as this.
		if code == sqlite.ResultIOErrSHMSize {
			return fmt.Errorf("%s: no room on its disk for %s-shm; make some and try again: %w: %w", s.path, s.path, plan.ErrFull, err)
		}
		if code == sqlite.ResultIOErrWrite { // what EFBIG becomes too
			return fmt.Errorf("%s: a write failed; look at its disk, and at the limit on the size of files (ulimit -f): %w: %w", s.path, plan.ErrUnavailable, err)
		}
		return fmt.Errorf("%s: %w: %w", s.path, plan.ErrUnavailable, err)
	case sqlite.ResultNotADB:
		return fmt.Errorf("%s is not a SQLite database; name another file: %w: %w", s.path, plan.ErrUnavailable, err)
	case sqlite.ResultCorrupt:
		return fmt.Errorf("%s is damaged; restore it from a copy: %w: %w", s.path, plan.ErrUnavailable, err)
	case sqlite.ResultBusy:
		return fmt.Errorf("%s is locked by another program; close that: %w: %w", s.path, plan.ErrUnavailable, err)
	case sqlite.ResultCantOpen, sqlite.ResultPerm, sqlite.ResultReadOnly, sqlite.ResultAuth:
		path := s.unwritable()
		return fmt.Errorf("%s cannot be written; %s: %w: %w", path, allow(writable(path)), plan.ErrUnavailable, err)
	}
	return fmt.Errorf("%s: %w", s.path, err)
}
