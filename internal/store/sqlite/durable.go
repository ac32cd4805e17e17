package sqlite

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"

	"github.com/seed-1177d267/sluice/plan"
)

// A walFile is the write-ahead log, to be flushed to the disk.
//
// With synchronous=FULL SQLite flushes it while it holds the lock, and everybody else waits for the disk too. So connections have
// synchronous=NORMAL, which keeps the order of what is on the disk (a power failure takes a commit only with all those after it), and who
// committed flushes the log after it let go of the turn, before it answers. Whoever acts upon a commit of another process commits behind
// it, and its flush takes both to the disk; only readers may see, for the length of a flush, what a power failure could still take.
// (Three busy processes on one file: a hop's p99 was 39 ms with FULL and 26 ms so, on two processors with other work beside.)
type walFile struct {
	path  string
	flush func(*os.File) error

	mu sync.Mutex
	f  *os.File // nil until something was committed
}

// sync returns when all that was committed is on the disk. Any number of goroutines may call it at once. If it fails, what was
// committed may be lost or not.
func (w *walFile) sync() error {
	f, err := w.file()
	if err == nil {
		err = w.flush(f)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOSPC):
		// Not plan.ErrFull, of which nothing was kept: others see this commit already.
		return fmt.Errorf("%s: no room on its disk; make some and try again: %w: %w", w.path, plan.ErrUnavailable, err)
	}
	return fmt.Errorf("%s: %w: %w", w.path, plan.ErrUnavailable, err)
}

// file opens the log. As long as a connection is open SQLite neither deletes nor replaces it.
func (w *walFile) file() (*os.File, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.f == nil {
		f, err := os.OpenFile(w.path, os.O_RDWR, 0)
		if err != nil {
			return nil, err
		}
		w.f = f
	}
	return w.f, nil
}

// close is called before the last connection is closed, which deletes the file: some systems delete no file that is open.
func (w *walFile) close() error {
	if w.f == nil {
		return nil
	}
	return w.f.Close()
}
