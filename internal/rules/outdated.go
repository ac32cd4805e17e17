package rules

import "github.com/seed-1177d267/sluice/plan"

// Outdated returns the tasks of a plan that succeeded before one of their parents ran again. A
// retry kept them, so their outputs come from earlier inputs. The caller may omit items.
func Outdated(tasks []plan.Task) (found []*plan.Task) {
	byID := ByID(tasks)
	for i := range tasks {
		t := &tasks[i]
		for _, need := range t.Needs {
			if p := byID[need]; p != nil && OlderThan(t, p) {
				found = append(found, t)
				break
			}
		}
	}
	return found
}

// OlderThan reports whether a task succeeded before a parent of it ran again. A task starts only
// after all its parents have ended, so the times tell. A parent that was skipped again has not run,
// and gives the same null as before.
func OlderThan(t, parent *plan.Task) bool {
	switch {
	case t.Status != plan.Succeeded || t.Ended.IsZero():
		return false
	case !parent.Status.Finished() || parent.Status == plan.Cancelled || !parent.Ended.After(t.Ended):
		return false
	}
	return parent.Started.IsZero() || parent.Started.After(t.Ended) // else the clock of the store was set back meanwhile
}

// ByID returns the tasks by their ids.
func ByID(tasks []plan.Task) map[plan.TaskID]*plan.Task {
	byID := make(map[plan.TaskID]*plan.Task, len(tasks))
	for i := range tasks {
		byID[tasks[i].ID] = &tasks[i]
	}
	return byID
}
