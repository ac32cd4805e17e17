package cli

import (
	"context"
	"errors"

	"github.com/seed-1177d267/sluice/internal/report"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// reaction names what may be undone of what a retry keeps, and what the retry is sure not to run.
func reaction(f *rules.Foresight) report.Reaction {
	return report.Reaction{Cleaned: keys(f.Cleaned), Undone: keys(f.Undone), Skipped: keys(f.Skipped), Stopped: keys(f.Stopped), Missing: keys(f.Missing)}
}

// reactedStored is reaction for a plan that has ended, and a retry of all that did not succeed in it.
func reactedStored(ctx context.Context, r store.Reader, p *plan.Plan) (report.Reaction, error) {
	if p.State != plan.PlanFailed && p.State != plan.PlanCancelled || p.Counts.Succeeded == 0 {
		return report.Reaction{}, nil
	}
	var tasks []plan.Task
	err := store.EachTask(ctx, r, store.TaskQuery{Plan: p.ID, NoItems: true, Needs: true}, func(t *plan.Task) error {
		tasks = append(tasks, plan.Task{
			ID: t.ID, Name: t.Name, Needs: t.Needs, Status: t.Status, Reason: t.Reason, Expanded: t.Expanded, Items: t.Items,
			Definition: plan.Definition{When: t.When, Foreach: t.Foreach, ContinueOnError: t.ContinueOnError, Finally: t.Finally},
		})
		return nil
	})
	if err != nil {
		return report.Reaction{}, err
	}
	selected, err := rules.SelectRetry(tasks, nil, false)
	switch {
	case errors.Is(err, plan.ErrConflict), errors.Is(err, plan.ErrPlanActive): // nothing is to be retried, or another process retries it
		return report.Reaction{}, nil
	case err != nil:
		return report.Reaction{}, err
	}
	f := rules.Foresee(tasks, selected)
	return reaction(&f), nil
}
