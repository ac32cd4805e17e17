package rules

import (
	"github.com/seed-1177d267/sluice/internal/refusal"

	"github.com/seed-1177d267/sluice/plan"
)

// CheckPlanParams returns an ErrTooLarge for params of more than MaxPlanParams bytes.
func CheckPlanParams(bytes int) error {
	if bytes <= plan.MaxPlanParams {
		return nil
	}
	return refusal.New(plan.ErrTooLarge, "the params of the plan have %d bytes as JSON or more, aliases written out; a plan keeps at most %d (1 MiB): "+
		"keep large values in files, and let params be their paths", bytes, plan.MaxPlanParams)
}

// Troubled reports whether a task with that status and that attempt had a failure. The task failed,
// was stopped or lost, or an earlier attempt did, however the task ended. A foreach task that makes
// its items, or waits for them, may count as well: making items is an attempt.
func Troubled(s plan.Status, attempt int) bool {
	return attempt > 1 || attempt == 1 && Pending(s) || s.Wrong()
}
