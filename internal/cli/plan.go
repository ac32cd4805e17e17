package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/cli/view"
	"github.com/seed-1177d267/sluice/internal/duration"
	"github.com/seed-1177d267/sluice/internal/explain"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

func planCommands(a *app) *cobra.Command {
	cmd := group(&cobra.Command{Use: "plan", Short: "Run plans, and look after them", Long: "Run plans, and look after them.\n\n" + planHelp})
	titled(cmd, "run", "Run them:", planRun(a), planSubmit(a), planWait(a), planCheck(a))
	titled(cmd, "look", "Look at them:", planList(a), planStatus(a), planLogs(a), planFailures(a), planExplain(a), planGraph(a))
	titled(cmd, "act", "Act on them:", planRetry(a), planCancel(a), planDelete(a), planPrune(a))
	titled(cmd, "files", "Plan files:", planExample(a), planValidate(a), planSchema(a), planImport(a))
	titled(cmd, "build", "Plans made task by task, as by a script:", planCreate(a), planAdd(a), planReady(a))
	return cmd
}

// A planEntry is a plan in JSON listings.
type planEntry struct {
	ID      plan.PlanID     `json:"id"`
	Name    string          `json:"name"`
	Run     int             `json:"run"`
	State   string          `json:"state"`
	Status  plan.Lifecycle  `json:"status"`
	Stalled bool            `json:"stalled,omitempty"` // it runs, and no live node runs it
	Runners int             `json:"runners,omitempty"` // how many of its tasks task runners go on with while it is stalled, where that was asked
	Closing plan.Closing    `json:"closing,omitempty"`
	Source  string          `json:"source,omitempty"`
	By      string          `json:"submitted_by,omitempty"`
	Size    int             `json:"size,omitempty"` // how many tasks it is submitted with, if that is known
	Params  json.RawMessage `json:"params,omitempty"`
	Secrets []string        `json:"secrets,omitempty"`
	Created time.Time       `json:"created"`
	Ended   time.Time       `json:"ended,omitzero"`
	Left    int             `json:"seconds_left,omitempty"` // about how long it still takes, if anybody can tell
	Counts  plan.Counts     `json:"counts"`
	Sums    plan.Sums       `json:"sums"`
}

// entryOfPlan returns the plan as JSON has it; nodes are those of its store.
func entryOfPlan(p *plan.Plan, nodes []plan.Instance) planEntry {
	e := planEntry{
		ID: p.ID, Name: p.Name, Run: p.Run, State: p.State.String(), Status: p.State, Stalled: explain.Stalled(nodes, p), Closing: p.Closing, Source: p.Source, By: p.By, Size: p.Size, Params: p.Params, Secrets: p.Secrets,
		Created: p.Created, Ended: p.Ended, Counts: p.Counts, Sums: p.Counts.Sums(),
	}
	if left, ok := p.Left(time.Now()); ok {
		e.Left = duration.Seconds(left)
	}
	return e
}

// countRunners fills in how many tasks of a stalled plan task runners go on with.
func (e *planEntry) countRunners(ctx context.Context, r explain.Reader, p *plan.Plan, nodes []plan.Instance) (err error) {
	if e.Stalled {
		e.Runners, err = explain.Outside(ctx, r, nodes, p)
	}
	return err
}

func planList(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List plans, newest first",
		Args:    noneBut("name"),
		Example: "  sluice plan list --state running\n  sluice plan list --output json | jq -r '.[].id'",
	}
	output := wideFlag(cmd)
	name := cmd.Flags().String("name", "", "only plans of this name")
	state := cmd.Flags().String("state", "", "only plans in this state: submitting, running, succeeded, failed, cancelled or abandoned")
	completeWords(cmd, "state", []string{"submitting", "running", "succeeded", "failed", "cancelled", "abandoned"})
	limit := limitFlag(cmd, 50)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx := cmd.Context()
		q := store.PlanQuery{Name: *name, NoParams: !output.json()}
		if *state != "" {
			l, err := plan.ParseLifecycle(*state)
			if err != nil {
				return asUsage(err)
			}
			q.State = &l
		}
		return a.withStore(ctx, func(st store.Store) error {
			plans, more, err := somePlans(ctx, st, q, *limit)
			if err != nil {
				return err
			}
			nodes, err := st.Instances(ctx)
			if err != nil {
				return err
			}
			if !output.json() {
				if len(plans) == 0 {
					return a.noPlans(*name != "" || *state != "")
				}
				if err := a.printPlans(ctx, st, plans, nodes, output.wide()); err != nil {
					return err
				}
				return a.noteMore(cmd, more, "plans")
			}
			entries := make([]planEntry, len(plans))
			for i := range plans {
				entries[i] = entryOfPlan(&plans[i], nodes)
				if err := entries[i].countRunners(ctx, st, &plans[i], nodes); err != nil {
					return err
				}
			}
			if err := view.JSON(a.Stdout, entries); err != nil {
				return err
			}
			return a.noteMore(cmd, more, "plans")
		})
	}
	return cmd
}

