package cli

import (
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/timetable"
	"github.com/seed-1177d267/sluice/plan"
)

// timetableFlags are the flags of a timetable but for its cron line.
type timetableFlags struct {
	zone, from, until string
	skipped, repeated choice
	except            []string
	every, jitter     time.Duration
}

// timetableNames are the names of these flags.
var timetableNames = []string{"zone", "skipped", "repeated", "except", "every", "from", "until"}

func (f *timetableFlags) add(cmd *cobra.Command) {
	f.skipped = choice{timetable.Run, []string{timetable.Run, timetable.Skip}}
	f.repeated = choice{timetable.First, []string{timetable.First, timetable.Second, timetable.Both}}
	flags := cmd.Flags()
	flags.StringVar(&f.zone, "zone", "UTC", "a `ZONE` of the tz database")
	completeWords(cmd, "zone", timetable.Zones())
	flags.Var(&f.skipped, "skipped", "run a local time that the clock skips at the first instant after the gap, or skip it")
	flags.Var(&f.repeated, "repeated", "run a local time that the clock shows twice the first time, the second time or both times")
	flags.StringArrayVar(&f.except, "except", nil, "leave out a `DAY` as 2027-12-25, or what a cron line matches; may be repeated")
	spanFlag(cmd, &f.every, "every", 0, "an interval of real time in place of a cron line, counted from --from on")
	flags.StringVar(&f.from, "from", "", "the `TIME` at which the schedule begins")
	flags.StringVar(&f.until, "until", "", "the `TIME` at which the schedule ends")
}

// apply changes of a timetable what the flags say that were given. The cron line is of a flag or an
// argument; "" says nothing.
func (f *timetableFlags) apply(cmd *cobra.Command, cron string, t *plan.Timetable) error {
	given := cmd.Flags().Changed
	if span, ok := strings.CutPrefix(cron, "@every "); ok {
		return usagef("@every is no cron line; write --every %s", span)
	}
	if cron != "" && given("every") {
		return usagef("give either a cron line, or an interval: --every DURATION")
	}
	if given("every") && f.every == 0 {
		return usagef("--every 0: an interval is at least a second")
	}
	if cron != "" {
		t.Cron, t.Every = cron, 0
	}
	if given("every") {
		t.Every, t.Cron = plan.Duration(f.every), ""
	}
	if given("zone") {
		t.Zone = f.zone
	}
	if given("skipped") {
		t.Skipped = f.skipped.value
	}
	if given("repeated") {
		t.Repeated = f.repeated.value
	}
	if given("except") {
		if t.Except = f.except; len(f.except) == 1 && f.except[0] == "" {
			t.Except = nil
		}
	}
	for _, at := range []struct {
		flag, text string
		to         *time.Time
	}{{"from", f.from, &t.From}, {"until", f.until, &t.Until}} {
		if given(at.flag) {
			if *at.to = (time.Time{}); at.text == "" {
				continue // it is removed
			}
			var err error
			if *at.to, err = instantIn(at.flag, at.text, t.Zone); err != nil {
				return err
			}
		}
	}
	return nil
}

// instantIn reads the time of a flag, in a zone. A zone that is not known counts as UTC: the
// timetable refuses the zone with its other mistakes.
func instantIn(flag, text, zone string) (time.Time, error) {
	in, err := timetable.LoadZone(zone)
	if err != nil {
		in = time.UTC
	}
	at, err := timetable.Instant(text, in)
	if err == nil && at.IsZero() {
		err = errors.New("that is too long ago")
	}
	if err != nil {
		return at, usagef("--%s %s: %w", flag, text, err)
	}
	return at, nil
}
