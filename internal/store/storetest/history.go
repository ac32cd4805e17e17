package storetest

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/store"
)

// Named is a driver with the name that messages call it by.
type Named struct {
	Name string
	Driver
}

// Histories replays random histories on all drivers at once. A history is a random walk. Each of
// its steps is made on every store. After each step the test compares everything that readers of
// the stores see. A history that differs is shortened to the steps that it needs.
func Histories(t *testing.T, count, steps int, drivers ...Named) {
	all := &Driver{Open: func(t testing.TB, o Options) store.Store { return openTogether(t, drivers, o.Now) }}
	w := &world{T: t}
	seed, repeated := w.firstSeed()
	if repeated {
		count = 1
	}
	t.Logf("%d histories of %d steps, seeds from %d", count, steps, seed)
	var failed atomic.Bool
	for i := range uint64(count) {
		t.Run(fmt.Sprint("seed ", seed+i), func(t *testing.T) {
			t.Parallel()
			if failed.Load() {
				return // one is enough to look at
			}
			wrong, did := shortestWalk(t, all, seed+i, steps, false)
			if len(wrong) == 0 || failed.Swap(true) {
				return
			}
			name, _, _ := strings.Cut(t.Name(), "/")
			t.Errorf("to repeat this history: SLUICE_TEST_SEED=%d go test -count=1 -run '^%s$' ./internal/store/storetest\n  %s\nThe stores differ after step %d:\n  %s",
				seed+i, name, strings.Join(did, "\n  "), len(did), strings.Join(wrong, "\n  "))
		})
	}
}

// compare compares what stores show that take the walk together.
func (w *walker) compare() {
	l, ok := w.s.(*together)
	if !ok {
		return
	}
	w.no(l.step(w.ctx))
	if len(l.wrong) > 0 {
		w.Fatalf("%s", strings.Join(l.wrong, "\n  "))
	}
	w.pass(time.Millisecond) // no two steps are of the same instant
}
