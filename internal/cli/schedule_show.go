package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/api"
	"github.com/seed-1177d267/sluice/internal/cells"
	"github.com/seed-1177d267/sluice/internal/cli/view"
	"github.com/seed-1177d267/sluice/internal/client"
	"github.com/seed-1177d267/sluice/internal/schedule"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/timetable"
	"github.com/seed-1177d267/sluice/plan"
)

// inZone writes an instant in the zone of a schedule.
func inZone(s *plan.Schedule, at time.Time) string {
	zone, err := timetable.LoadZone(s.Zone)
	if err != nil {
		zone = time.UTC
	}
	return at.In(zone).Format("2006-01-02 15:04:05 MST")
}

// whenNext says when a schedule fires next, or why it does not.
func whenNext(s *plan.Schedule) string {
	switch {
	case s.Paused != nil && s.Paused.Why != "":
		return "is paused: " + cells.Clean(s.Paused.Why)
	case s.Paused != nil:
		return "is paused"
	case s.Next.IsZero():
		return "does not fire any more"
	}
	return "fires next at " + inZone(s, s.Next)
}

// timetableText is the timetable of a schedule in few words.
func timetableText(s *plan.Schedule) string {
	text := s.Cron
	if text == "" {
		text = "every " + spanText(time.Duration(s.Every))
	}
	if s.Zone != "" && s.Zone != "UTC" {
		text += " " + s.Zone
	}
	return text
}

// targetText says what a schedule starts.
func targetText(s *plan.Schedule) string {
	if s.Task != nil {
		return "task in " + cells.Clean(s.Task.Queue)
	}
	return "plan " + cells.Clean(cmp.Or(s.Plan.Source, "of its own"))
}

func scheduleState(s *plan.Schedule) string {
	switch {
	case s.Paused != nil:
		return "paused"
	case s.Next.IsZero():
		return "over"
	}
	return "active"
}

// strip has a letter for each of the last occurrences, the newest at the end.
func strip(s *plan.Schedule) string {
	var b strings.Builder
	for _, o := range s.Last[max(0, len(s.Last)-10):] {
		letter := map[plan.OccurrenceState]byte{plan.OccurrenceSucceeded: '.', plan.OccurrenceSkipped: '-', plan.OccurrenceCancelled: 'c', plan.OccurrenceGone: '?'}[o.State]
		b.WriteByte(cmp.Or(letter, 'F'))
	}
	return b.String()
}

func scheduleList(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List schedules by name",
		Long: "List schedules by name. LAST has a letter for each of the last ten occurrences, the " +
			"newest at the end: . succeeded, F failed, - skipped, c cancelled, ? deleted before " +
			"its end was seen.",
	}
	output := outputFlag(cmd)
	cmd.RunE = a.onSchedule(func(ctx context.Context, st store.Store, c schedule.Service, _ string) error {
		all, err := store.AllSchedules(ctx, c.List)
		if err != nil {
			return err
		}
		if output.json() {
			return view.JSON(a.Stdout, append([]plan.Schedule{}, all...))
		}
		t := a.table("SCHEDULE", "STATE", "NEXT", "RUNNING", "LAST", "TIMETABLE", "STARTS")
		for i := range all {
			s := &all[i]
			next := ""
			if !s.Next.IsZero() {
				next = inZone(s, s.Next)
			}
			t.Add(s.Name, scheduleState(s), next, strconv.Itoa(len(s.Open)), strip(s), timetableText(s), targetText(s))
		}
		if err := t.Print(a.Stdout); err != nil || len(all) == 0 {
			return err
		}
		return a.noteNoFirer(ctx, st)
	})
	return cmd
}

func scheduleShow(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show a schedule, its next instant and its last occurrences",
	}
	output := outputFlag(cmd)
	cmd.RunE = a.onSchedule(func(ctx context.Context, st store.Store, c schedule.Service, name string) error {
		s, err := c.Show(ctx, name)
		if err != nil {
			return err
		}
		if output.json() {
			return view.JSON(a.Stdout, s)
		}
		fmt.Fprintf(a.Stdout, "%s %s\n", s.Name, whenNext(&s))
		fmt.Fprintf(a.Stdout, "%s starts a %s; overlap %s, missed %s\n", timetableText(&s), targetText(&s), s.Overlap, s.Missed)
		fmt.Fprintf(a.Stdout, "%d started: %d succeeded, %d failed; %d skipped\n", s.Tally.Started, s.Tally.Succeeded, s.Tally.Failed, s.Tally.Skipped)
		for _, span := range s.Backfills {
			fmt.Fprintf(a.Stdout, "backfill from %s to %s\n", inZone(&s, span.From), inZone(&s, span.To))
		}
		t := a.table("INSTANT", "STATE", "BY", "STARTED", "ENDED", "ID", "REASON")
		at := func(v time.Time) string {
			if v.IsZero() {
				return ""
			}
			return inZone(&s, v)
		}
		all := slices.Concat(s.Last, s.Open)
		slices.SortStableFunc(all, func(a, b plan.Occurrence) int { return a.At.Compare(b.At) })
		for _, o := range all {
			id := ""
			switch {
			case !o.Task.IsZero():
				id = o.Task.String()
			case !o.Plan.IsZero():
				id = o.Plan.String()
			}
			t.Add(inZone(&s, o.At), string(o.State), string(o.Kind), at(o.Begun), at(o.Ended), id, cells.Clean(o.Reason))
		}
		t.DropEmpty("BY", "STARTED", "ENDED", "ID", "REASON")
		if len(s.Last)+len(s.Open) > 0 {
			fmt.Fprintln(a.Stdout)
			if err := t.Print(a.Stdout); err != nil {
				return err
			}
		}
		return a.noteNoFirer(ctx, st)
	})
	return cmd
}

// completeSchedules offers the names of schedules.
func (a *app) completeSchedules(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.lookUp(cmd, func(ctx context.Context, st store.Store) (words []string, err error) {
		var all []plan.Schedule
		if c, far := st.(*client.Client); far {
			all, err = store.AllSchedules(ctx, c.ScheduleService().List)
		} else if s, ok := schedule.StoreOf(st); ok {
			all, err = store.AllSchedules(ctx, s.Schedules)
		}
		return api.Each(all, func(s *plan.Schedule) string { return s.Name + "\t" + timetableText(s) }), err
	})
}
