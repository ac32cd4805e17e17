package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/cli/view"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

func planPrune(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "prune --keep AGE",
		Short: "Delete plans that ended long ago",
		Long: "Delete plans that ended longer ago than AGE, with their tasks and logs, name " +
			"them, and free their room. A \"keep\" in the file of a plan counts instead of " +
			"AGE.",
		Example: "  sluice plan prune --keep 30d --dry-run\n  sluice plan prune --keep 30d",
		Args:    noneBut("keep"),
	}
	var keep time.Duration
	cmd.Flags().Var(&value[time.Duration]{&keep, "AGE", parseAge, spanText}, "keep", "the age, such as 30d, 2w or 12h; 0: only plans with a keep of their own")
	dryRun := cmd.Flags().Bool("dry-run", false, "only show what would be deleted")
	output := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx := cmd.Context()
		if !cmd.Flags().Changed("keep") {
			return usagef("say what to keep, as in --keep 30d")
		}
		return a.withStore(ctx, func(st store.Store) error {
			now, err := st.Now(ctx)
			if err != nil {
				return err
			}
			old, err := expired(ctx, st, keep, now)
			if err != nil {
				return err
			}
			if *dryRun {
				return a.printPruned(output, old, len(old), "would be deleted")
			}
			gone, total, err := prune(ctx, st, old, keep)
			return errors.Join(a.printPruned(output, gone, total, ""), err)
		})
	}
	return cmd
}

// expired returns the plans that Prune deletes with that age, newest first. It is the rule of
// store.Admin, read here so that a person sees its effect before, and the names after.
func expired(ctx context.Context, r store.Reader, keep time.Duration, now time.Time) (old []plan.Plan, err error) {
	all, _, err := somePlans(ctx, r, store.PlanQuery{NoParams: true}, 0)
	for _, p := range all {
		if age := cmp.Or(p.Keep, keep); !p.Ended.IsZero() && age > 0 && now.Sub(p.Ended) > age {
			old = append(old, p)
		}
	}
	return old, err
}

// prune prunes, and returns the expired plans that are gone after, and the number of all deleted
// plans. The number includes deletions that stopped half-way, of plans that nobody sees any more.
func prune(ctx context.Context, st store.Store, expired []plan.Plan, keep time.Duration) (gone []plan.Plan, total int, err error) {
	for more := true; more && err == nil; {
		var n int
		n, more, err = st.Prune(ctx, keep, protocol.DefaultBudget)
		total += n
	}
	if err != nil {
		err = fmt.Errorf("prune: %w", err)
	}
	for i := range expired {
		switch _, missing := st.Plan(ctx, expired[i].ID); {
		case errors.Is(missing, plan.ErrNotFound):
			gone = append(gone, expired[i])
		case missing != nil:
			return gone, total, errors.Join(err, missing)
		}
	}
	return gone, max(total, len(gone)), err
}

// printPruned says which plans are deleted, or what else became of them.
func (a *app) printPruned(output *format, plans []plan.Plan, total int, became string) error {
	if output.json() {
		return view.JSON(a.Stdout, api.Each(plans, func(p *plan.Plan) planEntry { return entryOfPlan(p, nil) }))
	}
	now := time.Now()
	for i := range plans {
		p := &plans[i]
		fmt.Fprintf(a.Stdout, "%s %s: %s, ended %s\n", p.Title(), cmp.Or(became, "is deleted"), p.State, view.Ago(p.Ended, now))
	}
	did := cmp.Or(became, "are deleted")
	if total == 1 {
		did = strings.Replace(did, "are", "is", 1)
	}
	return a.say("%s %s", view.Number(total, "plan"), did)
}
