package cli

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/secret"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/submit"
	"github.com/seed-1177d267/sluice/plan"
)

func planCreate(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Begin a plan, to add tasks to it one by one",
		Long: "Begin a plan, to add tasks to it one by one, and print its id. No task runs " +
			"before \"sluice plan ready\". A plan that nobody touches for an hour before that " +
			"is abandoned.",
		Example: "  p=$(sluice plan create nightly)\n" +
			"  sluice plan add $p list --run 'ls > files'\n" +
			"  sluice plan add $p count --needs list -- wc -l files\n" +
			"  sluice plan ready $p",
	}
	params := cmd.Flags().StringArray("param", nil, "a param of the plan, as `NAME=VALUE`; repeat it for more")
	secrets := cmd.Flags().StringSlice("secret", nil, "`NAMES` of params, and of fields in outputs, that are never shown; a * stands for any "+
		"letters, as in *_key")
	stop := cmd.Flags().Bool("fail-fast", false, failFastHelp)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		values, err := pairs("--param", *params)
		if err != nil {
			return err
		}
		spec := plan.New(args[0])
		spec.Params = map[string]json.RawMessage{}
		for name, value := range values {
			spec.Params[name], _ = json.Marshal(value) // a text
		}
		if spec.Secrets, err = secret.CheckNames(*secrets); err != nil {
			return usagef("--secret: %w", err)
		}
		if *stop {
			spec.OnFailure = plan.Stop
		}
		if err := submit.CheckBegin(spec); err != nil {
			return err
		}
		return a.makingStore(ctx, func(st store.Store) error {
			p, err := submit.Begin(ctx, st, spec)
			if err != nil {
				return err
			}
			return a.say("%v", p.ID)
		})
	}
	return cmd
}
