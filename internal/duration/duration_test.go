package duration

import (
	"testing"
	"time"
)

func TestText(t *testing.T) {
	for _, c := range []struct {
		d    time.Duration
		want string
	}{
		{-time.Second, "0.0ms"},
		{1234 * time.Microsecond, "1.2ms"},
		{42 * time.Millisecond, "42ms"},
		{420 * time.Millisecond, "0.4s"},
		{59999 * time.Millisecond, "59.9s"},
		{time.Minute, "1m00s"},
		{245 * time.Second, "4m05s"},
		{200 * time.Minute, "3h20m"},
		{52 * time.Hour, "2d04h"},
	} {
		if got := Text(c.d); got != c.want {
			t.Errorf("Text(%v) = %q, want %q", c.d, got, c.want)
		}
	}
}
