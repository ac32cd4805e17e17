//go:build !race

package den

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// TestANodeWaitsForMoreEndingsWhileTheProcessorsAreBusy has tasks end one by one within three
// milliseconds, which is longer than the wait for each of them.
func TestANodeWaitsForMoreEndingsWhileTheProcessorsAreBusy(t *testing.T) {
	processors := runtime.NumCPU()
	tasks := 4 * processors
	for name, c := range map[string]struct {
		share   float64 // of the processors that is used
		running int     // tasks that run at first
		waits   bool    // until one runs for each processor
	}{
		"busy": {1, tasks, true}, "shared with others": {0.3, tasks, true}, "nearly idle": {0.1, tasks, false}, "busy, but soon it would not be": {1, processors, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				l := &loop{h: &heart{}, running: map[*attempt]bool{}, done: make(chan report, c.running)}
				l.usage.used = func() time.Duration { return time.Duration(c.share * float64(time.Since(began)) * float64(processors)) }
				l.usage.full()
				time.Sleep(usageEvery)
				step := 3 * time.Millisecond / time.Duration(c.running)
				for i := range c.running {
					a := new(attempt)
					l.running[a] = true
					time.AfterFunc(time.Duration(i+1)*step, func() { l.done <- report{of: a, ok: true} })
				}
				l.linger()
				if got := len(l.ended) > 0 && len(l.running) == processors; got != c.waits {
					t.Errorf("it waited until %d had ended and %d still ran; want it to wait until %d run: %v", len(l.ended), len(l.running), processors, c.waits)
				}
				time.Sleep(time.Second)
			})
		})
	}
}
