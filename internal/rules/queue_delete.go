package rules

import (
	"github.com/seed-1177d267/sluice/internal/refusal"
	"github.com/seed-1177d267/sluice/internal/states"
	"github.com/seed-1177d267/sluice/plan"
)

// CheckDeleteQueue returns an ErrConflict if a queue must not be deleted. A queue with names of
// secret params must stay, because its tasks would show these params. A queue with an unfinished
// task of a plan must stay, because the plan would never end; unfinished is one such task, or nil.
// A queue must stay while finished tasks of no plan are owed to the receivers of its group: without it
// nobody would hand them over. As with Disbatch, other tasks of no plan do not keep a queue.
func CheckDeleteQueue(q *plan.Queue, unfinished *plan.Task, owed int) error {
	if len(q.Secrets) > 0 {
		return refusal.New(plan.ErrConflict, "queue %q keeps params of its tasks secret, which would be shown without it: have an administrator take that off first, "+
			"as by sluice queue set %s --secret=", q.Name, q.Name)
	}
	switch {
	case unfinished != nil:
		return refusal.New(plan.ErrConflict, "queue %q has task %q of plan %s, which is %s: cancel the plan, or wait for its end", q.Name, unfinished.Key(),
			unfinished.Plan, states.OfTask(unfinished))
	case owed > 0:
		return refusal.New(plan.ErrConflict, "in queue %q finished tasks are still to be handed over, by the URIs of group %q, once they are kept no longer: %d. "+
			"Wait until that is done, as by sluice oste roll %s, or take the URIs off: sluice group set %s --success-uri none --dead-letter-uri none", q.Name, q.Group,
			owed, q.Group, q.Group)
	}
	return nil
}
