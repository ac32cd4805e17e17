package main

import (
	"cmp"
	"slices"
	"time"
)

// median returns the middle of the values, of an even number the lower one of the two; there must be one at least.
func median[T cmp.Ordered](values []T) T { return quantile(values, 0.5) }

// quantile returns the smallest value that at least the share q of the values does not exceed (the "nearest rank"). It leaves the
// values as they are; there must be one at least.
func quantile[T cmp.Ordered](values []T, q float64) T {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	i := int(q * float64(n))
	if float64(i) == q*float64(n) {
		i--
	}
	return sorted[min(max(i, 0), n-1)]
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// perSecond returns how many of n things were done in a second if they took d.
func perSecond(n int, d time.Duration) float64 { return float64(n) / d.Seconds() }
