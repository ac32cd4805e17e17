package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/bulk"
	"github.com/seed-1177d267/sluice/internal/cells"
	"github.com/seed-1177d267/sluice/internal/report"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
)

func queueDelete(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a queue",
		Long: "Delete a queue. A queue with an unfinished task of a plan is not deleted, nor one " +
			"with finished tasks that are still to be handed over. Its other tasks stay, " +
			"and nobody claims them. A filter of tasks finds them by the id of the queue. Running " +
			"tasks continue.",
		Example: "  sluice queue delete imap",
		RunE: a.onStore(func(ctx context.Context, st store.Store, args []string) error {
			q, err := findQueue(ctx, st, args[0])
			if err != nil {
				return err
			}
			deleter, ok := st.(store.QueueDeleter)
			if !ok {
				return fmt.Errorf("queue %q: this store does not delete queues", q.Name)
			}
			wait, err := bulk.All(ctx, st, bulk.Order{What: rules.BulkSet, Check: true, Filter: rules.TaskFilter{Queue: q.ID}})
			if err != nil {
				return err
			}
			if err := deleter.DeleteQueue(ctx, q.ID); err != nil {
				return err
			}
			if wait.Matched > 0 {
				a.note("waiting tasks that it leaves behind, which nobody claims: %s; to cancel them: %s", report.Thousands(wait.Matched),
					a.command("task", "cancel", "--queue", q.ID.String()))
			}
			return a.say("queue %s is deleted", cells.Clean(q.Name))
		}),
	}
}
