package sqlite

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// flush leaves out the time of the last change, which would cost a write of the file system's own journal.
func flush(f *os.File) error {
	for {
		if err := unix.Fdatasync(int(f.Fd())); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
