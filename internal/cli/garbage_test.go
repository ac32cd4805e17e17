package cli

import (
	"runtime"
	"testing"
)

func TestTheCollectorOfANodeRunsSeldom(t *testing.T) {
	collectSeldom()
	runtime.GC()
	var m runtime.MemStats
	if runtime.ReadMemStats(&m); m.NextGC < 2*nodeSlack {
		t.Errorf("the next collection comes at %d bytes, want %d at least", m.NextGC, 2*nodeSlack)
	}
}
