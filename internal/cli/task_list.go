package cli

import (
	"errors"
	"sort"
	"strings"

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
		Args:    noneBut("plan"),
		Example: "  sluice task list --plan nightly --state failed\n  sluice task list --state running --output json",
	}
	output := wideFlag(cmd)
	in := cmd.Flags().String("plan", "", "only tasks of this plan")
	queue := cmd.Flags().String("queue", "", "only tasks of this queue")
	subject := cmd.Flags().String("subject", "", "only tasks with this subject: unfinished ones are found at once")
	state := cmd.Flags().StringSlice("state", nil, "only tasks in one of these states: "+strings.Join(states.Words(), ", ")+",\nor with that status, a number")
	cmd.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "status" { // as Disbatch's tools call it
			name = "state"
		}
		return pflag.NormalizedName(name)
	})
	limit := limitFlag(cmd, 100)
	completeBy(cmd, "plan", a.completeFlag)
	completeBy(cmd, "queue", a.completeQueueFlag)
	completeWords(cmd, "state", states.Words())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx := cmd.Context()
		q := store.TaskQuery{Newest: true, Subject: *subject}
		var keep func(*plan.Task) bool
		var err error
		if len(*state) > 0 {
			if q.Statuses, keep, err = statuses(*state); err != nil {
				return err
			}
		}
		return a.withStore(ctx, func(st store.Store) error {
			if *in != "" {
				p, err := findPlan(ctx, st, *in)
				if err != nil {
					return err
				}
				q.Plan, q.Newest = p.ID, false
			}
			queues, err := queueNames(ctx, st)
			if err != nil {
				return err
			}
			if *queue != "" {
				found, err := findQueue(ctx, st, *queue)
				if err != nil {
					return err
				}
				q.Queue = found.ID
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
