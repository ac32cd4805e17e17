package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/balance"
	"github.com/seed-1177d267/sluice/internal/store"
)

func balanceSet(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "set [FILE]",
		Short: "Change the balance document",
		Long: "Set queues, max_tasks and disabled of the balance document from a file, or " +
			"disable and enable the balancing. The balancer follows within seconds. An invalid " +
			"file changes nothing. --disable holds until its time or --enable, unless the file " +
			"has a time of its own.",
		Example: "  sluice balance set balance.json\n  sluice balance set --disable 1h\n  sluice balance set --enable",
	}
	var pause time.Duration
	spanFlag(cmd, &pause, "disable", 0, "leave the queues as they are for so long")
	enable := cmd.Flags().Bool("enable", false, "balance again")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		disable := cmd.Flags().Changed("disable")
		switch {
		case disable && *enable:
			return usagef("--disable and --enable: give one of them")
		case !disable && !*enable && len(args) == 0:
			return usagef("nothing to change: give a file, --disable or --enable")
		}
		settings := map[string]json.RawMessage{}
		var b *balance.Document
		if len(args) > 0 {
			var text json.RawMessage
			var err error
			if text, b, err = a.balanceFile(args[0]); err != nil {
				return err
			}
			if err := json.Unmarshal(text, &settings); err != nil {
				return err
			}
			for key := range settings { // the others are who balances'
				if !slices.Contains([]string{"queues", "max_tasks", "disabled"}, key) {
					delete(settings, key)
				}
			}
		}
		ctx, with := cmd.Context(), a.withStore
		if b != nil {
			with = a.makingStore
		}
		return a.withBalance(ctx, with, func(st store.Store, to store.Balance) error {
			there, err := to.Balance(ctx)
			if err != nil { // of several it would change any one
				return err
			}
			now, err := st.Now(ctx)
			if err != nil {
				return err
			}
			switch {
			case *enable:
				settings["disabled"] = json.RawMessage("null")
			case !disable:
				a.keepDisabled(now, there, b, settings)
			case disable:
				settings["disabled"] = json.RawMessage(strconv.FormatInt(now.Add(pause).Unix(), 10))
			}
			if b != nil {
				queues, err := st.Queues(ctx)
				if err != nil {
					return err
				}
				if _, missing := b.Shares(0, queues); len(missing) > 0 {
					fmt.Fprintf(a.Stderr, "note: %s; it counts once it is made\n", balance.JoinPlaces(missing))
				}
			} else if there == nil {
				return errors.New("there is no balance document; give a file")
			}
			text, err := json.Marshal(settings)
			if err != nil {
				return err
			}
			return to.SetBalance(ctx, text)
		})
	}
	return cmd
}

// keepDisabled keeps a pause that is in force if a file says none. A person who changes the
// document in that time does not mean to end the pause.
func (a *app) keepDisabled(now time.Time, document json.RawMessage, file *balance.Document, settings map[string]json.RawMessage) {
	if until := disabledUntil(document); !file.Disabled.After(now) && until.After(now) {
		delete(settings, "disabled")
		a.note("it stays disabled until %s; %s", until.Local().Format(time.DateTime), a.toEnable())
	}
}
