package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/approve"
	"github.com/seed-1177d267/sluice/internal/cli/view"
	"github.com/seed-1177d267/sluice/internal/explain"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/states"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

func planList(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List plans, newest first",
		Args:    noneBut("name"),
		Example: "  sluice plan list --state running\n  sluice plan list --output json | jq -r '.[].id'",
	}
	output := wideFlag(cmd)
	name := cmd.Flags().String("name", "", "only plans of this name")
	state := cmd.Flags().String("state", "", "only plans in this state: submitting, running, succeeded, failed, cancelled or abandoned; approval: plans that wait for an answer")
	completeWords(cmd, "state", []string{"approval", "submitting", "running", "succeeded", "failed", "cancelled", "abandoned"})
	limit := limitFlag(cmd, 50)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx := cmd.Context()
		q := store.PlanQuery{Name: *name, NoParams: !output.json()}
		awaiting := *state == string(plan.ReasonApproval)
		if *state != "" && !awaiting {
			l, err := states.ParseLifecycle(*state)
			if err != nil {
				return asUsage(err)
			}
			q.State = &l
		}
		return a.withStore(ctx, func(st store.Store) error {
			list := somePlans
			if awaiting {
				list = awaitingPlans
			}
			plans, more, err := list(ctx, st, q, *limit)
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

// awaitingPlans returns the plans of which a task waits for an answer, the newest first.
func awaitingPlans(ctx context.Context, st store.Reader, q store.PlanQuery, limit int) (plans []plan.Plan, more bool, err error) {
	asked, err := approve.Waiting(ctx, st, plan.PlanID{})
	if err != nil {
		return nil, false, err
	}
	seen := map[plan.PlanID]bool{{}: true} // a task of no plan is in no list of plans
	for i := range asked {
		id := asked[i].Plan
		if seen[id] {
			continue
		}
		seen[id] = true
		p, err := st.Plan(ctx, id)
		if err != nil {
			return nil, false, err
		}
		if q.Name == "" || p.Name == q.Name {
			plans = append(plans, p)
		}
	}
	slices.SortFunc(plans, func(a, b plan.Plan) int { return strings.Compare(b.ID.String(), a.ID.String()) })
	if limit > 0 && len(plans) > limit {
		return plans[:limit], true, nil
	}
	return plans, false, nil
}

// noPlans says that there are no plans, and what to do, unless only some were asked for.
func (a *app) noPlans(some bool) error {
	if some {
		a.note("no plan matches; to list all plans: %s", a.command("plan", "list"))
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
	t := a.table("PLAN", "STATE", "TASKS", "STARTED", "TOOK", "LEFT", "ID")
	now := time.Now()
	var stalled, half, awaits []*plan.Plan
	questions := map[plan.PlanID][]plan.Task{}
	if slices.ContainsFunc(plans, func(p plan.Plan) bool { return p.State == plan.PlanRunning && p.Counts.Held > 0 }) {
		asked, err := approve.Waiting(ctx, st, plan.PlanID{})
		if err != nil {
			return err
		}
		for _, task := range asked {
			questions[task.Plan] = append(questions[task.Plan], task)
		}
	}
	for i := range plans {
		p := &plans[i]
		tasks, only := done(p.Counts), false
		if len(questions[p.ID]) > 0 {
			var err error
			if _, only, err = awaiting(ctx, st, p); err != nil {
				return err
			}
		}
		switch {
		case only:
			awaits = append(awaits, p)
			tasks += ", asks"
		case explain.Stalled(nodes, p):
			stalled = append(stalled, p)
			tasks += ", no node"
		}
		if underSubmission(p) {
			half = append(half, p)
			tasks = fmt.Sprintf("%d of %d in", p.Counts.Total(), p.Size)
		}
		t.Add(p.Title(), p.State.String(), tasks, view.Ago(rules.Began(p), now), tookPlan(p, now), leftOf(p, now), p.ID.String())
	}
	if !wide {
		t.Drop("LEFT", "ID")
	}
	if err := t.Print(a.Stdout); err != nil {
		return err
	}
	if err := a.noteStalled(ctx, st, stalled, nodes); err != nil {
		return err
	}
	switch len(awaits) {
	case 0:
	case 1:
		a.note("%s", waitsFor(questions[awaits[0].ID], awaits[0], a.command))
	default:
		a.note("%d of these plans wait for an answer; %s names the question", len(awaits), a.command("plan", "status", "PLAN"))
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

// noteStalled names the plans of a list that no node runs, and says how to continue them.
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
