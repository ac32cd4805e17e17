package rules

import (
	"time"

	"github.com/seed-1177d267/sluice/plan"
)

// A queue with a rate stores one instant: when, at the pace of the rate, the tasks that have started
// are over. It is the theoretical arrival time of GCRA (ITU-T I.371, virtual scheduling). A task may
// start while that instant is ahead of the present by less than the burst allows.

// RateRoom returns how many tasks, of most, a rate lets start now. spent is the instant of the queue;
// zero: nothing has started.
func RateRoom(r plan.Rate, spent, now time.Time, most int) int {
	if r == (plan.Rate{}) {
		return most
	}
	each := r.Interval()
	room := time.Duration(r.AtOnce())*each - rateAhead(r, spent, now)
	return min(most, int(room/each))
}

// RateSpend returns the instant of the queue once n more tasks have started.
func RateSpend(r plan.Rate, spent, now time.Time, n int) time.Time {
	return now.Add(rateAhead(r, spent, now) + time.Duration(n)*r.Interval())
}

// RateWait returns how long it is until the next task may start; 0: one may start now.
func RateWait(r plan.Rate, spent, now time.Time) time.Duration {
	if r == (plan.Rate{}) {
		return 0
	}
	return max(0, rateAhead(r, spent, now)-time.Duration(r.AtOnce()-1)*r.Interval())
}

// RateSpent returns the instant of the queue as it counts. It is never further ahead than the burst
// allows: else the clock was set back, or the rate was another one. A store whose instant is further
// ahead writes this one: else it would go ahead with the present.
func RateSpent(r plan.Rate, spent, now time.Time) time.Time {
	if r == (plan.Rate{}) || spent.Before(now) {
		return spent
	}
	return now.Add(rateAhead(r, spent, now))
}

// RateChanged returns the instant of the queue once its rate was replaced. A start that counted by the
// old rate counts by the new one, and takes up no less time than it did. So a lower rate lets nothing
// start for which the old one had to wait.
func RateChanged(was, is plan.Rate, spent, now time.Time) time.Time {
	if was == is || was == (plan.Rate{}) || is == (plan.Rate{}) {
		return spent
	}
	ahead, most := rateAhead(was, spent, now), time.Duration(is.AtOnce())
	starts := min((ahead+was.Interval()-1)/was.Interval(), most)
	return now.Add(min(max(ahead, starts*is.Interval()), most*is.Interval()))
}

// GroupSpent returns the instant of a group that is made, or changed to be as g.
func GroupSpent(groups []plan.Group, g *plan.Group, now time.Time) time.Time {
	is := groupNamed(groups, g.Name)
	if is == nil {
		return time.Time{}
	}
	return RateChanged(is.Rate, g.Rate, is.Spent, now)
}

// rateAhead returns how far the instant of the queue is ahead of the present, as it counts.
func rateAhead(r plan.Rate, spent, now time.Time) time.Duration {
	if spent.IsZero() {
		return 0
	}
	return min(max(0, spent.Sub(now)), time.Duration(r.AtOnce())*r.Interval())
}
