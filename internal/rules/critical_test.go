package rules_test

import (
	"slices"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/rules"
)

func TestTheCriticalPathGoesBackFromTheLastEnd(t *testing.T) {
	at := func(s float64) time.Time { return time.Unix(1000, 0).Add(time.Duration(s * float64(time.Second))) }
	ran := func(from, to float64, needs ...int32) rules.Ran {
		return rules.Ran{Started: at(from), Ended: at(to), Needs: needs, Of: -1}
	}
	never := func(to float64, needs ...int32) rules.Ran { return rules.Ran{Ended: at(to), Needs: needs, Of: -1} }
	item := func(from, to float64, of int32) rules.Ran {
		return rules.Ran{Started: at(from), Ended: at(to), Of: of}
	}
	type link struct {
		task      int
		wait, run float64
	}
	for _, c := range []struct {
		name string
		runs []rules.Ran
		want []link
	}{
		{"nothing has ended", []rules.Ran{{Of: -1}, {Started: at(1), Of: -1}}, nil},
		{"one task waited from the plan's beginning", []rules.Ran{ran(2, 5)}, []link{{0, 2, 3}}},
		{"the parent that ended last counts, not the one that ran longest",
			[]rules.Ran{ran(0, 5), ran(4, 6), ran(7, 8, 0, 1)}, []link{{1, 4, 2}, {2, 1, 1}}},
		{"of parents that ended at once the first counts", []rules.Ran{ran(0, 5), ran(1, 5), ran(5, 8, 1, 0)}, []link{{1, 1, 4}, {2, 0, 3}}},
		{"what ended later on no path to it is not there", []rules.Ran{ran(0, 9), ran(0, 3), ran(3, 10, 1)}, []link{{1, 0, 3}, {2, 0, 7}}},
		{"a parent that ran again after its child held nothing up", []rules.Ran{ran(20, 30), ran(0, 3), ran(4, 40, 0, 1)}, []link{{1, 0, 3}, {2, 1, 36}}},
		{"what was skipped passes the wait on", []rules.Ran{ran(0, 3), never(4, 0), ran(6, 7, 1)}, []link{{0, 0, 3}, {1, 1, 0}, {2, 2, 1}}},
		{"its last item stands for a foreach task",
			[]rules.Ran{ran(0, 2), never(9, 0), item(3, 9, 1), item(2, 8, 1), ran(10, 11, 1)}, []link{{0, 0, 2}, {2, 1, 6}, {4, 1, 1}}},
		{"a task still running is left out", []rules.Ran{ran(0, 3), {Started: at(3), Needs: []int32{0}, Of: -1}}, []link{{0, 0, 3}}},
		{"a foreign program's start after the end counts for nothing", []rules.Ran{{Started: at(9), Ended: at(5), Of: -1}}, []link{{0, 5, 0}}},
		{"a cycle ends it", []rules.Ran{never(5, 1), never(5, 0)}, []link{{1, 0, 0}, {0, 0, 0}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []link
			for _, l := range rules.CriticalPath(at(0), c.runs) {
				got = append(got, link{l.Task, l.Wait.Seconds(), l.Run.Seconds()})
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}
