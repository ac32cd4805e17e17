package backoff

import (
	"math/rand/v2"
	"time"
)

// Retry is how long a task that failed waits before it is tried again. The zero
// value has the defaults. It is a value without state: anyone may call it at once,
// as far as the random they pass allows.
type Retry struct {
	Initial time.Duration // the delay after the first attempt, before jitter; default 1s; less than 0 is none
	Factor  float64       // what each further delay is multiplied by, at least 1; default 2
	Max     time.Duration // no delay is longer; default 1m; less than 0 is none

	// Jitter is the share of a delay that is left to chance, from above 0 to 1;
	// default 0.5. A negative one means none: the delays are exact.
	Jitter float64
}

// Delay returns the wait after an attempt has failed. The first attempt is 1, and less counts as 1.
// random returns numbers uniform in [0, 1); nil means Float64 of math/rand/v2:
//
//	d = min(Max, Initial·Factorᵃᵗᵗᵉᵐᵖᵗ⁻¹)
//	delay = d − d·Jitter·random(), hence uniform in (d·(1−Jitter), d]
//
// With the default Jitter each delay keeps at least half of itself. That is the "equal jitter" of
// Brooker, "Exponential Backoff And Jitter" (AWS Architecture Blog, 2015). His "full jitter", a
// Jitter of 1, spreads a herd of callers a little better, but may try again at once. The author of
// a plan who wrote a delay of a minute counts on some of it. Half the delay is enough to spread the
// tasks of a fan-out that all failed on the same server. Chance only ever shortens a delay, so Max
// is a promise as well.
//
// A delay is never negative and, for the same chance, never falls as attempt
// rises, however high.
func (r Retry) Delay(attempt int, random func() float64) time.Duration {
	d := power(orDefault(r.Initial, time.Second), orDefault(r.Factor, 2), orDefault(r.Max, time.Minute), max(attempt, 1)-1)
	share := min(orDefault(r.Jitter, 0.5), 1)
	if !(share > 0) {
		return d
	}
	if random == nil {
		random = rand.Float64
	}
	// A long d may have grown a little when it became a float64.
	return max(d-time.Duration(float64(d)*share*random()), 0)
}
