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
	// Finally says that it is a task of finally.
	Finally bool
}

// CheckNeed returns an ErrNotFound for a need that the task cannot have. Edges stay inside: a task
// of a plan needs tasks of the same plan, and a task of no plan needs tasks of no plan. No task
// needs an item of a foreach task, because the foreach task decides which items it has. A task of finally
// needs tasks of finally, and no other task needs one. parent is nil if the store has no such task.
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
	case parent.Finally && !t.Finally:
		return refusal.New(plan.ErrNotFound, "task %q needs task %s, which is one of finally: these run when all others have ended", t.Key(), need)
	case t.Finally && !parent.Finally:
		return refusal.New(plan.ErrNotFound, "task %q is one of finally, and needs all tasks that are none: leave out that it needs task %s", t.Key(), need)
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

// CheckAdded returns an ErrConflict for a task that cannot be added to the plan, or (nil) to none:
// a task of no plan has no items, and is none of finally. A plan that has tasks of finally was created so,
// and all of them are in before it is ready.
func CheckAdded(t *plan.Task, p *plan.Plan) error {
	switch {
	case p == nil && t.Foreach != nil:
		return refusal.New(plan.ErrConflict, "task %q is of no plan and has a foreach: submit it in a plan", t.Key())
	case t.Finally && (p == nil || !p.Finally || p.State != plan.PlanSubmitting):
		return refusal.New(plan.ErrConflict, "task %q is one of finally, which is added as its plan is submitted: submit the plan with it", t.Key())
	}
	return CheckFinally(t)
}

// CheckFinally returns an ErrConflict for a task of finally that asks a person.
func CheckFinally(t *plan.Task) error {
	if t.Finally && t.Approve != nil {
		return refusal.New(plan.ErrConflict, "task %q is one of finally, and has approve: ask in a task that finally waits for", t.Key())
	}
	return nil
}
