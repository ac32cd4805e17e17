package rules

import (
	"github.com/seed-1177d267/sluice/plan"
)

// KeptStatuses are the statuses that a Keep tells apart.
var KeptStatuses = []plan.Status{plan.Succeeded, plan.Failed, plan.Terminated, plan.Cancelled, plan.Orphaned}

// KeepOf returns the field for one of KeptStatuses, or for a code above 1; nil for another status.
func KeepOf(k *plan.Keep, s plan.Status) *plan.Duration {
	switch min(s, plan.Failed) {
	case plan.Succeeded:
		return &k.Succeeded
	case plan.Failed:
		return &k.Failed
	case plan.Terminated:
		return &k.Terminated
	case plan.Cancelled:
		return &k.Cancelled
	case plan.Orphaned:
		return &k.Orphaned
	}
	return nil
}
