package rules

import (
	"slices"
	"time"
)

// A Ran is when a task ran, and after what, for CriticalPath.
type Ran struct {
	Started time.Time // of its last attempt; zero: it was never started
	Ended   time.Time // zero: it has not
	Needs   []int32   // its parents, as indices
	Of      int32     // the foreach task that it is an item of, as an index; below 0: none
}

// A Link is one task of a critical path.
type Link struct {
	Task int           // its index
	Wait time.Duration // from the end of the link before, or for the first from the plan's beginning, until it was started
	Run  time.Duration // of its last attempt; 0 of one that ended without being started
}

// CriticalPath returns the tasks that determined the length of a plan, first to last. The last is
// the task that ended last. Before it is the parent that ended last before its start, and so on. To
// shorten the plan, shorten one of these tasks, or its wait. Wait includes earlier attempts, and
// the delays between them.
//
// A foreach task does no work of its own. The item that ended last takes its place, with the
// parents of the foreach task, or its own if it has any. A task that ended without a start began as it ended. A parent that
// ended after its child began (it ran again in a retry) delayed nothing. If several parents ended
// at once, the first in Needs counts. If several tasks ended last, the one that began first counts,
// as when the caller ends the running tasks now. If nothing has ended, there is no path.
func CriticalPath(begin time.Time, runs []Ran) []Link {
	lastItem := make(map[int32]int32) // of each foreach task
	last := int32(-1)
	for i := range runs {
		r := &runs[i]
		if r.Ended.IsZero() {
			continue
		}
		if last < 0 || r.Ended.After(runs[last].Ended) || r.Ended.Equal(runs[last].Ended) && r.begin().Before(runs[last].begin()) {
			last = int32(i)
		}
		if r.Of >= 0 {
			if was, ok := lastItem[r.Of]; !ok || r.Ended.After(runs[was].Ended) {
				lastItem[r.Of] = int32(i)
			}
		}
	}
	var path []Link
	for seen := make(map[int32]bool); last >= 0 && !seen[last]; {
		seen[last] = true
		if item, ok := lastItem[last]; ok {
			last = item
			continue
		}
		r := &runs[last]
		start := r.begin()
		path = append(path, Link{Task: int(last), Run: r.Ended.Sub(start)})
		needs := r.Needs
		if r.Of >= 0 && len(needs) == 0 {
			needs = runs[r.Of].Needs
		}
		before := int32(-1)
		for _, p := range needs {
			if end := runs[p].Ended; !end.IsZero() && !end.After(start) && (before < 0 || end.After(runs[before].Ended)) {
				before = p
			}
		}
		since := begin
		if before >= 0 {
			since = runs[before].Ended
		}
		path[len(path)-1].Wait = max(0, start.Sub(since))
		last = before
	}
	slices.Reverse(path)
	return path
}

// begin is when the last attempt began.
func (r *Ran) begin() time.Time {
	if r.Started.IsZero() || r.Started.After(r.Ended) {
		return r.Ended
	}
	return r.Started
}
