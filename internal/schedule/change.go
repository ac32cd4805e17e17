package schedule

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed-1177d267/sluice/internal/compiler"
	"github.com/seed-1177d267/sluice/internal/planfile"
	"github.com/seed-1177d267/sluice/internal/refusal"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/secret"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/submit"
	"github.com/seed-1177d267/sluice/internal/timetable"
	"github.com/seed-1177d267/sluice/plan"
)

// Parse reads the plan that a schedule starts. secrets are names that queues say. The error is
// planfile.Errors for a file that is not valid.
func Parse(p *plan.ScheduledPlan, secrets secret.Names) (*plan.Spec, error) {
	return parse(p, secrets, nil, nil)
}

func parse(p *plan.ScheduledPlan, secrets secret.Names, check func(*plan.Spec) plan.Problems, declared *[]planfile.Param) (*plan.Spec, error) {
	name := p.Source
	if name == "" {
		name = "plan"
	}
	spec, err := planfile.Parse(name, []byte(p.File.Text), planfile.Options{Params: p.Params, Secrets: secrets, Dir: p.File.Dir, Check: check, Declared: declared})
	if err == nil {
		spec.Source = p.Source
	}
	return spec, err
}

// A Setter makes, shows and changes schedules in a store, as a Service. Any number of goroutines may
// use it.
type Setter struct {
	Store Store
	// Check returns what plugins refuse of a spec; nil: nothing is asked.
	Check func(*plan.Spec) plan.Problems
	// By is who pauses a schedule, for people; "": nobody is named.
	By string
}

// prepare checks what a person says of a schedule, fills in the defaults, and returns the timetable.
func (c *Setter) prepare(ctx context.Context, s *plan.ScheduleSettings, now time.Time) (*timetable.Timetable, error) {
	if s.Every != 0 && s.From.IsZero() {
		s.From = now.Truncate(time.Second)
	}
	s.From, s.Until = s.From.Truncate(time.Millisecond).UTC(), s.Until.UTC()
	if !s.Until.IsZero() && !now.Before(s.Until) {
		return nil, wrong("until", "until: %s has passed", s.Until.Format(time.RFC3339))
	}
	s.Overlap, s.Missed = cmp.Or(s.Overlap, plan.OverlapSkip), cmp.Or(s.Missed, plan.MissedOne)
	for _, word := range []struct {
		key, value string
		known      []string
	}{{"overlap", string(s.Overlap), plan.Overlaps()}, {"missed", string(s.Missed), plan.Misses()}} {
		if !slices.Contains(word.known, word.value) {
			return nil, wrong(word.key, "%s: %q is none of its words; it is one of %q", word.key, word.value, word.known)
		}
	}
	t, err := timetable.New(timetable.SettingsOf(s.Timetable))
	if err == nil {
		err = t.Fires(now)
	}
	if err != nil {
		return nil, err
	}
	switch {
	case (s.Task == nil) == (s.Plan == nil):
		return nil, wrong("plan", "a schedule starts either a plan or a task of a queue; give one of them")
	case s.Task != nil:
		return t, c.checkTask(ctx, s.Task)
	}
	return t, c.checkPlan(ctx, s.Plan)
}

func wrong(key, format string, args ...any) error {
	return plan.Problems{{Task: -1, Item: -1, Key: key, Message: fmt.Sprintf(format, args...)}}
}

// secretParam is said of a param that a schedule would keep, and show to everybody who may read.
const secretParam = "%s is secret, and a schedule shows its params to everybody who may read; have the task read it on its node with from_file or from_env"

func queueOf(queues []plan.Queue, t *plan.ScheduledTask) (*plan.Queue, error) {
	i := slices.IndexFunc(queues, func(q plan.Queue) bool { return q.Name == t.Queue })
	if i < 0 {
		return nil, fmt.Errorf("queue %q: %w; make it: sluice queue create %s --plugin PLUGIN", t.Queue, plan.ErrNotFound, t.Queue)
	}
	return &queues[i], nil
}

// checkKept refuses a queue that keeps tasks for less than LeastKept.
func checkKept(q *plan.Queue) error {
	for _, status := range rules.KeptStatuses {
		if keep := time.Duration(*rules.KeepOf(&q.Keep, status)); keep > 0 && keep < LeastKept {
			return refusal.New(plan.ErrConflict, "queue %q keeps tasks for %s after their end, and a schedule needs %s: sluice queue set %s --keep 1h", q.Name, keep, LeastKept, q.Name)
		}
	}
	return nil
}

