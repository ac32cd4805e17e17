package den

import (
	"runtime"
	"time"
)

// A usage tells whether this process and its commands keep the processors busy.
type usage struct {
	used func() time.Duration // processor time of this process and of the commands that have ended

	at   time.Time     // of the last reading
	was  time.Duration // what used returned then
	busy bool          // what the reading showed
}

const (
	usageEvery = 10 * time.Millisecond // between two readings
	busyShare  = 0.25                  // of all processors; other programs may use the rest
)

// full reports whether the share of the processors that is used here makes them count as busy. It
// reads the figures once in usageEvery at most.
func (u *usage) full() bool {
	now := time.Now()
	since := now.Sub(u.at)
	if since < usageEvery {
		return u.busy
	}
	used := u.used()
	u.busy = !u.at.IsZero() && float64(used-u.was) >= busyShare*float64(since)*float64(runtime.NumCPU())
	u.at, u.was = now, used
	return u.busy
}
