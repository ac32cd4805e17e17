package backoff

import (
	"time"

	"github.com/cenkalti/backoff/v4"
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
	initial, increase, limit := p.settings()
	return power(initial, increase, limit, count)
}

func (p Idle) settings() (initial time.Duration, increase float64, limit time.Duration) {
	return orDefault(p.Initial, 100*time.Millisecond), orDefault(p.Increase, 1.5), orDefault(p.Max, 10*time.Second)
}

// Poll is the library's back-off with the settings of an [Idle]. Its zero value polls by the
// defaults. It belongs to one goroutine. Each wait is cut to whole nanoseconds before the next one
// is calculated from it. A wait may therefore be some nanoseconds shorter than [Idle.Delay].
type Poll struct {
	Idle  Idle
	waits *backoff.ExponentialBackOff
}

// Next returns how long to wait now, and makes the next wait longer.
func (p *Poll) Next() time.Duration {
	if p.waits == nil {
		p.waits = exponential(p.Idle.settings())
	}
	return p.waits.NextBackOff()
}

// Reset forgets the waits so far, because work was found: Next begins again
// with the initial wait.
func (p *Poll) Reset() { p.waits = nil }
