package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/approve"
	"github.com/seed-1177d267/sluice/internal/cells"
	"github.com/seed-1177d267/sluice/internal/client"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

func taskApprove(a *app) *cobra.Command {
	return a.answering(true, &cobra.Command{
		Use:   "approve {PLAN TASK | ID}",
		Short: "Approve what a task asks",
		Long: "Approve what a task with approve asks: it succeeds, and what waits for it starts. Its " +
			"output says who approved, and when.\n\n" + taskHelp,
		Example: "  sluice task approve release approve --note 'checked with ops'",
	})
}

func taskReject(a *app) *cobra.Command {
	return a.answering(false, &cobra.Command{
		Use:   "reject {PLAN TASK | ID}",
		Short: "Reject what a task asks",
		Long: "Reject what a task with approve asks: it fails, and what waits for it decides by its " +
			"when. A retry of the task asks again.\n\n" + taskHelp,
		Example: "  sluice task reject release approve --note 'not before Monday'",
	})
}

// answering makes a command that answers the question of a task.
func (a *app) answering(yes bool, cmd *cobra.Command) *cobra.Command {
	note := cmd.Flags().String("note", "", "a text for those who read the answer")
	cmd.RunE = a.onTask(func(ctx context.Context, st store.Store, t plan.Task) error {
		return a.answer(ctx, st, &t, yes, *note)
	})
	return cmd
}

func (a *app) answer(ctx context.Context, st store.Store, t *plan.Task, yes bool, note string) error {
	answer := rules.Answer{Approve: yes, Note: note, Asked: t.Started}
	if err := rules.CheckAnswer(t, &answer); err != nil {
		return err
	}
	var err error
	if c, far := st.(*client.Client); far { // the server knows who asks
		err = c.AnswerTask(ctx, t.ID, answer)
	} else {
		answer.By = a.Getenv("USER")
		err = approve.Answer(ctx, st, t, answer)
	}
	if err != nil {
		return err
	}
	word := "is rejected"
	if yes {
		word = "is approved"
	}
	return a.say("%s %s", cells.Clean(t.Key()), word)
}
