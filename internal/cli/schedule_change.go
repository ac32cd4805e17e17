package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/cli/view"
	"github.com/seed-1177d267/sluice/internal/schedule"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

func schedulePause(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pause NAME",
		Short: "Stop a schedule from firing",
		Long: "Stop a schedule from firing, until \"sluice schedule resume\". An occurrence that has " +
			"started continues. Instants that pass meanwhile are not made up for; \"sluice " +
			"schedule backfill\" makes them.",
		Example: "  sluice schedule pause nightly --why 'the archive is full'",
	}
	why := cmd.Flags().String("why", "", "the reason, for people")
	cmd.RunE = a.onSchedule(func(ctx context.Context, _ store.Store, c schedule.Service, name string) error {
		return a.tellNext(c.Pause(ctx, name, 0, *why))
	})
	return cmd
}

func scheduleResume(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "resume NAME",
		Short: "Let a paused schedule fire again",
		RunE: a.onSchedule(func(ctx context.Context, _ store.Store, c schedule.Service, name string) error {
			return a.tellNext(c.Resume(ctx, name, 0))
		}),
	}
}

func scheduleRun(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "run NAME",
		Short: "Start one occurrence of a schedule now",
		Long: "Start one occurrence of a schedule now, also of a paused one. Its timetable goes on " +
			"as before. While another occurrence has not ended, the schedule's overlap decides. A " +
			"node starts it within a second.",
		RunE: a.onSchedule(func(ctx context.Context, st store.Store, c schedule.Service, name string) error {
			o, err := c.Run(ctx, name)
			if err != nil {
				return err
			}
			said := "starts one now"
			if o.State == plan.OccurrenceWaiting {
				said = "starts one once the one before has ended"
			}
			if _, err := fmt.Fprintf(a.Stdout, "schedule %s %s\n", name, said); err != nil {
				return err
			}
			return a.noteNoFirer(ctx, st)
		}),
	}
}

func scheduleBackfill(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "backfill NAME --from TIME --to TIME",
		Short: "Make the past instants of a schedule",
		Long: "Make the instants of a schedule from --from on and up to --to that have no occurrence, " +
			"one after the other; all at once if its overlap is allow. The command first shows how " +
			"many instants that are. If the schedule starts plans, the number is a limit: instants " +
			"that have a plan count too. A time is RFC 3339, or local time in the schedule's zone.",
		Example: "  sluice schedule backfill nightly --from 2027-03-01 --to 2027-03-08 --dry-run",
	}
	from := cmd.Flags().String("from", "", "the first `TIME`")
	to := cmd.Flags().String("to", "", "the last `TIME`")
	dry := cmd.Flags().Bool("dry-run", false, "only show how many instants that are")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *from == "" || *to == "" {
			return usagef("give both --from TIME and --to TIME")
		}
		return a.withSchedules(cmd.Context(), a.withStore, func(st store.Store, c schedule.Service) error {
			s, err := c.Show(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			var span plan.Span
			if span.From, err = instantIn("from", *from, s.Zone); err != nil {
				return err
			}
			if span.To, err = instantIn("to", *to, s.Zone); err != nil {
				return err
			}
			n, err := c.Backfill(cmd.Context(), args[0], span, *dry)
			if err != nil {
				return scheduleError(err)
			}
			said, most := "makes", ""
			if *dry {
				said = "would make"
			}
			if s.Plan != nil { // those that have a plan are counted too
				most = "up to "
			}
			if _, err := fmt.Fprintf(a.Stdout, "schedule %s %s %s%s between %s and %s\n", s.Name, said, most, view.Number(n, "instant"), span.From.UTC().Format(time.RFC3339), span.To.UTC().Format(time.RFC3339)); err != nil {
				return err
			}
			if s.Paused != nil && !*dry {
				a.note("the schedule is paused: the backfill begins once it is resumed: %s", a.command("schedule", "resume", s.Name))
			}
			return a.noteNoFirer(cmd.Context(), st)
		})
	}
	return cmd
}

func scheduleDelete(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a schedule, and nothing that it started",
		RunE: a.onSchedule(func(ctx context.Context, _ store.Store, c schedule.Service, name string) error {
			if err := c.Delete(ctx, name, 0); err != nil {
				return err
			}
			return a.say("schedule %s is deleted", name)
		}),
	}
}
