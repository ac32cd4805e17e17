package plan

import "fmt"

// MissingItem says what a task knows of an item that it needs and that is not there, since a retry deleted it. of is the item's foreach task;
// nil is one that was deleted, too. The need waits for the new item with the same index (0). A foreach task that has made its items without
// that one, or has ended without items, makes it no more: the item counts as skipped then. If the foreach task was deleted, the item counts
// as cancelled, like every parent that was deleted.
//
// Of the foreach task it uses Status, Expanded and Items.
func MissingItem(of *Task, index int) Outcome {
	switch {
	case of == nil:
		return OutcomeCancelled
	case !of.Status.Finished() && (!of.Expanded || index < of.Items):
		return 0
	}
	return OutcomeSkipped
}

// MissingDetail says why a task is skipped that needs an item which MissingItem counts as skipped. Of the foreach task it uses Name, ID and
// Items.
func MissingDetail(of *Task, index int) string {
	items := "items"
	if of.Items == 1 {
		items = "item"
	}
	return fmt.Sprintf("it needs %s, and %s has %d %s since it was retried", ItemName(of.Key(), index), of.Key(), of.Items, items)
}
