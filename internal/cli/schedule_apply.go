package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/planfile"
	"github.com/seed-1177d267/sluice/internal/schedule"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/timetable"
	"github.com/seed-1177d267/sluice/plan"
)

func scheduleApply(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "apply FILE…",
		Short: "Make and change the schedules that plan files say",
		Long: "Make the schedules that plan files say with schedule:, or change them. Each has the " +
			"name of its plan. Files without schedule: are left alone. If one file is not valid, " +
			"nothing changes. With --prune, schedules that an earlier apply made from a file in " +
			"the same folders, and that no file says now, are deleted.",
		Example: "  sluice schedule apply plans/*.yaml --prune",
	}
	prune := cmd.Flags().Bool("prune", false, "delete schedules that an apply made from the same folders, and that no file says now")
	dry := cmd.Flags().Bool("dry-run", false, "only show what would change")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		type wanted struct {
			name, dir string
			settings  plan.ScheduleSettings
		}
		var want []wanted
		var dirs []string
		for _, path := range args {
			target, err := scheduledPlan(path)
			if err != nil {
				return err
			}
			draft, err := planfile.LoadWith(path, planfile.Options{Draft: true})
			if err != nil {
				return asUsage(err)
			}
			dir := filepath.Dir(target.Source)
			if !slices.Contains(dirs, dir) {
				dirs = append(dirs, dir)
			}
			if draft.Schedule == nil {
				continue // its params may be for people to give
			}
			given := fmt.Sprintf("in its params, or by %s --param ", a.command("schedule", "create", "NAME", "--plan", path))
			spec, err := planfile.LoadWith(path, a.noting(planfile.Options{Given: given}, false))
			if err != nil {
				return asUsage(err)
			}
			if i := slices.IndexFunc(want, func(w wanted) bool { return w.name == spec.Name }); i >= 0 {
				return usagef("%s: %s says the schedule of plan %q too", path, want[i].settings.Plan.Source, spec.Name)
			}
			if err := fires(spec.Schedule); err != nil {
				return asUsage(fmt.Errorf("%s: %w", path, err))
			}
			settings := *spec.Schedule
			settings.Plan = target
			want = append(want, wanted{spec.Name, dir, settings})
		}
		if len(want) == 0 && !*prune {
			return usagef("no file says a schedule; add schedule: {cron: '30 2 * * *'} to one")
		}
		return a.withSchedules(ctx, a.makingStore, func(st store.Store, c schedule.Service) error {
			all, err := store.AllSchedules(ctx, c.List)
			if err != nil {
				return err
			}
			there := map[string]*plan.Schedule{}
			for i := range all {
				there[all[i].Name] = &all[i]
			}
			for _, w := range want { // all of them before the first change
				s := there[w.name]
				if s != nil && s.Applied != w.dir {
					from := "by hand"
					if s.Applied != "" {
						from = "from a file in " + s.Applied
					}
					return fmt.Errorf("schedule %q was made %s: %w; delete it first: %s", w.name, from, plan.ErrExists, a.command("schedule", "delete", w.name))
				}
			}
			for _, w := range want {
				what, err := apply(ctx, c, w.name, w.dir, w.settings, there[w.name], *dry)
				if err == nil {
					err = a.say("schedule %s: %s", w.name, what)
				}
				if err != nil {
					return scheduleError(err)
				}
			}
			for i := range all {
				s := &all[i]
				if !*prune || !slices.Contains(dirs, s.Applied) || slices.ContainsFunc(want, func(w wanted) bool { return w.name == s.Name }) {
					continue
				}
				if !*dry {
					if err := c.Delete(ctx, s.Name, 0); err != nil && !errors.Is(err, plan.ErrNotFound) {
						return err
					}
				}
				if err := a.say("schedule %s: deleted", s.Name); err != nil {
					return err
				}
			}
			return a.noteNoFirer(ctx, st)
		})
	}
	return cmd
}

// apply makes or changes the schedule of a file, and returns what it did. was is the schedule as it is
// now; nil: there is none.
func apply(ctx context.Context, c schedule.Service, name, dir string, settings plan.ScheduleSettings, was *plan.Schedule, dry bool) (string, error) {
	switch {
	case was == nil && dry:
		return "made", nil
	case was == nil:
		s, err := c.Create(ctx, name, settings, dir)
		if !errors.Is(err, plan.ErrExists) {
			return "made, " + whenNext(&s), err
		}
		if s, err = c.Show(ctx, name); err != nil { // another apply was quicker
			return "", err
		}
		was = &s
	case dry:
		s, err := c.Show(ctx, name)
		if err != nil || schedule.Same(&s.ScheduleSettings, &settings) {
			return "unchanged", err
		}
		return "changed", nil
	}
	s, err := c.Set(ctx, name, 0, settings)
	if err == nil && s.Modified.Equal(was.Modified) {
		return "unchanged", nil
	}
	return "changed, " + whenNext(&s), err
}

// fires refuses a schedule that never fires.
func fires(s *plan.ScheduleSettings) error {
	of := timetable.SettingsOf(s.Timetable)
	if of.Every != 0 && of.From.IsZero() {
		of.From = time.Now()
	}
	t, err := timetable.New(of)
	if err == nil {
		err = t.Fires(time.Now())
	}
	return err
}
