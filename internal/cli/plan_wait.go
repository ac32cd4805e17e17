package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/cli/view"
	"github.com/seed-1177d267/sluice/internal/explain"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

func planWait(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "wait PLAN",
		Short: "Wait for the end of a plan",
		Long: "Wait for the end of a plan, with live progress on a terminal, and tell how it " +
			"ended.\n" +
			"\n" +
			"Exit codes: 0 succeeded, 1 failed, 2 bad usage,\n" +
			"3 not finished within --timeout, 4 the store cannot be reached, 5 cancelled, 130 " +
			"interrupted.\n" +
			"\n" +
			"With --server, the command waits up to a minute for a server that does not " +
			"answer, for example during a restart.\n" +
			"\n" + planHelp,
	}
	output := outputFlag(cmd)
	var timeout time.Duration
	spanFlag(cmd, &timeout, "timeout", 0, "wait no longer")
	junit := cmd.Flags().String("junit", "", "write a report to this `FILE`, as JUnit XML")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := a.canReport(*junit); err != nil {
			return err
		}
		stop, release := a.stoppable(cmd.Context(), true)
		defer release()
		ctx := stop.ctx
		if timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeoutCause(ctx, timeout, errNotFinished)
			defer cancel()
		}
		err := a.withPlan(ctx, args[0], func(st store.Store, p plan.Plan) error {
			if err := a.noteUnserved(ctx, st, &p, nil); err != nil {
				return err
			}
			after := context.WithoutCancel(ctx)
			retried, waited := a.await(ctx, st, p, output)
			if waited == nil { // how it ended is what was waited for
				after = a.patient(after, nil)
			}
			p, err := planAfter(after, st, p)
			if err != nil {
				return err
			}
			cause := context.Cause(ctx)
			switch {
			case p.State.Ended():
			case errors.Is(cause, errInterrupted):
				if nodes, err := st.Instances(after); err == nil && explain.Stalled(nodes, &p) {
					return fmt.Errorf("%w: %s stays as it is until a node runs it", errInterrupted, p.Title())
				}
				return fmt.Errorf("%w: %s goes on without this command", errInterrupted, p.Title())
			case cause == nil && waited != nil:
				return waited
			}
			if !p.State.Ended() {
				return a.printVerdict(after, st, p, output, *junit)
			}
			return a.printEnd(after, st, p, retried, output, *junit)
		})
		if errors.Is(err, context.DeadlineExceeded) && errors.Is(context.Cause(ctx), errNotFinished) { // before the plan was read
			return fmt.Errorf("%w: the store did not answer within %v", errNotFinished, timeout)
		}
		return err
	}
	return cmd
}

// await returns when the plan has ended, or ctx has, with its error, and which tasks succeeded after their first attempt. A
// restart of a server does not end it.
func (a *app) await(ctx context.Context, st store.Store, p plan.Plan, output *format) ([]plan.TaskID, error) {
	var w *watcher
	ctx = a.patient(ctx, func() {
		if w != nil {
			w.view.Close()
		}
	})
	p, err := st.Plan(ctx, p.ID) // with its counts
	if err != nil {
		return nil, err
	}
	nodes, err := st.Instances(ctx)
	if err != nil {
		return nil, err
	}
	_, awaits, err := awaiting(ctx, st, &p)
	if err != nil {
		return nil, err
	}
	w = &watcher{
		st: st, p: p, model: view.NewModel(p.Title(), rules.Began(&p)), view: &view.Quiet{Notes: a.Stderr}, goOn: a.goOn, typed: a.command, mark: a.ellipsis(),
		stalled: explain.Stalled(nodes, &p) && !awaits, awaited: awaits, looked: time.Now(), // of that the person was told
	}
	if a.redraws() && !output.json() && !p.State.Ended() {
		w.view, w.live, w.most = view.NewLive(a.Stdout, a.paint(a.Stdout), false), true, view.KeepEnds
	}
	w.counts = !w.live
	if err := w.follow(ctx); err != nil {
		return nil, err
	}
	if err := w.watch(ctx, nil); err != nil {
		return nil, err
	}
	return w.flaky(ctx)
}
