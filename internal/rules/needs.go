package rules

import (
	"fmt"
	"strings"

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

// mostOutside is how many tasks CheckInside names.
const mostOutside = 10

// CheckInside returns an ErrUnavailable if a store of an older schema has unfinished tasks with edges that
// CheckNeed refuses, or items without a plan. tasks are those tasks, each by its key and its id.
func CheckInside(tasks []string) error {
	if len(tasks) == 0 {
		return nil
	}
	more := ""
	if n := len(tasks) - mostOutside; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return refusal.New(plan.ErrUnavailable, "the store has unfinished tasks that need tasks of another plan or items, or are a foreach of no plan: %s%s; "+
		"finish or cancel them with the sluice that made them, and open the store again", strings.Join(tasks[:min(len(tasks), mostOutside)], ", "), more)
}

// CheckAdded returns an ErrConflict for a task that cannot be added to the plan, or (zero) to none:
// a task of no plan has no items.
func CheckAdded(t *plan.Task, of plan.PlanID) error {
	if of.IsZero() && t.Foreach != nil {
		return refusal.New(plan.ErrConflict, "task %q is of no plan and has a foreach: submit it in a plan", t.Key())
	}
	return nil
}
