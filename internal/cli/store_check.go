package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/cli/view"
	"github.com/seed-1177d267/sluice/internal/invariants"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/hiding"
	"github.com/seed-1177d267/sluice/plan"
)

func storeCheck(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Find what is damaged in the store",
		Long: "Read the whole store, and recompute what it counts. The command prints each " +
			"difference with the task, plan or queue, and changes nothing. On SQLite it also " +
			"runs SQLite's own check of the file.\n" +
			"\n" +
			"While nodes run, a difference may only mean that the store changed meanwhile. The " +
			"command then looks again after the lease of the nodes, and prints what is there " +
			"both times. The counts of SQLite are read at one instant, and need no second look.\n" +
			"\n" +
			"A store of an older version is brought to this version first, as by every command.\n" +
			"\n" +
			"Exit codes: 0 nothing is damaged, 1 something is, 2 bad usage,\n" +
			"4 the store cannot be reached.",
		Example: "  sluice store check\n  sluice store check --store mongodb://db1/disbatch",
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := a.needsStore(cmd, "reads the bookkeeping of the store", ""); err != nil {
			return err
		}
		return a.withStore(cmd.Context(), func(st store.Store) error { return a.checkStore(cmd.Context(), hiding.Of(st)) })
	}
	return cmd
}

func (a *app) checkStore(ctx context.Context, st store.Store) error {
	nodes, err := st.Instances(ctx)
	if err != nil {
		return err
	}
	faults, err := invariants.Check(ctx, st, len(nodes) > 0)
	if err != nil {
		return fmt.Errorf("check the store: %w", err)
	}
	unsure := slices.DeleteFunc(slices.Clone(faults), func(f invariants.Fault) bool { return f.Sure })
	if len(unsure) > 0 && len(nodes) > 0 {
		lease := longestLease(nodes)
		a.note("%s; nodes run, so they may be none: the second look is in %s", view.Number(len(unsure), "difference"), lease)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lease):
		}
		again, err := invariants.Check(ctx, st, true)
		if err != nil {
			return fmt.Errorf("check the store: %w", err)
		}
		faults = slices.DeleteFunc(faults, func(f invariants.Fault) bool {
			return !f.Sure && !slices.ContainsFunc(again, func(now invariants.Fault) bool { return now.Text == f.Text })
		})
	}
	for _, f := range faults {
		fmt.Fprintln(a.Stdout, f.Text)
	}
	if len(faults) > 0 {
		return fmt.Errorf("the store is damaged: %s", view.Number(len(faults), "difference"))
	}
	fmt.Fprintln(a.Stdout, "nothing is damaged")
	return nil
}

// longestLease is the time after which each of the nodes has beaten or is taken for dead.
func longestLease(nodes []plan.Instance) time.Duration {
	longest := time.Duration(0)
	for i := range nodes {
		longest = max(longest, nodes[i].Lease)
	}
	return cmp.Or(longest, time.Minute)
}
