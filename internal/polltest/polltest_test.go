package polltest

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestHoldsAsksUntilItIsSoOrTheTimeIsOver(t *testing.T) {
	for name, c := range map[string]struct {
		after time.Duration
		holds bool
	}{
		"it holds already":    {0, true},
		"it holds later":      {time.Second, true},
		"it holds too late":   {time.Hour, false},
		"it holds in the end": {time.Minute, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				got := Holds(time.Minute, func() bool { return time.Since(begun) >= c.after })
				took := time.Since(begun)
				if want := min(c.after, time.Minute); got != c.holds || took < want || took > want+50*time.Millisecond {
					t.Errorf("it holds: %v after %v; want %v after %v", got, took, c.holds, want)
				}
			})
		})
	}
}
