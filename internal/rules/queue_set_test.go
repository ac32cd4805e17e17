package rules_test

import (
	"errors"
	"testing"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

func TestThreadsAreSetWhereTheyAreWhatWasRead(t *testing.T) {
	limit := func(n int) plan.Queue { return plan.Queue{Name: "q", Threads: n} }
	none := func(n int) plan.Queue { return plan.Queue{Name: "q", Threads: n, Unlimited: true} }
	for _, c := range []struct {
		name     string
		is, was  plan.Queue
		threads  int
		change   bool
		conflict bool
	}{
		{"nothing happened", limit(2), limit(2), 5, true, false},
		{"they are set already", limit(5), limit(2), 5, false, false},
		{"others were set", limit(3), limit(2), 5, false, true},
		{"the limit was taken off", none(2), limit(2), 5, false, true},
		{"the limit was taken off, and the number beside it is the same", none(5), limit(2), 5, false, true},
		{"a limit was set", limit(2), none(2), 5, false, true},
		{"without a limit the number does not count", none(3), none(2), 5, true, false},
		{"the limit is taken to what stands beside it", none(5), none(5), 5, true, false},
	} {
		change, err := rules.CheckThreads(c.is, c.was, c.threads)
		if change != c.change || errors.Is(err, plan.ErrConflict) != c.conflict || (err != nil) != c.conflict {
			t.Errorf("%s: change %v, %v; want %v, conflict %v", c.name, change, err, c.change, c.conflict)
		}
	}
}
