package rules_test

import (
	"slices"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/rules"
)

func TestIdleSpansOfAPlanThatWasRetried(t *testing.T) {
	at := func(minutes float64) time.Time {
		return time.Unix(1000, 0).Add(time.Duration(minutes * float64(time.Minute)))
	}
	ran := func(from, to float64) rules.Ran { return rules.Ran{Started: at(from), Ended: at(to), Of: -1} }
	for _, c := range []struct {
		name    string
		retried float64 // 0: it was not
		end     float64
		runs    []rules.Ran
		want    [][2]float64
	}{
		{"a plan that was not retried has none", 0, 600, []rules.Ran{ran(0, 5), ran(590, 600)}, nil},
		{"the night before a retry", 600, 610, []rules.Ran{ran(0, 5), ran(601, 610)}, [][2]float64{{5, 600}}},
		{"tasks that overlap leave none between them", 600, 610, []rules.Ran{ran(0, 9), ran(1, 5), ran(601, 610)}, [][2]float64{{9, 600}}},
		{"a wait after the retry stays", 10, 610, []rules.Ran{ran(0, 5), ran(600, 610)}, nil},
		{"a wait that is short beside the work stays", 64, 124, []rules.Ran{ran(0, 60), ran(64, 124)}, nil},
		{"seconds stay", 0.6, 0.7, []rules.Ran{ran(0, 0.1), ran(0.6, 0.7)}, nil},
		{"a task that runs until now", 600, 605, []rules.Ran{ran(0, 5), {Started: at(600), Of: -1}, {Of: -1}}, [][2]float64{{5, 600}}},
		{"nothing of the retry has begun", 600, 605, []rules.Ran{ran(0, 5)}, [][2]float64{{5, 600}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			retried := time.Time{}
			if c.retried > 0 {
				retried = at(c.retried)
			}
			var got [][2]float64
			for _, s := range rules.Idle(at(0), retried, at(c.end), c.runs) {
				got = append(got, [2]float64{s.From.Sub(at(0)).Minutes(), s.To.Sub(at(0)).Minutes()})
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}
