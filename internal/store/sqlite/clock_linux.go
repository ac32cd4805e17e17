package sqlite

import (
	"hash/fnv"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// bootID is a number of the system's last start, 0 if it is not known.
var bootID = sync.OnceValue(func() int64 {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write(id) // never fails
	return int64(h.Sum64() >> 1)
})

// sinceBoot returns the time since the system was started, suspensions included.
func sinceBoot() (boot int64, up time.Duration, ok bool) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return 0, 0, false
	}
	return bootID(), time.Duration(t.Nano()), bootID() != 0
}
