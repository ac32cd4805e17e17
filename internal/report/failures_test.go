package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/internal/failures"
	"github.com/seed-1177d267/sluice/plan"
)

func TestHowTasksFailedIsOneLine(t *testing.T) {
	for _, c := range []struct {
		details map[string]int
		want    string
	}{
		{nil, ""},
		{map[string]int{"a": 1}, ""},
		{map[string]int{"a": 1, "b": 1}, ""},
		{map[string]int{"permission denied for role loader": 2, "disk full on volume data": 2}, "4 failed in 2 ways"},
		{map[string]int{"connect to db-%d.example.com refused": 1234}, "1,234 failed in 1 way: connect to db-#.example.com refused"},
		{map[string]int{"disk full": 3, "no such\x1b[31m role": 2}, "5 failed in 2 ways: disk full (3), no such role (2)"},
		{map[string]int{"a": 5, "b": 4, "c": 3, "d": 2}, "14 failed in 4 ways: a (5), b (4), c (3), d (2)"},
		{map[string]int{"a": 5, "b": 4, "c": 3, "d": 2, "e": 1}, "15 failed in 5 ways: a (5), b (4), c (3), and 2 others"},
	} {
		var f failures.Ways
		for detail, n := range c.details {
			for i := range n {
				d := detail
				if detail == "connect to db-%d.example.com refused" {
					d = fmt.Sprintf(detail, i)
				}
				f.Add(&plan.Task{Status: plan.Failed, Detail: d})
			}
		}
		f.Sort()
		if got := Failed(&f); got != c.want && (c.want != "4 failed in 2 ways" || !strings.HasPrefix(got, c.want+": ")) {
			t.Errorf("%v: %q, want %q", c.details, got, c.want)
		}
	}
	for _, c := range []struct{ failed, allowed, want string }{
		{"aabc", "aad", "4 failed, 3 allowed in 5 ways: a (2), b (1), c (1); allowed: a (2), d (1)"},
		{"aa", "a", "2 failed, 1 allowed in 2 ways: a (2); allowed: a (1)"},
		{"", "aab", "3 allowed in 2 ways: a (2), b (1)"},
		{"aabcde", "aabcde", "6 failed, 6 allowed in 10 ways: a (2), b (1), c (1), and 2 others; allowed: a (2), b (1), c (1), and 2 others"},
	} {
		var f failures.Ways
		for _, detail := range c.failed {
			f.Add(&plan.Task{Status: plan.Failed, Detail: string(detail)})
		}
		for _, detail := range c.allowed {
			t := &plan.Task{Status: plan.Failed, Detail: string(detail)}
			t.ContinueOnError = true
			f.Add(t)
		}
		f.Sort()
		if got := Failed(&f); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	var stopped failures.Ways
	for _, want := range []string{"", "2 stopped: a person stopped it"} {
		stopped.Add(&plan.Task{Status: plan.Terminated, Reason: plan.ReasonCancelled, Detail: "a person stopped it"})
		if got := Failed(&stopped); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	stopped.Add(&plan.Task{Status: plan.Failed, Detail: "a"})
	if got, want := Failed(&stopped), "1 failed, 2 stopped in 2 ways: a person stopped it (2), a (1)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", -1000: "-1,000", 1234567: "1,234,567"} {
		if got := Thousands(n); got != want {
			t.Errorf("%d is written %q, want %q", n, got, want)
		}
	}
}
