package duration

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// RetryAfter reads the HTTP header Retry-After: a number of seconds, or a time. It returns a
// duration from 0 to most. A header that is neither counts as 0.
func RetryAfter(header string, now time.Time, most time.Duration) time.Duration {
	header = strings.TrimSpace(header)
	seconds, err := strconv.ParseUint(header, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange), err == nil && seconds > uint64(most/time.Second):
		return most
	case err == nil:
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(header); err == nil {
		return min(max(at.Sub(now), 0), most)
	}
	return 0
}
