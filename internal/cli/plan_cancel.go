package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/cells"
	"github.com/seed-1177d267/sluice/internal/cli/view"
	"github.com/seed-1177d267/sluice/internal/forsaken"
	"github.com/seed-1177d267/sluice/internal/halt"
	"github.com/seed-1177d267/sluice/internal/hint"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/hiding"
	"github.com/seed-1177d267/sluice/plan"
)

func planCancel(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cancel PLAN…",
		Short: "Cancel plans: stop what runs, start nothing more",
		Long: "Cancel plans: stop the running tasks, and start no more. Finished tasks do not " +
			"change. If no live node runs a plan, this command or the server ends it as soon " +
			"as it may take the tasks from their node: at once, or when the node's lease is " +
			"over.\n" +
			"\n" +
			"On a terminal the command asks before it leaves out clean-ups. " +
			"Clean-ups (when: any_failed, all_done) do not finish either. With " +
			"--running the command cancels the running tasks instead of the plan, except for " +
			"clean-ups and tasks of finally. That counts as their failure, so that clean-ups run. A foreach task runs " +
			"while one of its items does: " +
			"its waiting items are cancelled too. To run a clean-up of a cancelled plan, name it: " +
			"sluice plan retry PLAN TASK --run; with when: any_failed it runs if one of its " +
			"parents failed or was stopped.\n" +
			"\n" +
			"Tasks of finally run after the others all the same. Cancel the plan again to stop " +
			"them too.\n" +
			"\n" + planHelp,
		Example: "  sluice plan cancel --running nightly    stop what runs, and let clean-ups run\n" +
			"  sluice plan cancel nightly              stop all, and leave clean-ups out",
		ValidArgsFunction: a.completePlans(unended),
	}
	running := cmd.Flags().Bool("running", false, "cancel only the running tasks, so that clean-ups run")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.eachPlan(cmd.Context(), args, func(ctx context.Context, st store.Store, p plan.Plan) error {
			if p.State.Ended() {
				return fmt.Errorf("%s has ended (%s): there is nothing to cancel", p.Title(), p.State)
			}
			if *running {
				return a.cancelRunning(ctx, st, &p)
			}
			var unrun, active []plan.Task
			finally := p.InFinally()
			if p.State == plan.PlanRunning && p.Closing == plan.Open && !finally {
				var err error
				if unrun, active, err = halt.Left(ctx, st, p); err != nil {
					return err
				}
				if len(active) > 0 && p.OnFailure != plan.Stop {
					switch what, err := a.askOfCleanUps(&p, unrun); {
					case err != nil:
						return err
					case what == "running":
						return a.cancelRunning(ctx, st, &p)
					}
				}
			}
			p, left, err := a.cancelToItsEnd(ctx, st, p)
			if err != nil {
				return fmt.Errorf("cancel %s: %w", p.Title(), err)
			}
			word := "is cancelled"
			switch {
			case finally && p.State.Ended():
				word = fmt.Sprintf("is %s, with its tasks of finally stopped", p.State)
			case finally:
				word = "is stopping its tasks of finally: " + leftToCancel(&p.Counts)
			case forsaken.RunsFinally(&p) && left:
				word = "is cancelled, and its tasks of finally wait for a node; to stop them too: " + a.command("plan", "cancel", p.Title())
			case forsaken.RunsFinally(&p):
				word = "is cancelled, and runs its tasks of finally; to stop them too: " + a.command("plan", "cancel", p.Title())
			case !p.State.Ended() && p.Finally:
				word = fmt.Sprintf("is being cancelled: %s still to be stopped, and then its tasks of finally run", view.Number(p.Counts.Running+p.Counts.Claimed, "task"))
			case !p.State.Ended():
				word = "is being cancelled: " + leftToCancel(&p.Counts)
			}
			_, err = fmt.Fprintf(a.Stdout, "%s %s\n", cells.Clean(p.Title()), word)
			a.noteUnrun(&p, unrun, active)
			if left {
				if a.served() {
					a.note("no live node can end it; %s", startThere)
				} else {
					a.note("no live node can end it; to end it: %s", a.command(hint.Resume(&p).Do...))
				}
			}
			return err
		})
	}
	return cmd
}

