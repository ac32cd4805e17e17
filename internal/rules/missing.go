package rules

import (
	"fmt"

	"github.com/seed-1177d267/sluice/plan"
)

// MissingItem returns the outcome of an item that a task needs and a retry has deleted. of
// is the item's foreach task, or nil if that was deleted, too. Outcome 0 means that the task waits
// for the new item with the same index. A foreach task makes that item no more if it has made its
// items without it, or has ended without items. The item then counts as skipped. If the foreach
// task was deleted, the item counts as cancelled, like every deleted parent.
//
// MissingItem reads Status, Expanded and Items of the foreach task.
func MissingItem(of *plan.Task, index int) Outcome {
	switch {
	case of == nil:
		return OutcomeCancelled
	case !of.Status.Finished() && (!of.Expanded || index < of.Items):
		return 0
	}
	return OutcomeSkipped
}

// MissingDetail is the detail of a task that is skipped because it needs an item that MissingItem
// counts as skipped. It reads Name, ID and Items of the foreach task.
func MissingDetail(of *plan.Task, index int) string {
	items := "items"
	if of.Items == 1 {
		items = "item"
	}
	return fmt.Sprintf("it needs %s, and %s has %d %s since it was retried", ItemName(of.Key(), index), of.Key(), of.Items, items)
}
