package cli

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/cli/view"
	"github.com/seed-1177d267/sluice/internal/timetable"
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
	var s timetable.Settings
	var count int
	var after, from, until string
	skipped := choice{timetable.Run, []string{timetable.Run, timetable.Skip}}
	repeated := choice{timetable.First, []string{timetable.First, timetable.Second, timetable.Both}}
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
	f.StringVar(&s.Zone, "zone", "UTC", "a `ZONE` of the tz database")
	completeWords(cmd, "zone", timetable.Zones())
	f.IntVarP(&count, "count", "n", 5, "how many instants, at most 1,000")
	f.StringVar(&after, "after", "", "show the instants after this `TIME` (default: now)")
	f.Var(&skipped, "skipped", "run a local time that the clock skips at the first instant after the gap, or skip it")
	f.Var(&repeated, "repeated", "run a local time that the clock shows twice the first time, the second time or both times")
	f.StringArrayVar(&s.Except, "except", nil, "leave out a `DAY` as 2027-12-25, or what a cron line matches; may be repeated")
	spanFlag(cmd, &s.Every, "every", 0, "an interval of real time in place of a cron line, counted from --from on")
	f.StringVar(&from, "from", "", "the `TIME` at which the schedule begins")
	f.StringVar(&until, "until", "", "the `TIME` at which the schedule ends")
	output := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if count < 1 || count > mostInstants {
			return usagef("--count %d: it is 1 to %d", count, mostInstants)
		}
		if len(args) == 1 {
			if s.Cron = args[0]; s.Cron == "" {
				return usagef("the cron line is empty; if it comes from a variable, that is not set")
			}
		}
		if span, ok := strings.CutPrefix(s.Cron, "@every "); ok {
			return usagef("@every is no cron line; write --every %s --from TIME", span)
		}
		switch {
		case (s.Cron == "") == (s.Every == 0):
			return usagef("give either a cron line, or an interval: --every DURATION --from TIME")
		case s.Every != 0 && from == "":
			return usagef("--every is counted from an instant on; add --from TIME")
		}
		s.Skipped, s.Repeated = skipped.value, repeated.value
		zone, err := timetable.LoadZone(s.Zone)
		if err != nil {
			zone = time.UTC // New refuses the zone, and has all other refusals with it
		}
		now := time.Now()
		for _, t := range []struct {
			flag, text string
			to         *time.Time
		}{{"after", after, &now}, {"from", from, &s.From}, {"until", until, &s.Until}} {
			if cmd.Flags().Changed(t.flag) {
				if *t.to, err = timetable.Instant(t.text, zone); err != nil {
					return usagef("--%s %s: %w", t.flag, t.text, err)
				}
			}
		}
		table, err := timetable.New(s)
		if err == nil {
			err = table.Fires(now)
		}
		if err != nil {
			return withNearest(err)
		}
		entries, left := []instantEntry{}, count
		t := view.Table{Head: []string{"LOCAL", "UTC", "CHANGE", "REASON"}}
		for o := range table.After(now) {
			entries = append(entries, instantEntry{o.At.UTC(), o.At.Format(time.RFC3339Nano), o.Change, o.Reason})
			t.Add(o.At.Format("Mon 2006-01-02 15:04:05 MST"), o.At.UTC().Format(time.RFC3339), string(o.Change), o.Reason)
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
		t.DropEmpty("CHANGE", "REASON")
		return t.Print(a.Stdout)
	}
	return cmd
}
