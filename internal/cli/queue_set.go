package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/cells"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

func queueSet(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "set NAME",
		Short: "Change a queue's limits, order, group, nodes and other settings",
		Long: "Change a queue's settings: limits, order, nodes, the fate of lost tasks, secret " +
			"params, how long finished tasks of no plan stay, its group, and what tasks have by default. Nodes follow with their next " +
			"claim. Running tasks continue.",
		Example: "  sluice queue set imap --threads 8\n  sluice queue set imap --threads 0     # pause it\n" +
			"  sluice queue set imap --pin mig01,mig02 --node-threads 2\n  sluice queue set imap --pin= --node-threads unlimited     # take that off\n" +
			"  sluice queue set imap --on-lost fail\n  sluice queue set imap --group acme --weight 3\n  sluice queue set imap --secret password,'*_key'\n  sluice queue set imap --keep succeeded=1d,failed=30d\n" +
			"  sluice queue set imap --defaults '{\"timeout\": \"30m\"}'",
	}
	var flags queueFlags
	flags.add(a, cmd, 0)
	mayRemove(cmd, "pin", "ignore", "secret")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		if err := flags.needed(cmd); err != nil {
			return err
		}
		return a.withStore(ctx, func(st store.Store) error {
			q, err := changeQueue(ctx, st, args[0], func(q *plan.Queue) error { return flags.apply(cmd, q) })
			if err != nil {
				return err
			}
			e := entryOfQueue(&q)
			said := "threads " + e.threads()
			if !q.Unlimited && q.Threads <= 0 {
				said += ", so it is paused"
			}
			said += ", sort " + string(e.Sort)
			for _, s := range e.said() {
				if s[1] != "" {
					said += ", " + s[0] + " " + s[1]
				}
			}
			a.noteBoth(&q)
			if err := a.noteNobody(ctx, st, flags.named()); err != nil {
				return err
			}
			if cmd.Flags().Changed("threads") {
				if err := a.noteBalanced(ctx, st, q.Name); err != nil {
					return err
				}
			}
			return a.say("queue %s has %s", cells.Clean(e.Name), cells.Clean(said))
		})
	}
	return cmd
}

// changeQueue sets some settings of the queue with that name or id. It keeps the others, even if
// somebody else sets them meanwhile.
func changeQueue(ctx context.Context, st store.Store, word string, set func(*plan.Queue) error) (plan.Queue, error) {
	const tries = 10
	for try := 1; ; try++ {
		was, err := findQueue(ctx, st, word)
		if err != nil {
			return was, err
		}
		q := was
		if err := set(&q); err != nil {
			return q, err
		}
		if err := st.ChangeQueue(ctx, was, q); !errors.Is(err, plan.ErrConflict) || try == tries {
			return q, err
		}
	}
}