// leftToCancel says what a plan that is being cancelled waits for.
func leftToCancel(c *plan.Counts) string {
	run, wait := c.Running+c.Claimed, c.Held+c.Queued
	switch {
	case run+wait == 0:
		return "all of its tasks have ended, and the plan is still to be ended"
	case run == 0:
		return view.Number(wait, "waiting task") + " still to be cancelled"
	case wait == 0:
		return view.Number(run, "task") + " still to be stopped"
	}
	return fmt.Sprintf("%s still to be stopped, and %s to be cancelled", view.Number(run, "task"), view.Number(wait, "waiting task"))
}

// cancelToItsEnd cancels a plan that has not ended, and ends it if no live node serves it. It returns the plan as it is then, and reports
// whether nobody ends it.
func (a *app) cancelToItsEnd(ctx context.Context, st store.Store, p plan.Plan) (now plan.Plan, left bool, err error) {
	if _, far := st.(store.Waiter); !far {
		if p, err = halt.Cancel(ctx, st, p); err != nil {
			return p, false, err
		}
		return a.endForsaken(ctx, st, p)
	}
	// Look comes before the cancellation, because the server ends the plan as a live node of it.
	// The server's knowledge of processes is not known here, so only leases count.
	within, others, err := forsaken.Look(ctx, st, &p, func(plan.Instance) bool { return false })
	if err != nil {
		return p, false, err
	}
	if p, err = halt.Cancel(ctx, st, p); err != nil || within == 0 || others {
		return p, others, err
	}
	return a.awaitEnd(ctx, st, p, within)
}

// endForsaken ends a plan that was cancelled and that no live node serves, and reports whether nobody ends it all the same.
func (a *app) endForsaken(ctx context.Context, st store.Store, p plan.Plan) (now plan.Plan, left bool, err error) {
	c := forsaken.Config{Store: hiding.Of(st), Version: a.version().Version, Waiting: func(within time.Duration) { a.noteSilent(&p, within) }}
	return c.End(ctx, p)
}

// awaitEnd waits for a server that ends a cancelled plan within so long, and reports whether it did not.
func (a *app) awaitEnd(ctx context.Context, st store.Reader, p plan.Plan, within time.Duration) (now plan.Plan, left bool, err error) {
	began, told, counts := time.Now(), within <= forsaken.Soon, p.Counts
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, serverPoll) {
		if p, err = st.Plan(ctx, p.ID); err != nil || p.State.Ended() || forsaken.RunsFinally(&p) {
			return p, err == nil && !p.State.Ended(), err // no live node runs its tasks of finally
		}
		if p.Counts != counts { // which takes long where there are many tasks
			began, counts = time.Now(), p.Counts
		}
		took := time.Since(began)
		if took > within+forsaken.Soon { // which the server may need to begin
			return p, true, nil
		}
		if !told && took > forsaken.Soon {
			told = true
			a.noteSilent(&p, within)
		}
		select {
		case <-ctx.Done():
			return p, false, ctx.Err()
		case <-time.After(pause):
		}
	}
}

func (a *app) noteSilent(p *plan.Plan, within time.Duration) {
	a.note("a silent node has running tasks of %s, and loses them within %v", p.Title(), within)
}

// eachPlan does something to each plan that is named, also when it could not be done to one of them. All are found first, so that a name
// does not come to mean an older run.
func (a *app) eachPlan(ctx context.Context, words []string, do func(context.Context, store.Store, plan.Plan) error) error {
	return a.withStore(ctx, func(st store.Store) error {
		var plans []plan.Plan
		for _, w := range words {
			p, err := findPlan(ctx, st, w)
			if err != nil {
				return err
			}
			plans = append(plans, p)
		}
		return errors.Join(api.Each(plans, func(p *plan.Plan) error { return do(ctx, st, *p) })...)
	})
}
