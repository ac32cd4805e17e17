package cli

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/roll"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/hiding"
	"github.com/seed-1177d267/sluice/plan"
)

func osteRoll(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "roll SOLUTION",
		Short: "Hand over finished activities now",
		Long: "Hand over the activities of a solution, a group of queues, that are kept no longer. Its " +
			"URIs get them: succeeded ones the success URI, and the others the dead letter URI. " +
			"Then they are deleted. Nodes do so within a minute; this command does it now, also " +
			"where nodes leave a receiver alone that failed. docs/http.md explains batches.\n" +
			"\n" +
			"Delivery is at least once. A node may be sending the same batch, which the receiver " +
			"then gets twice under one id.",
		Example: "  sluice oste roll republication\n  sluice oste roll republication --allow-net 10.1.0.0/16",
	}
	a.allowNetFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := a.needsStore(cmd, "hands over what the store has", ""); err != nil {
			return err
		}
		return a.withStore(cmd.Context(), func(st store.Store) error {
			s, ok := roll.StoreOf(hiding.Of(st))
			if !ok || a.Requests == nil {
				return errors.New("this store hands over nothing")
			}
			_, g, err := findGroup(cmd.Context(), s, args[0])
			if err != nil {
				return err
			}
			if g.SuccessURI == "" && g.DeadLetterURI == "" {
				return usagef("group %s hands over nothing; give it an address: %s", g.Name, a.command("group", "set", g.Name, "--"+successURI, "URI"))
			}
			handed, err := roll.New(s, a.Requests, slog.New(slog.DiscardHandler)).Group(cmd.Context(), g.Name)
			for _, kind := range rules.RollKinds {
				if rules.ReceiverOf([]plan.Group{g}, g.Name, kind) != "" {
					_, failed := fmt.Fprintf(a.Stdout, "%s: activities %d, batches %d\n", kind, handed[kind].Tasks, handed[kind].Batches)
					err = cmp.Or(err, failed)
				}
			}
			return err
		})
	}
	return cmd
}
