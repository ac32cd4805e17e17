//go:build linux || darwin

package sqlite

import (
	"path/filepath"

	"golang.org/x/sys/unix"
)

// roomBeside returns how many bytes the disk of a file has left.
func roomBeside(path string) (bytes int64, known bool) {
	var fs unix.Statfs_t
	if err := unix.Statfs(filepath.Dir(path), &fs); err != nil {
		return 0, false
	}
	return int64(fs.Bavail) * int64(fs.Bsize), true
}
