package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/cli/view"
	"github.com/seed-1177d267/sluice/internal/explain"
	"github.com/seed-1177d267/sluice/internal/planfile"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/submit"
	"github.com/seed-1177d267/sluice/plan"
)

func planSubmit(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "submit FILE",
		Short: "Put a plan into the store, for nodes to run",
		Long: "Put a plan into the store, for nodes to run, and print its id. Its name and run " +
			"go to standard error. \"sluice worker\" starts a node, and \"sluice plan wait\" " +
			"waits for the end. FILE may be -, for standard input.\n" +
			"\n" +
			"With --server, a token needs the scopes read and submit. A token with only submit " +
			"uses the API: POST /api/v1/plans.",
		Example: "  p=$(sluice plan submit plan.yaml --param domain=example.com)\n  sluice plan wait $p",
	}
	output := outputFlag(cmd)
	params := cmd.Flags().StringArray("param", nil, "a value for a param of the plan, as `NAME=VALUE`; may be repeated")
	completeBy(cmd, "param", completeParam)
	var key string
	keyFlag(cmd, &key, "an idempotency `KEY`: submit the plan once for each key, however often this is repeated")
	failFast := cmd.Flags().Bool("fail-fast", false, failFastHelp)
	helpParams := helpParamsFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		values, err := pairs("--param", *params)
		if err != nil {
			return err
		}
		if *helpParams {
			return a.helpParams(args, values, output)
		}
		spec, err := planfile.LoadWith(args[0], a.noting(planfile.Options{Params: values, Check: a.checkSubmitter}, *failFast))
		if err != nil {
			return asUsage(err)
		}
		if *failFast {
			spec.OnFailure = plan.Stop
		}
		return a.submitSpec(ctx, spec, key, nil, output)
	}
	return cmd
}

// submitSpec puts a plan into the store, with a job pack beside it if there is one, prints its id, and says
// what it waits for. A key submits it once.
func (a *app) submitSpec(ctx context.Context, spec *plan.Spec, key string, pack *submit.Pack, output *format) error {
	return a.makingStore(ctx, func(st store.Store) error {
		once := func() (plan.Plan, bool, error) { return submit.Once(ctx, st, spec, key, false) }
		if pack != nil {
			once = func() (plan.Plan, bool, error) { return submit.WithPack(ctx, st, spec, pack, key) }
		}
		p, repeated, err := once()
		switch {
		case repeated && errors.Is(err, plan.ErrConflict):
			return err
		case err != nil:
			return a.stoppedSubmission(&p, err)
		case repeated:
			a.note("%s was submitted with this key before", p.Title())
		}
		a.noteQueues(ctx, st, spec)
		if p, err = st.Plan(ctx, p.ID); err != nil {
			return err
		}
		nodes, err := st.Instances(ctx)
		if err != nil {
			return err
		}
		if output.json() {
			err = view.JSON(a.Stdout, entryOfPlan(&p, nodes))
		} else {
			_, err = fmt.Fprintln(a.Stdout, p.ID)
			a.note("plan %s, %s; to wait for its end: %s", p.Title(), view.Number(len(spec.Tasks), "task"), a.command("plan", "wait", p.Title()))
		}
		if err != nil {
			return err
		}
		missing, needed := explain.Missing(nodes, p.ID, pluginsOf(spec)), []string{}
		for _, plugin := range pluginsOf(spec) {
			if why := a.notBuiltIn(plugin); why != "" && slices.Contains(missing, plugin) {
				a.note("no live node has the plugin %q, %s", plugin, why)
			} else {
				needed = append(needed, plugin)
			}
		}
		return a.noteUnserved(ctx, st, &p, needed)
	})
}
