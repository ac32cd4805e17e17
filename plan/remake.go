package plan

// Remakes reports whether a retry that takes a foreach task back deletes its items, which the task makes again once its parents have
// finished. t is the task before the retry, foreach says that it is a foreach task after the retry too, and waits that one of its
// parents runs again or has not finished. Of the task it uses Expanded and Items.
//
// A task that needs one of these items loses its input with the item. CheckBelow therefore counts for such tasks too.
func (r *Retried) Remakes(t *Task, foreach, waits bool) bool {
	return r.Anew || !foreach || waits || !t.Expanded || t.Items == 0
}
