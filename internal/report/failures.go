package report

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/seed-1177d267/sluice/internal/cells"
	"github.com/seed-1177d267/sluice/internal/failures"
	"github.com/seed-1177d267/sluice/plan"
)

// mostWays is how many ways of failing one line names, and as many of those that the plan allows.
const mostWays = 3

// fewFailed is how many tasks can be listed one by one.
const fewFailed = 10

// Failed says in one line how tasks failed. It returns "" for a few tasks that all failed in
// different ways, because there is nothing to sum up.
//
//	1,000 failed in 1 way: connect to db-#.example.com:# refused
//	4 failed in 2 ways: disk full on volume data (3), permission denied for role loader (1)
//	2 failed, 1 allowed in 2 ways: exit status 3 (2); allowed: no such host (1)
//	2 stopped: a person stopped it
func Failed(f *failures.Ways) string {
	all, how := f.Failed+f.Allowed, sum(f)
	if all <= fewFailed && len(f.Kinds) == all {
		return ""
	}
	if len(f.Kinds) == 1 {
		if f.Kinds[0].Reason != plan.ReasonCancelled {
			how += " in 1 way"
		}
		return how + ": " + cells.Clean(f.Kinds[0].Told())
	}
	var failed, allowed []*failures.Alike
	for _, k := range f.Kinds {
		if k.Allowed {
			allowed = append(allowed, k)
		} else {
			failed = append(failed, k)
		}
	}
	named := ways(failed) + ways(allowed)
	if len(failed) > 0 && len(allowed) > 0 {
		named = ways(failed) + "; allowed: " + ways(allowed)
	}
	return fmt.Sprintf("%s in %s ways: %s", how, Thousands(len(f.Kinds)), named)
}

// ways names ways of failing with how many tasks failed in each, the first of many.
func ways(kinds []*failures.Alike) string {
	parts := make([]string, 0, mostWays+1)
	for i, k := range kinds {
		if i == mostWays && len(kinds) > mostWays+1 {
			parts = append(parts, fmt.Sprintf("and %s others", Thousands(len(kinds)-i)))
			break
		}
		parts = append(parts, fmt.Sprintf("%s (%s)", cells.Clean(k.Told()), Thousands(k.Count)))
	}
	return strings.Join(parts, ", ")
}

// sum says how many tasks failed, as in "4 failed", "2 failed, 1 allowed" or "2 stopped".
func sum(f *failures.Ways) string {
	stopped := 0
	for _, k := range f.Kinds {
		if k.Reason == plan.ReasonCancelled && !k.Allowed {
			stopped += k.Count
		}
	}
	var parts []string
	for i, n := range []int{f.Failed - stopped, stopped, f.Allowed} {
		if n > 0 {
			parts = append(parts, Thousands(n)+[]string{" failed", " stopped", " allowed"}[i])
		}
	}
	return strings.Join(parts, ", ")
}

// Thousands writes a number with its thousands apart, as in 12,000.
func Thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