// noPlans says that there are no plans, and what to do, unless only some were asked for.
func (a *app) noPlans(some bool) error {
	if some {
		a.note("there is no such plan; all: %s", a.command("plan", "list"))
		return nil
	}
	verb := "run"
	if a.served() {
		verb = "submit"
	}
	a.note("there are no plans yet; to begin with one: sluice plan example > plan.yaml, then %s", a.command("plan", verb, "plan.yaml"))
	return nil
}

// printPlans prints plans as a table, wide with their ids, and notes what keeps some of them from running. nodes are those of their store.
func (a *app) printPlans(ctx context.Context, st store.Store, plans []plan.Plan, nodes []plan.Instance, wide bool) error {
	t := view.Table{Head: []string{"PLAN", "STATE", "TASKS", "STARTED", "TOOK"}, Paint: a.paint(a.Stdout).States(1)}
	if wide {
		t.Head = append(t.Head, "LEFT", "ID")
	}
	now := time.Now()
	var stalled, half []*plan.Plan
	for i := range plans {
		p := &plans[i]
		tasks := done(p.Counts)
		if explain.Stalled(nodes, p) {
			stalled = append(stalled, p)
			tasks += ", no node"
		}
		if underSubmission(p) {
			half = append(half, p)
			tasks = fmt.Sprintf("%d of %d in", p.Counts.Total(), p.Size)
		}
		row := []string{p.Title(), p.State.String(), tasks, view.Ago(p.Created, now), tookPlan(p, now)}
		if wide {
			row = append(row, leftOf(p, now), p.ID.String())
		}
		t.Add(row...)
	}
	if err := t.Print(a.Stdout); err != nil {
		return err
	}
	if err := a.noteStalled(ctx, st, stalled, nodes); err != nil {
		return err
	}
	switch len(half) {
	case 0:
	case 1:
		a.note("%s is not ready: %s", half[0].Title(), a.submission(half[0], now))
	default:
		a.note("%d of these plans are not ready, since their submission has not ended; %s says what to do", len(half), a.command("plan", "status", "PLAN"))
	}
	return nil
}

// noteStalled says of plans of a list that no node runs them, and how to go on.
func (a *app) noteStalled(ctx context.Context, st store.Store, stalled []*plan.Plan, nodes []plan.Instance) error {
	switch len(stalled) {
	case 0:
	case 1:
		outside, err := explain.Outside(ctx, st, nodes, stalled[0])
		if err != nil {
			return err
		}
		a.note("no node runs %s%s; %s", stalled[0].Title(), stillRuns(outside), a.goOn(stalled[0]))
	default:
		goOn := startThere
		if !a.served() {
			goOn = "go on with each: " + a.command("plan", "run", "--resume", "PLAN")
		}
		a.note("no node runs %d of these plans; %s", len(stalled), goOn)
	}
	return nil
}

// somePlans reads up to limit plans (0: all), newest first, and reports whether there are more.
func somePlans(ctx context.Context, r store.Reader, q store.PlanQuery, limit int) (plans []plan.Plan, more bool, err error) {
	const page = 500
	for {
		q.Limit = page
		if limit > 0 {
			q.Limit = min(page, limit-len(plans)+1)
		}
		found, err := r.Plans(ctx, q)
		if err != nil {
			return nil, false, err
		}
		plans = append(plans, found...)
		if limit > 0 && len(plans) > limit {
			return plans[:limit], true, nil
		}
		if len(found) < q.Limit {
			return plans, false, nil
		}
		q.Before = plans[len(plans)-1].ID
	}
}

// done says how far a plan is, and what of that went wrong, in the words that its tasks have.
func done(c plan.Counts) string {
	s := fmt.Sprintf("%d/%d", c.Done(), c.Total())
	for _, wrong := range []struct {
		count int
		state string
	}{{c.Failed, "failed"}, {c.Allowed, "allowed"}, {c.Terminated, plan.Terminated.Word()}, {c.Orphaned, plan.Orphaned.Word()}} {
		if wrong.count > 0 {
			s += fmt.Sprintf(", %d %s", wrong.count, wrong.state)
		}
	}
	return s
}

// leftOf says about how much longer a plan takes; "" if nobody can tell.
func leftOf(p *plan.Plan, now time.Time) string {
	left, ok := p.Left(now)
	if !ok {
		return ""
	}
	return "about " + duration.Roughly(left)
}

func tookPlan(p *plan.Plan, now time.Time) string {
	switch {
	case p.State == plan.PlanSubmitting:
		return ""
	case p.Ended.IsZero():
		return duration.Text(now.Sub(p.Created))
	}
	return duration.Text(p.Ended.Sub(p.Created))
}
