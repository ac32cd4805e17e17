package explain

import (
	"fmt"

	"github.com/seed-1177d267/sluice/internal/duration"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// finished explains a task that will not run: it ended already.
func (e *explainer) finished(t *plan.Task, p *plan.Plan) (Link, *plan.Task, error) {
	when := ""
	if !t.Ended.IsZero() {
		when = fmt.Sprintf(" %s ago", duration.Text(e.now.Sub(t.Ended)))
	}
	switch {
	case t.Status == plan.Succeeded:
		return Link{Why: "it ended" + when}, nil, nil
	case t.Status == plan.Cancelled && t.Reason == plan.ReasonSkipped:
		return e.skipped(t, p)
	case t.Status == plan.Cancelled:
		return Link{Why: "a person cancelled it or its plan" + when, Do: retry(t, p)}, nil, nil
	case t.Reason == plan.ReasonItems:
		failed, err := e.failedItem(t)
		return Link{Why: t.Detail + when}, failed, err
	}
	why := "it ended" + when
	if t.Detail != "" {
		why = t.Detail + "; " + why
	}
	return Link{Why: why, Do: logs(t, p)}, nil, nil
}

// skipped finds the parent because of which a task did not run.
func (e *explainer) skipped(t *plan.Task, p *plan.Plan) (Link, *plan.Task, error) {
	parents, gone, err := e.parents(t)
	if err != nil {
		return Link{}, nil, err
	}
	for i := range parents {
		out := parents[i].Outcome()
		if out == 0 || plan.Decide(t.When, out, false) != plan.Skip {
			continue
		}
		full, err := e.task(parents[i].ID)
		return Link{Why: fmt.Sprintf("its when %s does not hold: %s is %s", whenWord(t.When), full.Key(), full.State())}, full, err
	}
	var seen plan.Outcome
	for i := range parents {
		seen |= parents[i].Outcome()
	}
	switch {
	case gone > 0 && plan.Decide(t.When, plan.OutcomeCancelled, false) == plan.Skip:
		return Link{Why: fmt.Sprintf("its when %s does not hold: %d of the tasks that it needs were deleted", whenWord(t.When), gone)}, nil, nil
	case seen != 0 && plan.Decide(t.When, seen, true) == plan.Skip:
		return Link{Why: fmt.Sprintf("its when %s does not hold, now that all %d tasks that it needs have ended", whenWord(t.When), len(parents))}, nil, nil
	case p.OnFailure == plan.Stop:
		return Link{Why: fmt.Sprintf("its plan %s started nothing more once a task had failed (on_failure: stop)", p.Title()), Do: retry(t, p)}, nil, nil
	}
	return Link{Why: "it was skipped", Do: retry(t, p)}, nil, nil
}

func (e *explainer) failedItem(t *plan.Task) (*plan.Task, error) {
	failed, err := e.r.Tasks(e.ctx, store.TaskQuery{
		Plan: t.Plan, Of: t.ID, Statuses: []plan.Status{plan.Failed, plan.Terminated, plan.Orphaned}, Limit: 1,
	})
	if err != nil || len(failed) == 0 {
		return nil, err
	}
	return &failed[0], nil
}

func retry(t *plan.Task, p *plan.Plan) []string {
	if t.Plan.IsZero() {
		return []string{"task", "retry", t.ID.String()}
	}
	return []string{"plan", "retry", p.Title(), t.Key()}
}

func logs(t *plan.Task, p *plan.Plan) []string {
	if t.Plan.IsZero() {
		return []string{"task", "logs", t.ID.String()}
	}
	return []string{"task", "logs", p.Title(), t.Key()}
}
