//go:build !race

package den

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// TestANodeWaitsForMoreEndingsWhileTheProcessorsAreBusy has tasks end one by one, half of them within
// a millisecond.
func TestANodeWaitsForMoreEndingsWhileTheProcessorsAreBusy(t *testing.T) {
	processors := runtime.NumCPU()
	tasks := 4 * processors
	for name, c := range map[string]struct {
		share   float64 // of the processors that is used
		running int     // tasks, of which half end in time
		all     bool    // so the node waits for that half
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
				step := time.Millisecond / time.Duration((c.running+1)/2)
				for i := range c.running {
					a := new(attempt)
					l.running[a] = true
					time.AfterFunc(time.Duration(i+1)*step, func() { l.done <- report{of: a, ok: true} })
				}
				l.linger()
				if got := len(l.ended) >= len(l.running); got != c.all {
					t.Errorf("it waited until %d had ended and %d still ran; want as many or more to have ended: %v", len(l.ended), len(l.running), c.all)
				}
				time.Sleep(time.Second)
			})
		})
	}
}
