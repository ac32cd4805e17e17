package rules

import (
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/plan"
)

func TestARateLetsTasksStart(t *testing.T) {
	now := time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC)
	second := plan.Duration(time.Second)
	ten := plan.Rate{Starts: 10, Per: second, Burst: 5}
	for _, c := range []struct {
		what  string
		rate  plan.Rate
		ahead time.Duration // of what is spent; below 0: nothing ever was
		most  int
		room  int
		wait  time.Duration
	}{
		{"no rate", plan.Rate{}, 5 * time.Hour, 7, 7, 0},
		{"nothing has started", ten, -1, 9, 5, 0},
		{"no more than is asked for", ten, -1, 2, 2, 0},
		{"burst is starts by default", plan.Rate{Starts: 10, Per: second}, -1, 90, 10, 0},
		{"some have started", ten, 300 * time.Millisecond, 9, 2, 0},
		{"part of a start is none", ten, 301 * time.Millisecond, 9, 1, 0},
		{"all have started", ten, 500 * time.Millisecond, 9, 0, 100 * time.Millisecond},
		{"the next one is near", ten, 402 * time.Millisecond, 9, 0, 2 * time.Millisecond},
		{"exactly one", ten, 400 * time.Millisecond, 9, 1, 0},
		{"the clock was set back", ten, time.Hour, 9, 0, 100 * time.Millisecond},
		{"an interval of no whole microseconds is longer", plan.Rate{Starts: 3, Per: second, Burst: 1}, 1, 9, 0, time.Nanosecond},
		{"one each day", plan.Rate{Starts: 1, Per: plan.Duration(24 * time.Hour)}, 24 * time.Hour, 9, 0, 24 * time.Hour},
	} {
		var spent time.Time
		if c.ahead >= 0 {
			spent = now.Add(c.ahead)
		}
		if room, wait := RateRoom(c.rate, spent, now, c.most), RateWait(c.rate, spent, now); room != c.room || wait != c.wait {
			t.Errorf("%s: %d may start, the next one in %s; want %d, %s", c.what, room, wait, c.room, c.wait)
		}
	}
}

func TestWhatHasStartedCountsForAChangedRate(t *testing.T) {
	now := time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC)
	fast := plan.Rate{Starts: 100, Per: plan.Duration(time.Second), Burst: 20}
	slow := plan.Rate{Starts: 1, Per: plan.Duration(time.Minute), Burst: 5}
	for _, c := range []struct {
		what    string
		was, is plan.Rate
		ahead   time.Duration
		want    time.Duration
	}{
		{"a burst of the old rate is one of the new rate", fast, slow, 200 * time.Millisecond, 5 * time.Minute},
		{"fewer starts leave the rest of the burst", fast, slow, 20 * time.Millisecond, 2 * time.Minute},
		{"part of a start is one", fast, slow, 11 * time.Millisecond, 2 * time.Minute},
		{"starts that are over are over", fast, slow, -time.Hour, 0},
		{"a higher rate gives no start before its interval", slow, fast, time.Minute, 200 * time.Millisecond},
		{"nor one that the old rate had used up", slow, plan.Rate{Starts: 1, Per: plan.Duration(time.Second), Burst: 100}, 30 * time.Second, 30 * time.Second},
		{"another burst alone", fast, plan.Rate{Starts: 100, Per: plan.Duration(time.Second), Burst: 7}, 200 * time.Millisecond, 70 * time.Millisecond},
		{"the longest periods", plan.Rate{Starts: 10_000, Per: plan.Duration(time.Second), Burst: plan.MostBurst}, plan.Rate{Starts: 1, Per: plan.Duration(plan.MostPeriod)}, 100 * time.Second, plan.MostPeriod},
	} {
		if got := RateChanged(c.was, c.is, now.Add(c.ahead), now).Sub(now); got != c.want {
			t.Errorf("%s: %s ahead, want %s", c.what, got, c.want)
		}
	}
	for _, c := range []struct{ was, is plan.Rate }{{fast, fast}, {fast, plan.Rate{}}, {plan.Rate{}, slow}} {
		if spent := now.Add(-time.Hour); !RateChanged(c.was, c.is, spent, now).Equal(spent) {
			t.Errorf("from %q to %q: it is another instant", c.was, c.is)
		}
	}
}

// However many ask, and whenever, no window has more starts than rate times window and burst, and who
// always asks gets the rate.
func TestARateHoldsInEachWindow(t *testing.T) {
	rate := plan.Rate{Starts: 50, Per: plan.Duration(time.Second), Burst: 20}
	now := time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC)
	var spent time.Time
	var starts []time.Time
	for tick := range 40_000 { // each is half a millisecond
		now = now.Add(500 * time.Microsecond)
		if tick%7000 > 6300 {
			continue // nobody asks
		}
		n := RateRoom(rate, spent, now, 1+tick%3)
		if n > 0 {
			spent = RateSpend(rate, spent, now, n)
		}
		for range n {
			starts = append(starts, now)
		}
	}
	for i := range starts {
		for k := i; k < len(starts); k += 17 {
			window := starts[k].Sub(starts[i])
			if most := 50*window.Seconds() + 20; float64(k-i+1) > most+1e-6 {
				t.Fatalf("%d starts in %s, at most %.1f", k-i+1, window, most)
			}
		}
	}
	if len(starts) < 995 || len(starts) > 1020 { // 20 s
		t.Errorf("%d started in 20 s", len(starts))
	}
}

func TestWhatIsSpentIsGivenBack(t *testing.T) {
	rate := plan.Rate{Starts: 10, Per: plan.Duration(time.Second), Burst: 5}
	now := time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC)
	spent := RateSpend(rate, time.Time{}, now, 5)
	if back := spent.Add(-3 * rate.Interval()); RateRoom(rate, back, now, 9) != 3 {
		t.Errorf("after three of five were given back %d may start", RateRoom(rate, back, now, 9))
	}
}
