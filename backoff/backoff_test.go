package backoff

import (
	"math"
	"testing"
	"time"
)

const ms = time.Millisecond

// Each case that cites a call is a statement of zk-plan's document, section 9.9.
func TestIdleDelay(t *testing.T) {
	for _, c := range []struct {
		name  string
		idle  Idle
		count int
		want  time.Duration
	}{
		{"for count 0 it is the initial wait: {:initial 1234} 0", Idle{Initial: 1234 * ms}, 0, 1234 * ms},
		{"the initial wait defaults to 100 ms: {} 0", Idle{}, 0, 100 * ms},
		{"it is multiplied by the increase to the power of count: {:increase 2 :initial 1} 8", Idle{Increase: 2, Initial: ms}, 8, 256 * ms},
		{"the increase defaults to 1.5: {} 1", Idle{}, 1, 150 * ms},
		{"it is capped by the maximum: {:max 300} 20", Idle{Max: 300 * ms}, 20, 300 * ms},
		{"the maximum defaults to 10 s: {} 20", Idle{}, 20, 10 * time.Second},
		{"a high count does not overflow: {:max 1000} 100", Idle{Max: 1000 * ms}, 100, 1000 * ms},

		{"the highest count does not overflow either", Idle{}, math.MaxInt, 10 * time.Second},
		{"nor does the highest maximum", Idle{Max: math.MaxInt64}, math.MaxInt, longest},
		{"the last wait below the default maximum is exact", Idle{}, 11, 8649755859},
		{"the maximum holds from there on", Idle{}, 12, 10 * time.Second},
		{"the maximum holds for the initial wait too", Idle{Initial: time.Minute}, 0, 10 * time.Second},
		{"a negative count is the first", Idle{}, -7, 100 * ms},
		{"an increase of 1 keeps the wait", Idle{Increase: 1}, 1 << 40, 100 * ms},
		{"an increase below 1 counts as 1", Idle{Increase: 0.5}, 9, 100 * ms},
		{"an increase that is no number counts as 1", Idle{Increase: math.NaN()}, 9, 100 * ms},
		{"an infinite increase goes to the maximum at once", Idle{Increase: math.Inf(1)}, 1, 10 * time.Second},
		{"a negative initial wait is none", Idle{Initial: -time.Second}, 3, 0},
		{"a negative maximum is no wait", Idle{Max: -time.Second}, 3, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.idle.Delay(c.count); got != c.want {
				t.Errorf("%+v.Delay(%d) = %v, want %v", c.idle, c.count, got, c.want)
			}
		})
	}
}

func TestPollGrowsUntilItIsReset(t *testing.T) {
	p := Poll{Idle: Idle{Max: 300 * ms}}
	for range 2 {
		for i, want := range []time.Duration{100 * ms, 150 * ms, 225 * ms, 300 * ms, 300 * ms} {
			if got := p.Next(); got != want {
				t.Errorf("wait %d = %v, want %v", i, got, want)
			}
		}
		p.Reset()
	}
}

func TestPollWaitsAsZkPlanDoes(t *testing.T) {
	for _, idle := range []Idle{{}, {Initial: 5 * ms, Max: 500 * ms}, {Initial: time.Minute}, {Increase: 1}, {Increase: math.Inf(1)}, {Max: -1}, {Max: math.MaxInt64}} {
		p := Poll{Idle: idle}
		for n := range 30 {
			exact := idle.Delay(n)
			if got := p.Next(); got > exact || got < exact-exact>>20-2*time.Nanosecond {
				t.Errorf("%+v: wait %d is %v, and zk-plan's is %v", idle, n, got, exact)
			}
		}
	}
}

