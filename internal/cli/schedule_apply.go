package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/seed-1177d267/sluice/internal/planfile"
	"github.com/seed-1177d267/sluice/internal/schedule"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

func scheduleApply(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "apply FILE…",
		Short: "Make and change the schedules that plan files say",
		Long: "Make the schedules that plan files say with schedule:, or change them. Each has the " +
			"name of its plan. If one file is not valid, nothing changes. With --prune, schedules " +
			"that an earlier apply made from a file in the same folders, and that no file says " +
			"now, are deleted.",
		Args:    between(1, -1),
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
			spec, err := planfile.LoadWith(path, a.noting(planfile.Options{}, false))
			if err != nil {
				return asUsage(err)
			}
			dir := filepath.Dir(target.Source)
			if !slices.Contains(dirs, dir) {
				dirs = append(dirs, dir)
			}
			if spec.Schedule == nil {
				if !*prune {
					return usagef("%s says no schedule; add schedule: {cron: '30 2 * * *'}", path)
				}
				continue
			}
			if i := slices.IndexFunc(want, func(w wanted) bool { return w.name == spec.Name }); i >= 0 {
				return usagef("%s: another file says the schedule of plan %q too", path, spec.Name)
			}
			settings := *spec.Schedule
			settings.Plan = target
			want = append(want, wanted{spec.Name, dir, settings})
		}
		return a.withSchedules(ctx, a.makingStore, func(st store.Store, c *schedule.Setter) error {
			all, err := store.AllSchedules(ctx, c.Store)
			if err != nil {
				return err
			}
			there := map[string]*plan.Schedule{}
			for i := range all {
				there[all[i].Name] = &all[i]
			}
			for _, w := range want { // all of them before the first change
				if s := there[w.name]; s != nil && s.Applied == "" {
					return fmt.Errorf("schedule %q was made by hand, and not by apply: %w; delete it first: %s", w.name, plan.ErrExists, a.command("schedule", "delete", w.name))
				}
				if err := c.Valid(ctx, w.name, w.settings); err != nil {
					return scheduleError(fmt.Errorf("schedule %q: %w", w.name, err))
				}
			}
			said := func(format string, args ...any) error {
				_, err := fmt.Fprintf(a.Stdout, format+"\n", args...)
				return err
			}
			for _, w := range want {
				s, what := there[w.name], "made"
				if s != nil {
					is, err := schedule.Find(ctx, c.Store, w.name)
					if err != nil {
						return err
					}
					if what = "changed"; schedule.Same(&is.ScheduleSettings, &w.settings) && is.Applied == w.dir {
						what = "unchanged"
					}
				}
				if !*dry && what != "unchanged" {
					var now plan.Schedule
					if s == nil {
						now, err = c.Create(ctx, w.name, w.settings, w.dir)
					} else {
						now, err = c.Apply(ctx, w.name, w.settings, w.dir)
					}
					if err != nil {
						return scheduleError(err)
					}
					what += ", " + whenNext(&now)
				}
				if err := said("schedule %s: %s", w.name, what); err != nil {
					return err
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
				if err := said("schedule %s: deleted", s.Name); err != nil {
					return err
				}
			}
			return a.noteNoFirer(ctx, st)
		})
	}
	return cmd
}
