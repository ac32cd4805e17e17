package rules

import "github.com/seed-1177d267/sluice/plan"

// CheckCancelTask refuses to cancel a task that has finished: ErrConflict.
func CheckCancelTask(t *plan.Task) error {
	if t.Status.Finished() {
		return plan.Conflictf("task %s is %s already: there is nothing to cancel", t.Key(), t.Word())
	}
	return nil
}
