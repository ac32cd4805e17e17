package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/duration"
	"github.com/seed-1177d267/sluice/internal/explain"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/states"
	"github.com/seed-1177d267/sluice/plan"
)

// A planEntry is a plan in JSON listings.
type planEntry struct {
	ID       plan.PlanID     `json:"id"`
	Name     string          `json:"name"`
	Run      int             `json:"run"`
	State    string          `json:"state"`
	Status   plan.Lifecycle  `json:"status"`
	Stalled  bool            `json:"stalled,omitempty"` // it runs, and no live node runs it
	Runners  int             `json:"runners,omitempty"` // how many of its tasks run in task runners while it is stalled, if that was asked
	Closing  plan.Closing    `json:"closing,omitempty"`
	Finally  bool            `json:"finally,omitempty"` // it has tasks of finally,
	Ending   string          `json:"ending,omitempty"`  // and how the others ended,
	Stopped  plan.Closing    `json:"stopped,omitempty"` // and what stopped these
	Timeout  api.Duration    `json:"timeout,omitempty"`
	Deadline time.Time       `json:"deadline,omitzero"` // when its timeout is over
	Priority int             `json:"priority,omitempty"`
	Source   string          `json:"source,omitempty"`
	By       string          `json:"submitted_by,omitempty"`
	Size     int             `json:"size,omitempty"` // how many tasks it is submitted with, if that is known
	Params   json.RawMessage `json:"params,omitempty"`
	Secrets  []string        `json:"secrets,omitempty"`
	Created  time.Time       `json:"created"`
	Retried  time.Time       `json:"retried,omitzero"`
	Ended    time.Time       `json:"ended,omitzero"`
	Left     int             `json:"seconds_left,omitempty"` // about how long it still takes, if anybody can tell
	Counts   plan.Counts     `json:"counts"`
	Sums     rules.Sums      `json:"sums"`
}

// entryOfPlan returns the plan as JSON has it; nodes are those of its store.
func entryOfPlan(p *plan.Plan, nodes []plan.Instance) planEntry {
	e := planEntry{
		ID: p.ID, Name: p.Name, Run: p.Run, State: p.State.String(), Status: p.State, Stalled: explain.Stalled(nodes, p), Closing: p.Closing, Finally: p.Finally, Ending: api.PlanOf(p).Ending, Stopped: p.Stopped, Timeout: api.Duration(p.Timeout), Deadline: p.Deadline, Priority: p.Priority, Source: p.Source, By: p.By, Size: p.Size, Params: p.Params, Secrets: p.Secrets,
		Created: p.Created, Retried: p.Retried, Ended: p.Ended, Counts: p.Counts, Sums: rules.SumsOf(p.Counts),
	}
	if left, ok := rules.PlanLeft(p, time.Now()); ok {
		e.Left = duration.Seconds(left)
	}
	return e
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
