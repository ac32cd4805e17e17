package plan

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A Rate limits how many tasks start in a time: Starts each Per on average, and Burst at once after a
// pause. Each attempt is a start. The zero Rate is no limit.
type Rate struct {
	Starts int      `json:"starts" minimum:"1" doc:"How many tasks start in a period, on average."`
	Per    Duration `json:"per" doc:"The period. At most 10000 tasks start in a second."`
	Burst  int      `json:"burst,omitempty" minimum:"1" doc:"How many may start at once after a pause; default starts."`
}

// Limits of a rate.
const (
	MostStarts = 10_000 // a second
	MostBurst  = 1_000_000
	MostPeriod = 366 * 24 * time.Hour // also of Burst starts
)

// Interval is the time between two starts at that rate, in whole microseconds.
func (r Rate) Interval() time.Duration {
	whole := (time.Duration(r.Per) + time.Duration(r.Starts) - 1) / time.Duration(r.Starts)
	return (whole + time.Microsecond - 1).Truncate(time.Microsecond)
}

// AtOnce is how many tasks may start at once after a pause.
func (r Rate) AtOnce() int {
	if r.Burst == 0 {
		return r.Starts
	}
	return r.Burst
}

// Check returns why the rate is none; nil for the zero Rate.
func (r Rate) Check() error {
	switch per := time.Duration(r.Per); {
	case r == Rate{}:
		return nil
	case r.Starts < 1:
		return fmt.Errorf("starts is %d; at least 1 task starts in a period (without a rate there is no limit; threads 0 pause a queue)", r.Starts)
	case per <= 0:
		return fmt.Errorf("per is %s; a period is longer than 0, as in 1s", per)
	case r.Burst < 0 || r.Burst > MostBurst:
		return fmt.Errorf("burst is %d; it is 1 to %d", r.Burst, MostBurst)
	case per > MostPeriod || r.Interval() > MostPeriod/time.Duration(r.AtOnce()):
		return fmt.Errorf("per is %s, too long; with burst it reaches over %s at most", per, MostPeriod)
	case per/time.Duration(r.Starts) < time.Second/MostStarts:
		return fmt.Errorf("%d in %s is too often; at most %d tasks start in a second", r.Starts, per, MostStarts)
	}
	return nil
}

// String returns the rate as ParseRate reads it: "10/1s,burst=20"; "" if it is none.
func (r Rate) String() string {
	if r == (Rate{}) {
		return ""
	}
	text := fmt.Sprintf("%d/%s", r.Starts, r.Per)
	if r.Burst > 0 {
		text += fmt.Sprintf(",burst=%d", r.Burst)
	}
	return text
}

// ParseRate reads a rate as in "10/s", "600/1h30m" and "10/1s,burst=20"; "none" is the zero Rate.
func ParseRate(text string) (r Rate, err error) {
	if text == "none" {
		return r, nil
	}
	rate, burst, bursts := strings.Cut(text, ",burst=")
	starts, per, ok := strings.Cut(rate, "/")
	if ok && per != "" && (per[0] < '0' || per[0] > '9') {
		per = "1" + per
	}
	if r.Starts, err = strconv.Atoi(starts); err == nil && ok {
		err = r.Per.UnmarshalText([]byte(per))
	}
	if err == nil && bursts {
		if r.Burst, err = strconv.Atoi(burst); err == nil && r.Burst < 1 {
			return Rate{}, fmt.Errorf("burst is %d; it is 1 to %d", r.Burst, MostBurst)
		}
	}
	if err != nil || !ok {
		return Rate{}, fmt.Errorf("%q is no rate; write starts and a period, as in 10/s, 5/1d or 600/1h,burst=20, or none", text)
	}
	if r == (Rate{}) {
		return r, fmt.Errorf("%q is no rate; at least 1 task starts in a period", text)
	}
	return r, r.Check()
}
