// Package approve has people answer the questions of tasks with an approval. Commands and servers use it.
package approve

import (
	"context"
	"errors"
	"slices"

	"github.com/seed-1177d267/sluice/internal/refusal"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// Answer answers the question of a task, as the person saw the task. The instant of the answer is the
// store's. It returns plan.ErrConflict if the task does not wait for the answer any more, with who was
// first, and if the person may not answer.
func Answer(ctx context.Context, st store.Store, t *plan.Task, a rules.Answer) error {
	var p plan.Plan
	var err error
	if !t.Plan.IsZero() {
		if p, err = st.Plan(ctx, t.Plan); err != nil {
			return err
		}
	}
	if err = rules.CheckApprover(t, &p, &a); err != nil {
		return err
	}
	if a.At, err = st.Now(ctx); err != nil {
		return err
	}
	err = st.AnswerTask(ctx, t.ID, a)
	if errors.Is(err, plan.ErrConflict) {
		if now, unread := st.Task(ctx, t.ID); unread == nil && now.Status.Finished() && now.Detail != "" {
			return refusal.New(plan.ErrConflict, "task %q was answered already: %s", now.Key(), now.Detail)
		}
	}
	return err
}

// Waiting returns the tasks that a person can answer, of one plan, or of all if id is zero. It leaves out
// those whose time is over. All questions are in one queue, so that it costs what there is to return.
func Waiting(ctx context.Context, st store.Reader, id plan.PlanID) ([]plan.Task, error) {
	q, err := Queue(ctx, st)
	if err != nil || q.IsZero() {
		return nil, err
	}
	held, err := store.AllTasks(ctx, st, store.TaskQuery{Queue: q, Plan: id, Statuses: []plan.Status{plan.Held}})
	if err != nil || len(held) == 0 {
		return nil, err
	}
	now, err := st.Now(ctx)
	return slices.DeleteFunc(held, func(t plan.Task) bool { return !t.AwaitsAnswer() || rules.AnswerOver(&t, now) }), err
}

// Queue returns the queue of the tasks that ask; zero if there never was one.
func Queue(ctx context.Context, st store.Reader) (plan.QueueID, error) {
	all, err := st.Queues(ctx)
	i := slices.IndexFunc(all, func(q plan.Queue) bool { return q.Name == plan.ApprovalPlugin })
	if err != nil || i < 0 {
		return plan.QueueID{}, err
	}
	return all[i].ID, nil
}
