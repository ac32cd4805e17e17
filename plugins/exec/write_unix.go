//go:build unix

package exec

import (
	"errors"
	"io/fs"
	"syscall"
)

// errQuota says that the user has no room left, though the disk may have.
const errQuota = syscall.EDQUOT

// writeFile makes a file. os.WriteFile does more than is needed here, and takes 1.5 times as long
// for a small file in memory.
func writeFile(path string, data []byte) error {
	var fd int
	err := error(syscall.EINTR)
	for errors.Is(err, syscall.EINTR) {
		fd, err = syscall.Open(path, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_TRUNC|syscall.O_CLOEXEC, 0o600)
	}
	if err != nil {
		return &fs.PathError{Op: "open", Path: path, Err: err}
	}
	for len(data) > 0 && err == nil {
		var n int
		if n, err = syscall.Write(fd, data); errors.Is(err, syscall.EINTR) {
			n, err = 0, nil
		}
		data = data[max(n, 0):]
	}
	if err = errors.Join(err, syscall.Close(fd)); err != nil {
		return &fs.PathError{Op: "write", Path: path, Err: err}
	}
	return nil
}
