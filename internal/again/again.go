// Package again reads the tasks of a plan and chooses which of them a retry runs again. Servers and
// programs ask here. Package plan has the rules.
package again

import (
	"context"
	"fmt"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// Select returns the tasks of a plan, and those of them that a retry of the chosen tasks runs again.
// Without chosen tasks it is a retry of all that did not succeed. The zero id is no plan: the tasks are
// then the chosen ones, which must be of no plan. Select returns plan.ErrPlanNotReady for a plan of
// which nothing ever ran, and the errors of rules.SelectRetry.
func Select(ctx context.Context, r store.Reader, id plan.PlanID, chosen []plan.TaskID, downstream bool) ([]plan.Task, []rules.Retried, error) {
	q := store.TaskQuery{Plan: id, Needs: true}
	if id.IsZero() {
		if len(chosen) == 0 {
			return nil, nil, fmt.Errorf("retry: no task is named: %w", plan.ErrNotFound)
		}
		q = store.TaskQuery{IDs: chosen, NoPlan: true, Needs: true}
	} else {
		p, err := r.Plan(ctx, id)
		if err != nil {
			return nil, nil, err
		}
		if err := rules.CheckRetry(&p, p.Counts.Stored()); err != nil {
			return nil, nil, err
		}
	}
	tasks, err := store.AllTasks(ctx, r, q)
	if err != nil {
		return nil, nil, err
	}
	selected, err := rules.SelectRetry(tasks, chosen, downstream)
	return tasks, selected, err
}
