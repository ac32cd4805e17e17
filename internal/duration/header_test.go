package duration

import (
	"testing"
	"time"
)

func TestRetryAfterIsBounded(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	const most = 90 * time.Minute
	for header, want := range map[string]time.Duration{
		"": 0, "soon": 0, "-5": 0, "0": 0, "17": 17 * time.Second, " 17 ": 17 * time.Second, "5400": most, "5401": most,
		"99999999999": most, "9223372037": most, "18446744073709551615": most, "99999999999999999999999": most,
		"Fri, 02 Jan 2026 03:05:05 GMT": time.Minute, "Fri, 02 Jan 2026 03:00:00 GMT": 0, "Fri, 31 Dec 9999 23:59:59 GMT": most,
	} {
		if got := RetryAfter(header, now, most); got != want {
			t.Errorf("%q is %v, want %v", header, got, want)
		}
	}
	if got := RetryAfter("99999999999", now, 1<<63-1); got != 1<<63-1 {
		t.Errorf("the longest duration is %v", got)
	}
}
