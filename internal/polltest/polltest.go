// Package polltest owns how tests wait for what other goroutines and processes do: they ask again and
// again until it is so. The deadlines are long, since only a test that fails waits for one.
package polltest

import (
	"testing"
	"time"
)

// Holds asks whether a condition holds, again and again for at most that long, and returns the last answer.
func Holds(within time.Duration, condition func() bool) bool {
	const most = 25 * time.Millisecond
	end := time.Now().Add(within)
	for pause := time.Millisecond; !condition(); pause = min(2*pause, most) {
		if time.Now().After(end) {
			return false
		}
		time.Sleep(pause) // between two questions; the number of questions decides nothing
	}
	return true
}

// Until waits for at most that long until a condition holds. The test fails if it does not; what names the condition.
func Until(t testing.TB, within time.Duration, what string, condition func() bool) {
	t.Helper()
	if !Holds(within, condition) {
		t.Fatalf("not within %v: %s", within, what)
	}
}