// startable refuses to start a schedule whose queue was deleted, or whose plan file is not valid any
// more.
func (c *Setter) startable(ctx context.Context, s *plan.Schedule) error {
	queues, err := c.Store.Queues(ctx)
	if err != nil {
		return err
	}
	if s.Task != nil {
		var q *plan.Queue
		if q, err = queueOf(queues, s.Task); err == nil {
			err = checkKept(q)
		}
	} else if spec, invalid := Parse(s.Plan, secret.Of(queues)); invalid != nil {
		err = refusal.New(plan.ErrConflict, "its plan file is not valid any more; give it another one: sluice schedule set %s --plan FILE\n%v", s.Name, invalid)
	} else {
		err = submit.Check(ctx, c.Store, spec, false)
	}
	if err != nil {
		err = fmt.Errorf("schedule %q: %w", s.Name, err)
	}
	return err
}

// specOf returns the task that an occurrence is.
func specOf(name string, t *plan.ScheduledTask) plan.TaskSpec {
	return plan.TaskSpec{Name: name, Subject: t.Subject, Params: t.Params, Retry: t.Retry.Retry(), Timeout: time.Duration(t.Timeout)}
}

func (c *Setter) checkTask(ctx context.Context, t *plan.ScheduledTask) error {
	queues, err := c.Store.Queues(ctx)
	if err != nil {
		return err
	}
	q, err := queueOf(queues, t)
	if err != nil {
		return err
	}
	if err := checkKept(q); err != nil {
		return wrong("task", "%v", err)
	}
	if err := compiler.CheckDefaults(&plan.TaskDefaults{Params: t.Params, Retry: t.Retry, Timeout: t.Timeout}); err != nil {
		return wrong("task", "task: %v", err)
	}
	if err := rules.CheckSubject(t.Subject); err != nil {
		return wrong("task", "task: %v", err)
	}
	if name := secret.Of(queues).In(t.Params); name != "" {
		return wrong("task", "task: params."+secretParam, name)
	}
	if _, err := submit.Plain(specOf("task", t), q); err != nil {
		return err
	}
	if c.Check != nil {
		spec := &plan.Spec{Tasks: []plan.TaskSpec{{Name: "task", Plugin: q.Plugin, Params: rules.FillParams(&q.Defaults, t.Params)}}}
		if p := c.Check(spec); len(p) > 0 {
			return p
		}
	}
	return nil
}

func (c *Setter) checkPlan(ctx context.Context, p *plan.ScheduledPlan) error {
	if p.File.Text == "" {
		return wrong("plan", "plan: the text of the plan file is empty")
	}
	if len(p.File.Text) > plan.MaxFile {
		return wrong("plan", "plan: the file has %d bytes, and a schedule keeps at most %d", len(p.File.Text), plan.MaxFile)
	}
	if p.File.Dir == "" {
		return wrong("dir", "dir: there is none; give the folder, on the nodes' hosts, where commands run and relative paths in the file start, as in /srv/nightly")
	}
	if !filepath.IsAbs(p.File.Dir) {
		return wrong("dir", "dir: %q is not an absolute path", p.File.Dir)
	}
	queues, err := c.Store.Queues(ctx)
	if err != nil {
		return err
	}
	var declared []planfile.Param
	spec, err := parse(p, secret.Of(queues), c.Check, &declared)
	if err != nil {
		return err
	}
	for _, d := range declared {
		if _, given := p.Params[d.Name]; given && d.Secret {
			return wrong("params", "params."+secretParam, d.Name)
		}
	}
	return submit.Check(ctx, c.Store, spec, false)
}

// Create implements Service.
func (c *Setter) Create(ctx context.Context, name string, settings plan.ScheduleSettings, applied string) (plan.Schedule, error) {
	return c.CreateAs(ctx, plan.ScheduleID{}, name, settings, applied)
}

