package schedule

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/seed-1177d267/sluice/internal/planfile"
	"github.com/seed-1177d267/sluice/internal/secret"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// A Service makes, shows and changes schedules, in a store or behind a server. A missing schedule is
// plan.ErrNotFound. The edition is that of the schedule that the caller read; 0: any. A schedule of
// another edition is a plan.ErrConflict. Each schedule that it returns has *** in place of secrets.
type Service interface {
	// List returns schedules by name, with the ends of their occurrences that no node has noted yet.
	// The text of plan files is left out, unless the query has Files. List by Due is for nodes alone.
	List(ctx context.Context, q store.ScheduleQuery) ([]plan.Schedule, error)
	// Show returns one schedule as List does, with the text of its plan file.
	Show(ctx context.Context, name string) (plan.Schedule, error)
	// Create makes a schedule, whose first instant is after now. It returns plan.Problems or
	// planfile.Errors for settings that are not valid, or their problem from a server. A missing
	// queue is plan.ErrNotFound, and a name that is taken is plan.ErrExists. applied is the folder of
	// the file that says the schedule, if a file does.
	Create(ctx context.Context, name string, settings plan.ScheduleSettings, applied string) (plan.Schedule, error)
	// Set gives a schedule other settings, and refuses what Create refuses. Instants that have come are
	// decided as before. An occurrence that was decided before starts what the schedule said then. An
	// empty text of a plan file leaves the text as it is, and so does the text that Show returns. A
	// schedule that has the settings already stays as it is, of whatever edition.
	Set(ctx context.Context, name string, edition int64, settings plan.ScheduleSettings) (plan.Schedule, error)
	// Pause stops a schedule from firing. Its tasks and plans continue. A paused schedule is
	// plan.ErrConflict.
	Pause(ctx context.Context, name string, edition int64, why string) (plan.Schedule, error)
	// Resume lets a paused schedule fire again, from now on. Any other one is plan.ErrConflict.
	Resume(ctx context.Context, name string, edition int64) (plan.Schedule, error)
	// Run wants one occurrence now, whatever the timetable says, also of a paused schedule. It
	// returns plan.ErrConflict if overlap does not let it start, or if its plan file is not valid any
	// more, and plan.ErrNotFound if its queue was deleted.
	Run(ctx context.Context, name string) (plan.Occurrence, error)
	// Backfill wants the past instants of a span that have no occurrence, one after the other. It
	// returns how many instants that are; of a plan, instants that have an occurrence count too. It
	// refuses a span of none, and of more than plan.MostBackfill. With dry, nothing is changed.
	Backfill(ctx context.Context, name string, span plan.Span, dry bool) (instants int, err error)
	// Delete deletes a schedule, and nothing that it started.
	Delete(ctx context.Context, name string, edition int64) error
}

var _ Service = (*Setter)(nil)

// ErrEdition means that somebody changed a schedule since the caller read it. It is a
// plan.ErrConflict.
var ErrEdition = fmt.Errorf("the schedule is of another edition: %w", plan.ErrConflict)

// List implements Service.
func (c *Setter) List(ctx context.Context, q store.ScheduleQuery) ([]plan.Schedule, error) {
	found, err := c.Store.Schedules(ctx, q)
	if err == nil {
		err = Note(ctx, c.Store, found)
	}
	if err != nil || len(found) == 0 {
		return nil, err
	}
	queues, err := c.Store.Queues(ctx)
	if err != nil {
		return nil, err
	}
	names := secret.Of(queues)
	for i := range found {
		hide(&found[i], names, q.Files)
	}
	return found, nil
}

// Show implements Service.
func (c *Setter) Show(ctx context.Context, name string) (plan.Schedule, error) {
	s, err := Find(ctx, c.Store, name)
	if err != nil {
		return s, err
	}
	all := []plan.Schedule{s}
	if err := Note(ctx, c.Store, all); err != nil {
		return s, err
	}
	return c.shown(ctx, all[0])
}

// shown returns a schedule without secrets, for people.
func (c *Setter) shown(ctx context.Context, s plan.Schedule) (plan.Schedule, error) {
	queues, err := c.Store.Queues(ctx)
	if err != nil {
		return plan.Schedule{}, err
	}
	hide(&s, secret.Of(queues), true)
	return s, nil
}

// hide hides the secrets in a schedule: those of its plan file, and params that a queue has named
// secret since. The text of plan files stays only with files.
func hide(s *plan.Schedule, names secret.Names, files bool) {
	hideTarget(&s.Task, &s.Plan, names, files)
	s.Open = slices.Clone(s.Open)
	for i := range s.Open {
		if o := &s.Open[i]; o.Target != nil {
			target := *o.Target
			hideTarget(&target.Task, &target.Plan, names, files)
			o.Target = &target
		}
	}
}

func hideTarget(task **plan.ScheduledTask, of **plan.ScheduledPlan, names secret.Names, files bool) {
	if t := *task; t != nil && len(t.Params) > 0 && !names.None() {
		hidden := *t
		hidden.Params = names.Hide(t.Params)
		*task = &hidden
	}
	if *of == nil {
		return
	}
	p := **of
	p.File.Text = ""
	if text := (*of).File.Text; files && text != "" {
		p.File.Text = hiddenText(*of, names)
	}
	if !names.None() && p.Params != nil {
		p.Params = maps.Clone(p.Params)
		for name := range p.Params {
			if names.Named(name) {
				p.Params[name] = secret.Hidden
			}
		}
	}
	*of = &p
}

// hiddenText returns the text of a plan file without its secrets. A text that is no valid plan any
// more may have secrets that nothing names.
func hiddenText(p *plan.ScheduledPlan, names secret.Names) string {
	spec, err := Parse(p, names)
	if err != nil {
		return secret.Hidden
	}
	return planfile.Hide(p.File.Text, names.And(spec.Secrets), nil)
}
