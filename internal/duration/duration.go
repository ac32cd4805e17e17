// Package duration writes durations for people. All tables, sentences and reports use it, so that
// the same duration reads the same everywhere.
package duration

import (
	"fmt"
	"time"
)

// Roughly writes a duration that is only estimated.
func Roughly(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", Seconds(d))
	case d < 10*time.Minute:
		return Text(d.Round(10 * time.Second))
	case d < time.Hour:
		return fmt.Sprintf("%dm", d.Round(time.Minute)/time.Minute)
	}
	return Text(d.Round(time.Minute))
}

// Seconds returns a duration in seconds, rounded up.
func Seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }

// Text writes a duration in its two largest units, as in "0.4s", "12.3s", "4m05s", "3h20m" or
// "2d04h". A duration below a tenth of a second is in milliseconds. A negative duration is 0.
// Digits are cut and not rounded, so that an unfinished minute does not look finished.
func Text(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1fms", float64(d)/float64(time.Millisecond))
	case d < 100*time.Millisecond:
		return fmt.Sprintf("%dms", d/time.Millisecond)
	case d < time.Minute:
		return fmt.Sprintf("%d.%ds", d/time.Second, d%time.Second/(100*time.Millisecond))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd%02dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}