func TestRetryDelay(t *testing.T) {
	always := func(f float64) func() float64 { return func() float64 { return f } }
	most, short := always(0), always(0.9) // chance only shortens
	for _, c := range []struct {
		name    string
		retry   Retry
		attempt int
		random  func() float64
		want    time.Duration
	}{
		{"the first delay defaults to 1 s", Retry{}, 1, most, time.Second},
		{"the factor defaults to 2", Retry{}, 4, most, 8 * time.Second},
		{"the maximum defaults to a minute", Retry{}, 7, most, time.Minute},
		{"chance takes its share of half a delay by default", Retry{}, 2, short, 1100 * ms},
		{"chance is uniform in between", Retry{}, 2, always(0.5), 1500 * ms},
		{"chance shortens the maximum too", Retry{}, 50, short, 33 * time.Second},
		{"a jitter of 1 leaves the whole delay to chance", Retry{Jitter: 1}, 1, always(0.75), 250 * ms},
		{"a jitter above 1 counts as 1", Retry{Jitter: 7}, 1, always(0.75), 250 * ms},
		{"a negative jitter is none", Retry{Jitter: -1}, 3, short, 4 * time.Second},
		{"a jitter that is no number is none", Retry{Jitter: math.NaN()}, 3, short, 4 * time.Second},
		{"every field can be set", Retry{Initial: 10 * ms, Factor: 10, Max: 500 * ms, Jitter: 0.1}, 2, always(0.5), 95 * ms},
		{"an attempt below 1 counts as the first", Retry{}, -3, most, time.Second},
		{"the highest attempt does not overflow", Retry{}, math.MaxInt, most, time.Minute},
		{"nor does the highest maximum", Retry{Max: math.MaxInt64}, math.MaxInt, most, longest},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.retry.Delay(c.attempt, c.random); got != c.want {
				t.Errorf("%+v.Delay(%d) = %v, want %v", c.retry, c.attempt, got, c.want)
			}
		})
	}
}

func TestRetryDelayHasItsOwnChance(t *testing.T) {
	seen := map[time.Duration]bool{}
	for range 100 {
		d := Retry{}.Delay(3, nil)
		if d < 2*time.Second || d > 4*time.Second {
			t.Errorf("Delay(3) = %v, want it within [2s, 4s]", d)
		}
		seen[d] = true
	}
	if len(seen) < 2 {
		t.Errorf("100 delays were all the same: %v", seen)
	}
}

// checkDelays reports a delay that is negative, above limit, or below the one before it. It checks
// the last only if the factor is coarse enough for float64 to tell two powers apart.
func checkDelays(t *testing.T, what any, delay func(n int) time.Duration, n int, limit time.Duration, monotone bool) {
	t.Helper()
	got, next := delay(n), delay(n+1)
	if got < 0 || got > limit {
		t.Errorf("%+v: delay %d = %v, want it within [0, %v]", what, n, got, limit)
	}
	if monotone && n < math.MaxInt && next < got {
		t.Errorf("%+v: delay %d = %v, below the one before, %v", what, n+1, next, got)
	}
}

func FuzzIdleDelay(f *testing.F) {
	f.Add(int64(0), 0.0, int64(0), 0)
	f.Add(int64(1), 1.001, int64(math.MaxInt64), 43_000)
	f.Add(int64(math.MaxInt64), 1e300, int64(math.MaxInt64), math.MaxInt-1)
	f.Add(int64(3), math.Inf(1), int64(1<<62+1), math.MinInt)
	f.Add(int64(7), -2.0, int64(math.MinInt64), 12)
	f.Fuzz(func(t *testing.T, initial int64, increase float64, limit int64, count int) {
		p := Idle{Initial: time.Duration(initial), Increase: increase, Max: time.Duration(limit)}
		checkDelays(t, p, p.Delay, count, max(orDefault(p.Max, 10*time.Second), 0), increase >= 1.001)
	})
}

func FuzzRetryDelay(f *testing.F) {
	f.Add(int64(0), 0.0, int64(0), 0.0, 0, 0.5)
	f.Add(int64(1), 1.001, int64(math.MaxInt64), 0.25, 43_000, 0.999)
	f.Add(int64(math.MaxInt64), 1e300, int64(math.MaxInt64), 1.0, math.MaxInt-1, 0.0)
	f.Add(int64(9), -2.0, int64(math.MinInt64), -3.0, math.MinInt, 1.0)
	f.Fuzz(func(t *testing.T, initial int64, factor float64, limit int64, jitter float64, attempt int, random float64) {
		if !(random >= 0 && random < 1) {
			return // random promises that
		}
		r := Retry{Initial: time.Duration(initial), Factor: factor, Max: time.Duration(limit), Jitter: jitter}
		most := max(orDefault(r.Max, time.Minute), 0)
		delay := func(n int) time.Duration { return r.Delay(n, func() float64 { return random }) }
		checkDelays(t, r, delay, attempt, most, factor >= 1.001)
		if exact := r.Delay(attempt, func() float64 { return 0 }); jitter == 0 && delay(attempt) < exact/2-exact>>50 { // but for the rounding of float64
			t.Errorf("%+v: delay %d = %v, less than half of %v", r, attempt, delay(attempt), exact)
		}
	})
}
