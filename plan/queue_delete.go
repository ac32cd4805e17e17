package plan

// CheckDeleteQueue returns an ErrConflict if a queue is not to be deleted, since a task of a plan is in it that has not finished: the plan
// would never end. Unfinished is one of those, nil if there is none. Tasks of no plan keep no queue, as with Disbatch.
func CheckDeleteQueue(q *Queue, unfinished *Task) error {
	if unfinished == nil {
		return nil
	}
	return refuse(ErrConflict, "queue %q has task %q of plan %s, which is %s: cancel the plan, or wait for its end", q.Name, unfinished.Key(),
		unfinished.Plan, unfinished.State())
}
