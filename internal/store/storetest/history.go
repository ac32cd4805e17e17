package storetest

import (
	"fmt"
	"strings"
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
	all := &Driver{Open: func(t testing.TB, o Options) store.Store { return openTogether(t, drivers, o.Now) }, Sizes: Sizes{Steps: steps}}
	history := trial{kind: "histories", try: func(t *testing.T, d *Driver, seed uint64) (wrong, did []string) {
		wrong, did = shortestWalk(t, d, seed, false)
		if len(wrong) > 0 {
			did = append(did, fmt.Sprintf("(the stores differ after step %d)", len(did)))
		}
		return wrong, did
	}}
	if length := searchTime(t); length > 0 {
		search(t, all, length, []trial{history})
		return
	}
	for _, seed := range seeds(t, count) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			if wrong, did := history.try(t, all, seed); len(wrong) > 0 {
				t.Errorf("SLUICE_TEST_SEED=%d repeats this history:\n  %s\n%s", seed, strings.Join(did, "\n  "), strings.Join(wrong, "\n  "))
			}
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