// CreateAs is Create with an id of the caller's. The same call, repeated because an answer was lost,
// returns the schedule that the first one made. The zero id is a new one.
func (c *Setter) CreateAs(ctx context.Context, id plan.ScheduleID, name string, settings plan.ScheduleSettings, applied string) (plan.Schedule, error) {
	s, err := c.newSchedule(ctx, id, name, settings, applied)
	if err != nil {
		return s, err
	}
	err = c.put(ctx, s)
	switch {
	case err == nil:
		s.Revision++
	case errors.Is(err, plan.ErrExists) || errors.Is(err, plan.ErrConflict):
		is, no := Find(ctx, c.Store, name)
		if no != nil || is.ID != id {
			return s, err
		}
		s = is
	default:
		return s, err
	}
	return c.shown(ctx, s)
}

func (c *Setter) newSchedule(ctx context.Context, id plan.ScheduleID, name string, settings plan.ScheduleSettings, applied string) (plan.Schedule, error) {
	if err := compiler.CheckName("schedule", name); err != nil {
		return plan.Schedule{}, wrong("name", "%v", err)
	}
	now, err := nowOf(ctx, c.Store)
	if err != nil {
		return plan.Schedule{}, err
	}
	t, err := c.prepare(ctx, &settings, now)
	if err != nil {
		return plan.Schedule{}, err
	}
	if id.IsZero() {
		id.ID = plan.NewID(now)
	}
	s := plan.Schedule{ID: id, Name: name, ScheduleSettings: settings, Applied: applied, Created: now}
	begin(&s, t, now)
	return s, nil
}

// begin has a schedule fire from now on.
func begin(s *plan.Schedule, t *timetable.Timetable, now time.Time) {
	s.Modified, s.Cursor, s.Next = now, now, time.Time{}
	if s.Paused == nil {
		s.Next = t.Due(s.ID.String(), now, now).Next
		if len(s.Backfills)+len(s.Open) > 0 { // in a pause nobody looked after what waits
			s.Look = now
		}
	}
}

func (c *Setter) put(ctx context.Context, s plan.Schedule) error {
	refused, err := c.Store.PutSchedules(ctx, []plan.Schedule{s})
	if err != nil {
		return err
	}
	return refused[0]
}

// Find returns a schedule with the text of its plan file.
func Find(ctx context.Context, st Store, name string) (plan.Schedule, error) {
	found, err := st.Schedules(ctx, store.ScheduleQuery{Name: name, Files: true})
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("schedule %q: %w", name, plan.ErrNotFound)
	}
	if err != nil {
		return plan.Schedule{}, err
	}
	return found[0], nil
}

// Note notes in schedules the ends of their occurrences, and writes nothing.
func Note(ctx context.Context, st Store, all []plan.Schedule) error {
	now, err := nowOf(ctx, st)
	if err != nil {
		return err
	}
	ends, err := Ends(ctx, st, all, now)
	for i := range ends {
		is := all[i]
		noted := rules.StepSchedule(is, rules.ScheduleView{Now: now, Ends: ends[i]})
		noted.Next, noted.Look, noted.Backfills = is.Next, is.Look, is.Backfills
		all[i] = noted
	}
	return err
}

// change changes a schedule by its name. change is called again if somebody else changes the schedule
// at the same time, unless edition says which one the caller read: then that is ErrEdition.
func (c *Setter) change(ctx context.Context, name string, edition int64, change func(s *plan.Schedule, now time.Time) error) (plan.Schedule, error) {
	const tries = 10
	for try := 1; ; try++ {
		s, err := Find(ctx, c.Store, name)
		if err == nil {
			err = atEdition(&s, edition)
		}
		if err != nil {
			return s, err
		}
		now, err := nowOf(ctx, c.Store)
		if err == nil {
			err = change(&s, now)
		}
		if err != nil {
			return s, err
		}
		err = c.put(ctx, s)
		switch {
		case err == nil:
			s.Revision++
			return s, nil
		case !errors.Is(err, plan.ErrConflict) || try == tries:
			return s, err
		}
	}
}

// atEdition returns ErrEdition for a schedule that is not of the edition that the caller read.
func atEdition(s *plan.Schedule, edition int64) error {
	if edition > 0 && s.Edition() != edition {
		return refusal.New(ErrEdition, "somebody changed schedule %q at %s; read it again", s.Name, s.Modified.UTC().Format(time.RFC3339))
	}
	return nil
}

// errSame means that a schedule has the settings already.
var errSame = errors.New("nothing changes")

