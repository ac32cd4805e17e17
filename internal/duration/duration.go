// Package duration reads and writes durations for people. Plan files and flags read the same
// durations, and all tables, sentences and reports write them alike.
package duration

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"time"
)

// Pattern matches a duration: numbers with units.
const Pattern = `([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h|d|w))+`

var (
	syntax = regexp.MustCompile("^" + Pattern + "$")
	part   = regexp.MustCompile(`([0-9]+(?:\.[0-9]*)?)([a-zµ]+)`)
	units  = map[string]time.Duration{
		"ns": time.Nanosecond, "us": time.Microsecond, "µs": time.Microsecond, "ms": time.Millisecond, "s": time.Second,
		"m": time.Minute, "h": time.Hour, "d": 24 * time.Hour, "w": 7 * 24 * time.Hour,
	}
)

// The errors of Parse.
var (
	ErrSyntax = errors.New("it is a duration like 30s, 30m or 1h30m (units: ms, s, m, h, d, w)")
	ErrLong   = errors.New("it is longer than 292 years")
)

// Parse reads a duration. A d is 24 hours, and a w is 7 d.
func Parse(text string) (time.Duration, error) {
	if !syntax.MatchString(text) {
		return 0, ErrSyntax
	}
	var sum float64
	for _, m := range part.FindAllStringSubmatch(text, -1) {
		v, _ := strconv.ParseFloat(m[1], 64) // the pattern lets only numbers through; what is too large is infinite
		sum += v * float64(units[m[2]])
	}
	if sum >= math.MaxInt64 {
		return 0, ErrLong
	}
	return time.Duration(math.Round(sum)), nil
}

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
