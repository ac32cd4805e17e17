package rules

import "github.com/seed-1177d267/sluice/plan"

// Remakes reports whether a retry that takes a foreach task back deletes its items. The task makes
// new items once its parents have finished. t is the task before the retry, of which Remakes reads
// Expanded and Items. foreach says that it is a foreach task after the retry too. waits says that
// one of its parents runs again or has not finished.
//
// A task that needs one of these items loses its input with the item. CheckBelow therefore counts for such tasks too.
func Remakes(r *plan.Retried, t *plan.Task, foreach, waits bool) bool {
	return r.Anew || !foreach || waits || !t.Expanded || t.Items == 0
}