// Set implements Service.
func (c *Setter) Set(ctx context.Context, name string, edition int64, settings plan.ScheduleSettings) (plan.Schedule, error) {
	is, err := c.change(ctx, name, 0, func(s *plan.Schedule, now time.Time) error {
		settings, err := c.withText(ctx, s, settings)
		if err != nil {
			return err
		}
		if Same(&s.ScheduleSettings, &settings) {
			return errSame // of whatever edition
		}
		if err := atEdition(s, edition); err != nil {
			return err
		}
		if err := c.decided(ctx, s, now); err != nil {
			return err
		}
		was := s.Target()
		s.ScheduleSettings = settings
		t, err := c.prepare(ctx, &s.ScheduleSettings, now)
		if err != nil {
			return err
		}
		s.Open = slices.Clone(s.Open)
		for i := range s.Open {
			if o := &s.Open[i]; o.State != plan.OccurrenceStarted && o.Target == nil {
				o.Target = &was
			}
		}
		begin(s, t, now)
		return nil
	})
	if err != nil && !errors.Is(err, errSame) {
		return is, err
	}
	return c.shown(ctx, is)
}

// withText returns settings with the text of the plan file that a schedule has, if they leave the text
// as it is: they have none, or the text that List and Show show, which has no secrets.
func (c *Setter) withText(ctx context.Context, s *plan.Schedule, settings plan.ScheduleSettings) (plan.ScheduleSettings, error) {
	if s.Plan == nil || settings.Plan == nil {
		return settings, nil
	}
	is, text := s.Plan.File.Text, settings.Plan.File.Text
	if text != "" {
		shown, err := c.shown(ctx, *s)
		if err != nil {
			return settings, err
		}
		hidden := shown.Plan.File.Text
		if text != hidden && text != is && strings.Count(text, secret.Hidden) > strings.Count(is, secret.Hidden) {
			return settings, refusal.New(plan.ErrSecret, "the plan file has %s in place of a secret, as the schedule shows it; give the file itself", secret.Hidden)
		}
		if text != hidden {
			return settings, nil
		}
	}
	p := *settings.Plan
	p.File.Text, settings.Plan = is, &p
	return settings, nil
}

// Same reports whether settings say what those of a schedule say, whose defaults are filled in. An
// interval without from is that of the schedule.
func Same(is, said *plan.ScheduleSettings) bool {
	want := *said
	want.Overlap, want.Missed = cmp.Or(want.Overlap, plan.OverlapSkip), cmp.Or(want.Missed, plan.MissedOne)
	if want.Every != 0 && want.From.IsZero() {
		want.From = is.From
	}
	text := func(s plan.ScheduleSettings) []byte {
		s.From, s.Until = s.From.Truncate(time.Millisecond).UTC(), s.Until.UTC()
		b, _ := json.Marshal(s) // params that are no JSON are other ones
		return b
	}
	b := text(want)
	return b != nil && bytes.Equal(text(*is), b)
}

// decided decides the instants that came before a change, as a node would have in a moment.
func (c *Setter) decided(ctx context.Context, s *plan.Schedule, now time.Time) error {
	t, err := timetable.New(timetable.SettingsOf(s.Timetable))
	if err != nil {
		return nil // no node could decide them either
	}
	ends, err := Ends(ctx, c.Store, []plan.Schedule{*s}, now)
	if err == nil {
		*s = decide(s, t, ends[0], now)
	}
	return err
}

// changed is change, and returns the schedule as it is shown.
func (c *Setter) changed(ctx context.Context, name string, edition int64, change func(s *plan.Schedule, now time.Time) error) (plan.Schedule, error) {
	s, err := c.change(ctx, name, edition, change)
	if err != nil {
		return s, err
	}
	return c.shown(ctx, s)
}

// Pause implements Service.
func (c *Setter) Pause(ctx context.Context, name string, edition int64, why string) (plan.Schedule, error) {
	if len(why) > plan.MostWhy {
		return plan.Schedule{}, wrong("why", "why: it has %d bytes; give at most %d", len(why), plan.MostWhy)
	}
	return c.changed(ctx, name, edition, func(s *plan.Schedule, now time.Time) error {
		if s.Paused != nil {
			return refusal.New(plan.ErrConflict, "schedule %q is paused already", name)
		}
		if err := c.decided(ctx, s, now); err != nil {
			return err
		}
		s.Paused, s.Next, s.Modified = &plan.PausedSchedule{At: now, By: c.By, Why: why}, time.Time{}, now
		return nil
	})
}

