package plan

// Outdated returns those tasks of a plan (items may be left out) that succeeded before some that they need ran again: a retry kept them, so
// that their outputs are of older inputs.
func Outdated(tasks []Task) (found []*Task) {
	byID := make(map[TaskID]*Task, len(tasks))
	for i := range tasks {
		byID[tasks[i].ID] = &tasks[i]
	}
	for i := range tasks {
		t := &tasks[i]
		for _, need := range t.Needs {
			if p := byID[need]; p != nil && t.OlderThan(p) {
				found = append(found, t)
				break
			}
		}
	}
	return found
}

// OlderThan reports whether a task succeeded before a parent of it ran again. Nothing starts before all that it needs has ended, so the times
// tell. What was skipped again has not run, and gives the same nothing as before.
func (t *Task) OlderThan(parent *Task) bool {
	switch {
	case t.Status != Succeeded || t.Ended.IsZero():
		return false
	case !parent.Status.Finished() || parent.Status == Cancelled || !parent.Ended.After(t.Ended):
		return false
	}
	return parent.Started.IsZero() || parent.Started.After(t.Ended) // else the clock of the store was set back meanwhile
}
