package plan

// CheckDeleteQueue returns an ErrConflict if a queue is not to be deleted, since it names params that are secret, which stay behind in its
// tasks and would be shown, or since a task of a plan is in it that has not finished: the plan would never end. Unfinished is one of those, nil if there is none. Tasks of no plan keep no queue, as with Disbatch.
func CheckDeleteQueue(q *Queue, unfinished *Task) error {
	if len(q.Secrets) > 0 {
		return refuse(ErrConflict, "queue %q keeps params of its tasks secret, which would be shown without it: have an administrator take that off first, "+
			"as by sluice queue set %s --secret=", q.Name, q.Name)
	}
	if unfinished == nil {
		return nil
	}
	return refuse(ErrConflict, "queue %q has task %q of plan %s, which is %s: cancel the plan, or wait for its end", q.Name, unfinished.Key(),
		unfinished.Plan, unfinished.Word())
}
