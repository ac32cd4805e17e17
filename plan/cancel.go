package plan

// CheckCancelTask refuses to cancel a task that has finished: ErrConflict.
func CheckCancelTask(t *Task) error {
	if t.Status.Finished() {
		return refuse(ErrConflict, "task %s is %s already: there is nothing to cancel", t.Key(), t.Word())
	}
	return nil
}
