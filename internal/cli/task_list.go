package cli

import (
	"errors"
	"sort"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-1177d267/sluice/internal/hint"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/states"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

func taskList(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List tasks, newest first, or those of a plan in its order",
		Long: "List tasks, newest first. With --plan, list the tasks of that plan in its order, " +
			"with the items of each foreach task below it.",
		Args: noneBut("plan"),
		Example: "  sluice task list --plan nightly --state failed\n  sluice task list --state running --output json\n" +
			"  sluice task list --group acme --reason timeout --older-than 1d",
	}
	output := wideFlag(cmd)
	in := cmd.Flags().String("plan", "", "only tasks of this plan")
	filter := a.filterFlags(cmd, rules.ListTasks)
	cmd.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "status" { // as Disbatch's tools call it
			name = "state"
		}
		return pflag.NormalizedName(name)
	})
	limit := limitFlag(cmd, 100)
	completeBy(cmd, "plan", a.completeFlag)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx := cmd.Context()
		if err := filter.wrong(cmd); err != nil {
			return err
		}
		return a.withStore(ctx, func(st store.Store) error {
			q, keep, err := filter.query(ctx, st)
			if err != nil {
				return err
			}
			if q.Newest = *in == ""; !q.Newest {
				p, err := findPlan(ctx, st, *in)
				if err != nil {
					return err
				}
				q.Plan = p.ID
			}
			queues, err := queueNames(ctx, st)
			if err != nil {
				return err
			}
			tasks, more, err := someTasks(ctx, st, q, *limit, keep)
			if err != nil {
				return err
			}
			if *in != "" {
				itemsBelow(tasks)
			}
			nodes, err := st.Instances(ctx)
			if err != nil {
				return err
			}
			values, err := itemValues(ctx, st, tasks)
			if err != nil {
				return err
			}
			if !output.json() {
				if err := tellSkips(ctx, st, tasks); err != nil {
					return err
				}
			}
			if err := a.printTasks(output, tasks, queues, values, nodes); err != nil {
				return err
			}
			if !output.json() {
				a.noteFailures(tasks)
			}
			if *in == "" { // a task of a plan is never in such a queue
				if err := a.noteRefused(ctx, st); err != nil {
					return err
				}
			}
			return a.noteMore(cmd, more, "tasks")
		})
	}
	return cmd
}

// itemsBelow orders tasks of one plan as it has them, the items of a foreach task after that: their ids lie anywhere among the others.
func itemsBelow(tasks []plan.Task) {
	sort.SliceStable(tasks, func(x, y int) bool { return rules.PlaceOf(&tasks[x]).Compare(rules.PlaceOf(&tasks[y])) < 0 })
}

// statuses reads the words of --state; see states.Parse.
func statuses(words []string) (codes []plan.Status, keep func(*plan.Task) bool, err error) {
	codes, keep, err = states.Parse(words)
	if wrong := states.Error(""); errors.As(err, &wrong) {
		return nil, nil, usagef("%w%s", err, hint.Meant(string(wrong), states.Words()))
	}
	return codes, keep, err
}
