package sqlite

import (
	"errors"
	"fmt"

	sqlite "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/seed-1177d267/sluice/plan"
)

// translate makes an error of the driver one of plan's where a caller can act on it, and names the file.
func (s *Store) translate(err error) error {
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return err
	}
	if gone := s.there(); errors.Is(gone, plan.ErrStoreGone) { // whatever SQLite makes of that
		return gone
	}
	switch code := e.Code(); code & 0xff {
	case lib.SQLITE_FULL:
		return fmt.Errorf("%s: no room on its disk; make some and try again: %w: %w", s.path, plan.ErrFull, err)
	case lib.SQLITE_IOERR:
		// Growing the index of the write-ahead log on a full disk is reported as this.
		if code == lib.SQLITE_IOERR_SHMSIZE {
			return fmt.Errorf("%s: no room on its disk for %s-shm; make some and try again: %w: %w", s.path, s.path, plan.ErrFull, err)
		}
		if code == lib.SQLITE_IOERR_WRITE { // what EFBIG becomes too
			return fmt.Errorf("%s: a write failed; look at its disk, and at the limit on the size of files (ulimit -f): %w: %w", s.path, plan.ErrUnavailable, err)
		}
		return fmt.Errorf("%s: %w: %w", s.path, plan.ErrUnavailable, err)
	case lib.SQLITE_NOTADB:
		return fmt.Errorf("%s is not a SQLite database; name another file: %w: %w", s.path, plan.ErrUnavailable, err)
	case lib.SQLITE_CORRUPT:
		return fmt.Errorf("%s is damaged; restore it from a copy: %w: %w", s.path, plan.ErrUnavailable, err)
	case lib.SQLITE_BUSY:
		return fmt.Errorf("%s is locked by another program; close that: %w: %w", s.path, plan.ErrUnavailable, err)
	case lib.SQLITE_CANTOPEN, lib.SQLITE_PERM, lib.SQLITE_READONLY, lib.SQLITE_AUTH:
		return fmt.Errorf("%s cannot be written; look at the owner and permissions of the file and its folder: %w: %w", s.unwritable(), plan.ErrUnavailable, err)
	}
	return fmt.Errorf("%s: %w", s.path, err)
}
