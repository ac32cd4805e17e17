package backoff

import (
	"math"
	"time"
)

// Idle is how the wait of a worker that finds nothing to do grows: zk-plan's
// calc-sleep-time (zk-plan 0.4.1, section 9.9). The zero value has that
// document's defaults. It is a value without state: anyone may call it at once.
type Idle struct {
	Initial  time.Duration // the wait at count 0; default 100ms
	Increase float64       // what each further wait is multiplied by, at least 1; default 1.5
	Max      time.Duration // no wait is longer, not even the first; default 10s
}

// Delay returns the wait after count waits in a row that found nothing:
// Initial·Increaseᶜᵒᵘⁿᵗ, at most Max, cut to whole nanoseconds. It is never
// negative and never falls as count rises, however high; a negative count is 0.
func (p Idle) Delay(count int) time.Duration {
	return grow(
		orDefault(p.Initial, 100*time.Millisecond),
		orDefault(p.Increase, 1.5),
		max(orDefault(p.Max, 10*time.Second), 0),
		count)
}

// Poll counts the waits of one worker. The zero value polls by the defaults of
// [Idle]. It belongs to one goroutine.
type Poll struct {
	Idle  Idle
	count int
}

// Next returns how long to wait now, and counts that wait.
func (p *Poll) Next() time.Duration {
	d := p.Idle.Delay(p.count)
	if p.count < math.MaxInt {
		p.count++
	}
	return d
}

// Reset forgets the waits so far, because work was found: Next begins again
// with the initial wait.
func (p *Poll) Reset() { p.count = 0 }
