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

// inPlace reports whether the file is on ext4 or XFS. Others write what is written again elsewhere, or know no disk.
func inPlace(f *os.File) bool {
	var fs unix.Statfs_t
	err := unix.Fstatfs(int(f.Fd()), &fs)
	return err == nil && (fs.Type == unix.EXT4_SUPER_MAGIC || fs.Type == unix.XFS_SUPER_MAGIC)
}
