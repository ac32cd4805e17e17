package rules

import (
	"cmp"
	"fmt"
	"time"

	"github.com/seed-1177d267/sluice/plan"
)

// A Deletion is what a store knows of a plan that is to be deleted.
type Deletion struct {
	Title    string
	State    plan.Lifecycle
	Retrying bool // a retry of the plan is being made
	Begun    bool // the deletion has begun: some tasks may be gone
}

// Check returns an ErrPlanActive if the deletion must not begin. A deletion that has begun is
// completed.
func (d *Deletion) Check() error {
	switch {
	case d.Begun:
		return nil
	case !d.State.Ended():
		return fmt.Errorf("plan %s is %v: %w", d.Title, d.State, plan.ErrPlanActive)
	case d.Retrying:
		return fmt.Errorf("plan %s is being retried: %w", d.Title, plan.ErrPlanActive)
	}
	return nil
}

// KeptUntil returns the instant after which a plan is expired that ended then. keep is the plan's
// own, and byDefault that of the store. The plan is kept for ever if the instant is zero.
func KeptUntil(ended time.Time, keep, byDefault time.Duration) time.Time {
	if keep = cmp.Or(keep, byDefault); keep <= 0 {
		return time.Time{}
	}
	return ended.Add(keep)
}

// A Kept names the finished tasks of no plan that are in a queue and have a status. plan.Failed stands
// for every code above 1.
type Kept[Q comparable] struct {
	Queue  Q
	Status plan.Status
}

// KeptAs names the tasks that are kept like one of that queue with that status.
func KeptAs[Q comparable](q Q, s plan.Status) Kept[Q] { return Kept[Q]{q, min(s, plan.Failed)} }

// KeepLimits returns how long finished tasks of no plan are kept until a sweep deletes them. It does not
// delete tasks that are not in the map, because they are kept for ever or are handed over. byDefault is
// the store's value for what a queue leaves open.
func KeepLimits[Q comparable](queues map[Q]plan.QueueSettings, groups []plan.Group, byDefault time.Duration) map[Kept[Q]]time.Duration {
	limits := map[Kept[Q]]time.Duration{}
	for q, settings := range queues {
		for _, s := range KeptStatuses {
			limit := cmp.Or(time.Duration(*KeepOf(&settings.Keep, s)), byDefault)
			if limit > 0 && ReceiverOf(groups, settings.Group, RollKindOf(s)) == "" {
				limits[Kept[Q]{q, s}] = limit
			}
		}
	}
	return limits
}
