package cli

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/cli/view"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

func groupList(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List groups of queues, each after its parent",
		Long: "List groups of queues, each after its parent. What is active and queued counts for the " +
			"group and for the groups in it.",
	}
	output := outputFlag(cmd)
	cmd.RunE = a.onStore(func(ctx context.Context, st store.Store, _ []string) error {
		entries, err := groupEntries(ctx, st)
		if err != nil {
			return err
		}
		if output.json() {
			return view.JSON(a.Stdout, entries)
		}
		slices.SortStableFunc(entries, func(a, b groupEntry) int {
			return cmp.Or(strings.Compare(cmp.Or(a.Parent, a.Name), cmp.Or(b.Parent, b.Name)), strings.Compare(a.Parent, b.Parent))
		})
		t := a.table("GROUP", "PARENT", "STATE", "WEIGHT", "RATE", "ACTIVE", "QUEUED", "QUEUES")
		for i := range entries {
			e := &entries[i]
			state := e.State
			if e.by != "" {
				state += " by " + e.by
			}
			t.Add(e.Name, e.Parent, state, strconv.Itoa(plan.WeightOf(e.Weight)), e.Rate.String(), strconv.Itoa(e.Active), strconv.Itoa(e.Queued), strings.Join(e.Queues, ","))
		}
		t.DropEmpty("PARENT", "RATE", "QUEUES")
		return t.Print(a.Stdout)
	})
	return cmd
}
