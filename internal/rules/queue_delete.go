package rules

import (
	"github.com/seed-1177d267/sluice/internal/refusal"
	"github.com/seed-1177d267/sluice/internal/states"
	"github.com/seed-1177d267/sluice/plan"
)

// CheckDeleteQueue returns an ErrConflict if a queue must not be deleted. A queue with names of
// secret params must stay, because its tasks would show these params. A queue with an unfinished
// task of a plan must stay, because the plan would never end; unfinished is one such task, or nil.
// As with Disbatch, tasks of no plan do not keep a queue.
func CheckDeleteQueue(q *plan.Queue, unfinished *plan.Task) error {
	if len(q.Secrets) > 0 {
		return refusal.New(plan.ErrConflict, "queue %q keeps params of its tasks secret, which would be shown without it: have an administrator take that off first, "+
			"as by sluice queue set %s --secret=", q.Name, q.Name)
	}
	if unfinished == nil {
		return nil
	}
	return refusal.New(plan.ErrConflict, "queue %q has task %q of plan %s, which is %s: cancel the plan, or wait for its end", q.Name, unfinished.Key(),
		unfinished.Plan, states.OfTask(unfinished))
}
