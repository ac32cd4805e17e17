//go:build unix

package dci

import "syscall"

// connections is how many connections there may be at once.
func connections() int {
	var files syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files) != nil {
		return mostConnections
	}
	return int(max(1, min(uint64(files.Cur)/2, mostConnections))) // on some systems Cur is signed
}
