package rules

import (
	"github.com/seed-1177d267/sluice/internal/refusal"
	"github.com/seed-1177d267/sluice/plan"
)

// CheckTake returns nil if the instance may take the task as it is now, or has it already. Else it
// returns an ErrConflict. other says that the present owner is a runner as well. CheckTake reads
// ID, Name, Status, Reason, Node and Instance of the task. Instance is zero if another program
// claimed the task.
func CheckTake(t *plan.Task, by *plan.Instance, other bool) error {
	switch {
	case t.Status.Active() && t.Instance == by.ID:
		return nil
	case t.Status.Active() && t.Node != by.Node:
		return refusal.New(plan.ErrConflict, "task %q is %s by node %q, and not by %q", t.Key(), t.State(), t.Node, by.Node)
	case t.Status.Active() && other:
		return refusal.New(plan.ErrConflict, "task %q is %s, and another runner has it", t.Key(), t.State())
	case t.Status != plan.Claimed:
		return refusal.New(plan.ErrConflict, "task %q is %s: a runner takes what was claimed, and not started", t.Key(), t.State())
	}
	return nil
}

// CheckTakeCancelled returns an ErrConflict if a person cancelled a task before it was started.
// Such a task ends, as rules.Stopped says, although CheckTake lets it be taken.
func CheckTakeCancelled(t *plan.Task) error {
	if t.Cancel && t.Status == plan.Claimed {
		return refusal.New(plan.ErrConflict, "task %q was cancelled before it was started", t.Key())
	}
	return nil
}
