package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/duration"
	"github.com/seed-1177d267/sluice/internal/explain"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/states"
	"github.com/seed-1177d267/sluice/plan"
)

// A planEntry is a plan in JSON, as the API has it.
type planEntry struct {
	api.Plan
	Runners int `json:"runners,omitempty"` // how many of its tasks run in task runners while it is stalled, if that was asked
}

// entryOfPlan returns the plan as JSON has it; nodes are those of its store.
func entryOfPlan(p *plan.Plan, nodes []plan.Instance) planEntry {
	return planEntry{Plan: api.ShownPlan(p, nodes)}
}

// countRunners counts the tasks of a stalled plan that run in task runners.
func (e *planEntry) countRunners(ctx context.Context, r explain.Reader, p *plan.Plan, nodes []plan.Instance) (err error) {
	if e.Stalled {
		e.Runners, err = explain.Outside(ctx, r, nodes, p)
	}
	return err
}

// done says how far a plan is, and what of that went wrong, in the words that its tasks have.
func done(c plan.Counts) string {
	s := fmt.Sprintf("%d/%d", c.Done(), c.Total())
	for _, wrong := range []struct {
		count int
		state string
	}{{c.Failed, "failed"}, {c.Allowed, "allowed"}, {c.Terminated, states.OfStatus(plan.Terminated)}, {c.Orphaned, states.OfStatus(plan.Orphaned)}} {
		if wrong.count > 0 {
			s += fmt.Sprintf(", %d %s", wrong.count, wrong.state)
		}
	}
	return s
}

// leftOf says about how much longer a plan takes; "" if nobody can tell.
func leftOf(p *plan.Plan, now time.Time) string {
	left, ok := rules.PlanLeft(p, now)
	if !ok {
		return ""
	}
	return "about " + duration.Roughly(left)
}

// timeoutOf says when the time of a plan that runs is over.
func timeoutOf(p *plan.Plan, now time.Time) string {
	switch {
	case p.Deadline.IsZero() || !rules.TimesOut(p.State, p.Ending, p.Closing, false):
		return ""
	case rules.Overdue(p, now):
		return "over for " + duration.Roughly(now.Sub(p.Deadline)) + "; a node stops the plan before it starts anything more"
	}
	return "in " + duration.Roughly(p.Deadline.Sub(now))
}

func tookPlan(p *plan.Plan, now time.Time) string {
	if p.State == plan.PlanSubmitting {
		return ""
	}
	return duration.Text(rules.Took(p, now))
}
