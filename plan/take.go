package plan

// A Take asks for a task that a node has claimed, but not started, to be moved to another instance of that node's name, which runs it: a
// runner.
type Take struct {
	Instance InstanceID
	Task     TaskID
	Start    bool // it goes to running at once
}

// CheckTake returns nil if the instance may take the task as it is now, or has it already; other says that the one that has it is a runner
// as well. Else it returns an ErrConflict. Of the task it uses ID, Name, Status, Reason, Node, and Instance, which is none where another
// program claimed it.
func CheckTake(t *Task, by *Instance, other bool) error {
	switch {
	case t.Status.Active() && t.Instance == by.ID:
		return nil
	case t.Status.Active() && t.Node != by.Node:
		return refuse(ErrConflict, "task %q is %s by node %q, and not by %q", t.Key(), t.State(), t.Node, by.Node)
	case t.Status.Active() && other:
		return refuse(ErrConflict, "task %q is %s, and another runner has it", t.Key(), t.State())
	case t.Status != Claimed:
		return refuse(ErrConflict, "task %q is %s: a runner takes what was claimed, and not started", t.Key(), t.State())
	}
	return nil
}

// CheckTakeCancelled returns an ErrConflict if a task that CheckTake lets be taken is to end instead, as rules.Stopped says: a person cancelled it
// before it was started.
func CheckTakeCancelled(t *Task) error {
	if t.Cancel && t.Status == Claimed {
		return refuse(ErrConflict, "task %q was cancelled before it was started", t.Key())
	}
	return nil
}
