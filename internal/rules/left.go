package rules

import (
	"time"

	"github.com/seed-1177d267/sluice/plan"
)

// fewest is how many tasks must have run before their pace says anything about the others.
const fewest = 5

// TimeLeft estimates how much longer the tasks of a plan take. The tasks went from one count to
// another in the time that passed. ok is false if an estimate is impossible, because fewer than
// five tasks have run meanwhile, nothing runs, or all remaining tasks run already.
//
// The estimate is a linear extrapolation of the pace so far, as GNU parallel --eta makes it:
//
//	left = passed × (unfinished − running/2) / (ran + running/2)
//
// ran leaves out tasks that were skipped or cancelled, which took no time. A running task counts as half
// done: seen at any instant, a task is in the middle of its run on average. Items that are not made yet
// are in no count, so that the estimate grows as a foreach task makes its items.
func TimeLeft(from, to plan.Counts, passed time.Duration) (left time.Duration, ok bool) {
	ran := ran(to) - ran(from)
	running, unfinished := to.Running+to.Claimed, to.Unfinished()
	if ran < fewest || running == 0 || unfinished <= running || passed <= 0 {
		return 0, false
	}
	half := float64(running) / 2
	return time.Duration(float64(passed) * (float64(unfinished) - half) / (float64(ran) + half)), true
}

// ran returns how many tasks have ended that were not skipped or cancelled.
func ran(c plan.Counts) int { return c.Total() - c.Unfinished() - c.Skipped - c.Cancelled }

// Began returns when the plan last began to run: when it was submitted or, if it has ended since,
// when a retry let it run again.
func Began(p *plan.Plan) time.Time {
	if p.Retried.IsZero() {
		return p.Created
	}
	return p.Retried
}

// Took returns how long the plan has run since it Began, up to its end or until now. Earlier runs do
// not count, and neither does the time in which it had ended.
func Took(p *plan.Plan, now time.Time) time.Duration {
	if !p.Ended.IsZero() {
		now = p.Ended
	}
	return max(now.Sub(Began(p)), 0)
}

// PlanLeft estimates how much longer the plan takes, as TimeLeft does from its start. There is no
// estimate for a plan that does not run or is closed. After a retry, or an addition, the counts hold
// tasks of a time when the plan stood still, so there is none either.
func PlanLeft(p *plan.Plan, now time.Time) (left time.Duration, ok bool) {
	if p.State != plan.PlanRunning || p.Closing != plan.Open || p.Edits > 0 {
		return 0, false
	}
	return TimeLeft(plan.Counts{}, p.Counts, now.Sub(p.Created))
}
