package plan

import (
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// A Duration is a span of time, written as in "1m30s". It is also read in days and weeks, as in "1d".
type Duration time.Duration

var (
	daysAndWeeks = regexp.MustCompile(`([0-9.]+)([dw])`)
	durations    = regexp.MustCompile(`^[-+]?(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h|d|w))+$`)
)

// inHours writes days and weeks, which time.ParseDuration does not know, in hours.
func inHours(text string) string {
	return daysAndWeeks.ReplaceAllStringFunc(text, func(part string) string {
		n, err := strconv.ParseFloat(part[:len(part)-1], 64)
		if err != nil {
			return part
		}
		if n *= 24; part[len(part)-1] == 'w' {
			n *= 7
		}
		return strconv.FormatFloat(n, 'f', -1, 64) + "h"
	})
}

// String writes the duration as time.Duration does.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(inHours(string(text)))
	if err != nil && durations.Match(text) {
		return fmt.Errorf("%q is longer than 292 years", text)
	}
	if err != nil {
		return fmt.Errorf("%q is not a duration, as in 90s, 10m, 1h30m or 1d", text)
	}
	*d = Duration(v)
	return nil
}

// A Keep says how long the finished tasks of a queue stay in the store after their end, by their
// status. It is about tasks of no plan. Tasks of plans go with their plans. A field counts as
// Plan.Keep does: 0 is as long as the store's default says, and less than 0 is for ever.
type Keep struct {
	Succeeded  Duration `json:"succeeded,omitempty" doc:"The time after its end; -1ns for ever, 0s the store's default. The others are the same."`
	Failed     Duration `json:"failed,omitempty"` // with every code above 1
	Terminated Duration `json:"terminated,omitempty"`
	Cancelled  Duration `json:"cancelled,omitempty" doc:"Skipped ones too."`
	Orphaned   Duration `json:"orphaned,omitempty"`
}