// Resume implements Service.
func (c *Setter) Resume(ctx context.Context, name string, edition int64) (plan.Schedule, error) {
	return c.changed(ctx, name, edition, func(s *plan.Schedule, now time.Time) error {
		if s.Paused == nil {
			return refusal.New(plan.ErrConflict, "schedule %q is not paused", name)
		}
		t, err := timetable.New(timetable.SettingsOf(s.Timetable))
		if err != nil {
			return err
		}
		s.Paused = nil
		begin(s, t, now)
		return nil
	})
}

// Run implements Service.
func (c *Setter) Run(ctx context.Context, name string) (plan.Occurrence, error) {
	var at time.Time
	s, err := c.change(ctx, name, 0, func(s *plan.Schedule, now time.Time) error {
		if err := c.startable(ctx, s); err != nil {
			return err
		}
		if err := c.decided(ctx, s, now); err != nil { // what ended is no obstacle
			return err
		}
		is := func(o plan.Occurrence) bool { return o.At.Equal(at) }
		at = now.Truncate(time.Millisecond)
		for slices.ContainsFunc(s.Open, is) || slices.ContainsFunc(s.Last, is) { // somebody else wanted one in the same millisecond
			at = at.Add(time.Millisecond)
		}
		last := s.Tally.Skipped
		*s = rules.RunSchedule(*s, at)
		if s.Tally.Skipped > last && s.Last[len(s.Last)-1].At.Equal(at) {
			return refusal.New(plan.ErrConflict, "schedule %q does not start another one now: %s", name, s.Last[len(s.Last)-1].Reason)
		}
		return nil
	})
	if err != nil {
		return plan.Occurrence{}, err
	}
	i := slices.IndexFunc(s.Open, func(o plan.Occurrence) bool { return o.At.Equal(at) })
	return s.Open[i], nil
}

// Backfill implements Service.
func (c *Setter) Backfill(ctx context.Context, name string, span plan.Span, dry bool) (n int, err error) {
	change := func(s *plan.Schedule, now time.Time) error {
		switch {
		case span.To.After(now):
			return wrong("to", "to: %s has not come yet; a backfill is of the past", span.To.Format(time.RFC3339))
		case span.To.Before(span.From):
			return wrong("to", "to: it is before from")
		}
		t, err := timetable.New(timetable.SettingsOf(s.Timetable))
		if err != nil {
			return err
		}
		all, more := t.Within(span.From, span.To, plan.MostBackfill)
		if more {
			return wrong("from", "the span has more than %d instants; give a shorter one", plan.MostBackfill)
		}
		if n = len(all); n == 0 && s.From.After(span.To) {
			return wrong("from", "the schedule begins at %s, and has no instant before; set its from: sluice schedule set %s --from TIME", s.From.UTC().Format(time.RFC3339), s.Name)
		} else if n == 0 {
			return wrong("from", "the span has no instant of the schedule; give a longer one")
		}
		if slices.Contains(s.Backfills, span) {
			return refusal.New(plan.ErrConflict, "schedule %q has a backfill of this span, which has not ended", s.Name)
		}
		if s.Task != nil {
			ids := make([]plan.TaskID, n)
			for i, at := range all {
				ids[i] = rules.OccurrenceID(s.ID, at)
			}
			there, err := store.TasksByID(ctx, c.Store, store.TaskQuery{Brief: true}, ids)
			if err != nil {
				return err
			}
			if n -= len(there); n == 0 {
				return refusal.New(plan.ErrConflict, "each instant of the span has an occurrence")
			}
		}
		s.Backfills = append(slices.Clone(s.Backfills), span)
		s.Look = now
		return nil
	}
	if !dry {
		_, err = c.change(ctx, name, 0, change)
		return n, err
	}
	s, err := Find(ctx, c.Store, name)
	if err != nil {
		return 0, err
	}
	now, err := nowOf(ctx, c.Store)
	if err == nil {
		err = change(&s, now)
	}
	return n, err
}

// Delete implements Service.
func (c *Setter) Delete(ctx context.Context, name string, edition int64) error {
	s, err := Find(ctx, c.Store, name)
	if err == nil {
		err = atEdition(&s, edition)
	}
	if err != nil {
		return err
	}
	return c.Store.DeleteSchedule(ctx, s.ID)
}
