//go:build unix

package bench

import (
	"syscall"
	"time"
)

// processorTime returns what this process has used of the processors, in user mode and in the system; 0 where that is not known.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
