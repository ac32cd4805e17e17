package rules

import (
	"fmt"

	"github.com/seed-1177d267/sluice/internal/refusal"
	"github.com/seed-1177d267/sluice/plan"
)

// A Needed is what a store knows of the parent that a new task names.
type Needed struct {
	Plan plan.PlanID
	Item bool // it is an item of a foreach task
}

// CheckNeed returns an ErrNotFound for a need that the task cannot have. Edges stay inside: a task
// of a plan needs tasks of the same plan, and a task of no plan needs tasks of no plan. No task
// needs an item of a foreach task, because the foreach task decides which items it has. parent is
// nil if the store has no such task.
func CheckNeed(t *plan.Task, of plan.PlanID, need plan.TaskID, parent *Needed) error {
	switch {
	case parent == nil:
		return fmt.Errorf("task %q needs task %s: %w", t.Key(), need, plan.ErrNotFound)
	case parent.Plan != of && of.IsZero():
		return refusal.New(plan.ErrNotFound, "task %q needs task %s, which is of a plan: a task of no plan needs tasks of no plan", t.Key(), need)
	case parent.Plan != of:
		return refusal.New(plan.ErrNotFound, "task %q needs task %s, which is not of its plan", t.Key(), need)
	case parent.Item:
		return refusal.New(plan.ErrNotFound, "task %q needs task %s, which is an item: let it need the foreach task", t.Key(), need)
	}
	return nil
}

// CheckAdded returns an ErrConflict for a task that cannot be added to the plan, or (zero) to none:
// a task of no plan has no items.
func CheckAdded(t *plan.Task, of plan.PlanID) error {
	if of.IsZero() && t.Foreach != nil {
		return refusal.New(plan.ErrConflict, "task %q is of no plan and has a foreach: submit it in a plan", t.Key())
	}
	return nil
}
