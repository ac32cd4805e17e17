package cli

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/cli/view"
	"github.com/seed-1177d267/sluice/internal/timetable"
	"github.com/seed-1177d267/sluice/plan"
)

// mostInstants is how many instants a preview shows at most.
const mostInstants = 1000

// An instantEntry is an instant of a schedule in JSON.
type instantEntry struct {
	At     time.Time        `json:"at"`
	Local  string           `json:"local"`
	Change timetable.Change `json:"change,omitempty"`
	Reason string           `json:"reason,omitempty"`
}

func schedulePreview(a *app) *cobra.Command {
	var flags timetableFlags
	var count int
	var after string
	cmd := &cobra.Command{
		Use:   "preview [CRON]",
		Short: "Show the next instants of a cron line or an interval",
		Long: "Show the next instants of a cron line or an interval, in its zone and in UTC. Each " +
			"instant that a clock change moves, doubles or drops has the reason. The command " +
			"connects to nothing.\n" +
			"\n" +
			"A line has 5 fields: minute, hour, day of month, month, day of week. A sixth field " +
			"in front is the second, and a seventh at the end is the year. A time is RFC 3339, or " +
			"local time in the zone.",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("the cron line is %d arguments; put it in quotes, as in '30 2 * * *'", len(args))
			}
			return nil
		},
		Example: "  sluice schedule preview '30 2 * * *' --zone Europe/Berlin\n" +
			"  sluice schedule preview @daily --except 2027-12-25 --after 2027-12-23\n" +
			"  sluice schedule preview --every 90m --from 2027-01-01T00:00:00Z",
	}
	f := cmd.Flags()
	flags.add(cmd)
	numberFlag(cmd, &count, "count", "n", 5, "how many instants, at most 1,000")
	f.StringVar(&after, "after", "", "show the instants after this `TIME` (default: now)")
	output := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if count < 1 || count > mostInstants {
			return usagef("--count %d: it is 1 to %d", count, mostInstants)
		}
		cron := ""
		if len(args) == 1 {
			if cron = args[0]; cron == "" {
				return usagef("the cron line is empty; if it comes from a variable, that is not set")
			}
		}
		var t plan.Timetable
		if err := flags.apply(cmd, cron, &t); err != nil {
			return err
		}
		switch {
		case t.Cron == "" && t.Every == 0:
			return usagef("give either a cron line, or an interval: --every DURATION --from TIME")
		case t.Every != 0 && flags.from == "":
			return usagef("--every is counted from an instant on; add --from TIME")
		}
		now := time.Now()
		if cmd.Flags().Changed("after") {
			var err error
			if now, err = instantIn("after", after, t.Zone); err != nil {
				return err
			}
		}
		table, err := timetable.New(timetable.SettingsOf(t))
		if err == nil {
			err = table.Fires(now)
		}
		if err != nil {
			return withNearest(err)
		}
		entries, left := []instantEntry{}, count
		out := view.Table{Head: []string{"LOCAL", "UTC", "CHANGE", "REASON"}}
		for o := range table.After(now) {
			entries = append(entries, instantEntry{o.At.UTC(), o.At.Format(time.RFC3339Nano), o.Change, o.Reason})
			out.Add(o.At.Format("Mon 2006-01-02 15:04:05 MST"), o.At.UTC().Format(time.RFC3339), string(o.Change), o.Reason)
			if o.Change != timetable.Dropped {
				left--
			}
			if left == 0 {
				break
			}
		}
		if output.json() {
			return view.JSON(a.Stdout, entries)
		}
		out.DropEmpty("CHANGE", "REASON")
		return out.Print(a.Stdout)
	}
	return cmd
}
