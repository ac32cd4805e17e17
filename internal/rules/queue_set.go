package rules

import (
	"github.com/seed-1177d267/sluice/internal/refusal"

	"github.com/seed-1177d267/sluice/plan"
)

// CheckThreads returns an ErrConflict if a queue, which was read as was before and is q now, was given other threads in between. It reports
// whether the queue is still to be changed: not if it has the threads that it is to get.
func CheckThreads(q, was plan.Queue, threads int) (change bool, err error) {
	switch {
	case !q.Unlimited && q.Threads == threads:
		return false, nil
	case q.Unlimited != was.Unlimited, !q.Unlimited && q.Threads != was.Threads:
		return false, refusal.New(plan.ErrConflict, "queue %q was given other threads meanwhile; look at it, and ask again", q.Name)
	}
	return true, nil
}

// CheckSettings returns an ErrConflict if a queue, which was read as was before and is q now, was set otherwise in between. It reports whether
// it is still to be changed: not if it is set as it is to be.
func CheckSettings(q, was, wanted *plan.Queue) (change bool, err error) {
	switch {
	case q.SameSettings(wanted):
		return false, nil
	case !q.SameSettings(was):
		return false, refusal.New(plan.ErrConflict, "queue %q was set otherwise meanwhile; look at it, and ask again", q.Name)
	}
	return true, nil
}
