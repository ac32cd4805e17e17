// Package backoff owns how long Sluice waits. An idle node waits before it asks the store again
// ([Idle], [Poll]), and a failed task before its next attempt ([Retry]). It only computes delays;
// it never sleeps.
package backoff

import (
	"math"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// longest is the highest ceiling that is obeyed, 146 years. It leaves room for
// the rounding of float64 below the largest time.Duration, so that no delay wraps.
const longest = time.Duration(1 << 62)

// exponential returns the library's back-off: initial, and each further delay multiplied by factor,
// but at most limit. A factor below 1, or one that is no number, counts as 1.
func exponential(initial time.Duration, factor float64, limit time.Duration) *backoff.ExponentialBackOff {
	if !(factor >= 1) {
		factor = 1
	}
	limit = max(min(limit, longest), 0)
	e := &backoff.ExponentialBackOff{
		InitialInterval:     min(max(initial, 0), limit),
		Multiplier:          factor,
		MaxInterval:         limit,
		RandomizationFactor: 0, // an exact sequence: Retry has a jitter of its own
		MaxElapsedTime:      0, // never gives up
		Clock:               backoff.SystemClock,
	}
	e.Reset()
	return e
}

// power returns delay n of the back-off, from 0 on: initial·factorⁿ, but at most limit. It is one step
// by factorⁿ instead of n steps by factor. So no rounding adds up, and a high n costs nothing. A power
// that is too large for a float64 is +Inf, which the library takes for the ceiling. Because the delay
// never shrinks, a ceiling on the last step is a ceiling on each.
func power(initial time.Duration, factor float64, limit time.Duration, n int) time.Duration {
	e := exponential(initial, math.Pow(max(factor, 1), float64(max(n, 0))), limit)
	e.NextBackOff()                            // the library's first is always the initial interval
	return min(e.NextBackOff(), e.MaxInterval) // a float64 may have rounded up
}

func orDefault[T time.Duration | float64](v, otherwise T) T {
	if v == 0 {
		return otherwise
	}
	return v
}
