//go:build unix

package dci

import "golang.org/x/sys/unix"

// connections is how many connections there may be at once.
func connections() int {
	var files unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &files) != nil {
		return mostConnections
	}
	return int(max(1, min(uint64(files.Cur)/2, mostConnections))) // on some systems Cur is signed
}
