// Package schedule makes, changes and fires schedules. A node fires them while it holds the role
// protocol.RoleSchedule. Package rules decides each instant, and the store keeps the decision before
// anything is started, so that the next holder continues where one died.
package schedule

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/secret"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/submit"
	"github.com/seed-1177d267/sluice/internal/timetable"
	"github.com/seed-1177d267/sluice/plan"
)

// Store is what keeps schedules, and what they start.
type Store interface {
	store.Store
	store.Schedules
}

// StoreOf returns st as a Store. It returns false if st keeps no schedules.
func StoreOf(st store.Store) (Store, bool) {
	s, ok := st.(Store)
	return s, ok
}

// LeastKept is how long the task or plan of an occurrence stays in the store after its end at least, so
// that a write that arrives late finds it, and makes no other one.
const LeastKept = time.Hour

// mostCounted is how many missed instants of a schedule are counted at most, which takes some
// milliseconds.
const mostCounted = 10_000

// atOnce is how many schedules are read, decided and written at once.
const atOnce = 1000

// nowOf is the store's time in UTC, as schedules keep their times.
func nowOf(ctx context.Context, st store.Reader) (time.Time, error) {
	now, err := st.Now(ctx)
	return now.UTC(), err
}

// A Firer starts what schedules say. One goroutine at a time may call Fire.
type Firer struct {
	st     Store
	tables map[plan.ScheduleID]table
	fired  func(late time.Duration)
}

// table is a timetable, and the settings that it was made of.
type table struct {
	of string
	*timetable.Timetable
}

// NewFirer returns a Firer. fired, unless it is nil, is told how late each occurrence of a timetable was
// started.
func NewFirer(st Store, fired func(late time.Duration)) *Firer {
	return &Firer{st, map[plan.ScheduleID]table{}, fired}
}

// Fire starts what is due, if the instance holds the role, and reports whether it does. next is how
// long it is until the next schedule is due; nil: none will be.
func (f *Firer) Fire(ctx context.Context, me plan.InstanceID) (held bool, next *time.Duration, err error) {
	if held, err = f.st.Hold(ctx, protocol.RoleSchedule, me); err != nil || !held {
		return held, nil, err
	}
	for {
		now, err := nowOf(ctx, f.st)
		if err != nil {
			return true, nil, err
		}
		due, err := f.st.Schedules(ctx, store.ScheduleQuery{Due: now, Limit: atOnce})
		if err != nil {
			return true, nil, err
		}
		if len(due) > 0 {
			if err := f.fire(ctx, due, now); err != nil {
				return true, nil, err
			}
			continue
		}
		first, err := f.st.Schedules(ctx, store.ScheduleQuery{Due: now.AddDate(1000, 0, 0), Limit: 1})
		if err != nil || len(first) == 0 {
			return true, nil, err
		}
		in := first[0].Due().Sub(now)
		return true, &in, nil
	}
}

// fire decides what is due of some schedules, and starts it.
func (f *Firer) fire(ctx context.Context, due []plan.Schedule, now time.Time) error {
	ends, err := Ends(ctx, f.st, due, now)
	if err != nil {
		return err
	}
	decided := make([]plan.Schedule, len(due))
	for i := range due {
		decided[i] = f.step(&due[i], ends[i], now)
	}
	if st, ok := f.st.(store.Starter); ok {
		if decided, err = f.startAtOnce(ctx, st, decided); err != nil {
			return err
		}
	}
	written, err := f.put(ctx, decided)
	if err != nil {
		return err
	}
	return f.start(ctx, written)
}

// startAtOnce starts the schedules that start tasks and nothing else, each in the write that has its
// decision. It returns the others.
func (f *Firer) startAtOnce(ctx context.Context, st store.Starter, all []plan.Schedule) (rest []plan.Schedule, err error) {
	m := &maker{ctx: ctx, f: f}
	var chosen, made []plan.Schedule
	for i := range all {
		if !tasksAlone(&all[i]) {
			rest = append(rest, all[i])
			continue
		}
		if err := m.collect(&all[i]); err != nil {
			return nil, err
		}
		chosen = append(chosen, all[i])
	}
	now, err := nowOf(ctx, f.st)
	if err != nil || len(chosen) == 0 {
		return rest, err
	}
	of := map[plan.ScheduleID][]plan.Task{}
	for i, w := range m.of {
		of[w.schedule] = append(of[w.schedule], m.tasks[i])
		m.note(w.schedule, w.o, nil)
	}
	tasks := make([][]plan.Task, len(chosen))
	for i, s := range chosen { // the decisions stay as they are
		m.noteMade(&s, now)
		made, tasks[i] = append(made, s), of[s.ID]
	}
	refused, err := st.StartTasks(ctx, made, tasks)
	switch {
	case err != nil && mayPass(ctx, err):
		return nil, err
	case err != nil: // one of the tasks is refused, and the others are not held up
		return append(rest, chosen...), nil
	}
	if now, err = nowOf(ctx, f.st); err != nil {
		return nil, err
	}
	for i := range made {
		switch {
		case refused[i] == nil:
			f.tell(m.made[made[i].ID], now)
		case !lost(refused[i]):
			return nil, refused[i]
		}
	}
	return rest, nil
}

// tasksAlone reports whether all that a decided schedule does is to start tasks. It does not, if it
// cancels one, or if it has to look whether a backfill is to start one.
func tasksAlone(s *plan.Schedule) (starts bool) {
	for _, o := range s.Open {
		target := s.Target()
		if o.Target != nil {
			target = *o.Target
		}
		switch starting := o.State == plan.OccurrenceStarting; {
		case o.Stop, starting && (target.Task == nil || o.Kind == plan.ByBackfill):
			return false
		case starting:
			starts = true
		}
	}
	return starts
}

// step decides what is due of one schedule.
func (f *Firer) step(s *plan.Schedule, ends []rules.OccurrenceEnd, now time.Time) plan.Schedule {
	t, err := f.table(s)
	if err != nil { // another version of the program may have made it
		stopped := rules.StepSchedule(*s, rules.ScheduleView{Now: now, Ends: ends})
		stopped.Next, stopped.Paused = time.Time{}, &plan.PausedSchedule{At: now, Why: err.Error()}
		return stopped
	}
	return decide(s, t, ends, now)
}

// decide decides what is due of one schedule by its timetable.
func decide(s *plan.Schedule, t *timetable.Timetable, ends []rules.OccurrenceEnd, now time.Time) plan.Schedule {
	v := rules.ScheduleView{Now: now, Ends: ends}
	if s.Paused == nil {
		d := t.Due(s.ID.String(), s.Cursor, now)
		v.Missed, v.Due, v.Cursor, v.Next = d.Missed, d.Now, d.Cursor, d.Next
		if s.Missed == plan.MissedSkip && !d.Missed.IsZero() {
			var before []time.Time
			before, v.More = t.Within(s.Cursor.Add(1), d.Missed.Add(-1), mostCounted)
			v.Before = len(slices.DeleteFunc(before, func(at time.Time) bool { // its jitter may be longer
				return slices.ContainsFunc(d.Now, at.Equal)
			}))
		}
	}
	if len(s.Backfills) > 0 {
		span, more := s.Backfills[0], false
		if v.Backfill, more = t.Within(span.From, span.To, plan.MostWaiting); more {
			v.Left = &plan.Span{From: v.Backfill[len(v.Backfill)-1].Add(1), To: span.To}
		}
	}
	return rules.StepSchedule(*s, v)
}

// table returns the timetable of a schedule.
func (f *Firer) table(s *plan.Schedule) (*timetable.Timetable, error) {
	of, err := json.Marshal(s.Timetable)
	if err != nil {
		return nil, err
	}
	if t := f.tables[s.ID]; t.of == string(of) {
		return t.Timetable, nil
	}
	t, err := timetable.New(timetable.SettingsOf(s.Timetable))
	if err != nil {
		return nil, err
	}
	if len(f.tables) > 20*atOnce { // many of them may have been deleted
		clear(f.tables)
	}
	f.tables[s.ID] = table{string(of), t}
	return t, nil
}

// put writes schedules, and returns those that were written. The others were changed by somebody
// else, and are due again.
func (f *Firer) put(ctx context.Context, all []plan.Schedule) (written []plan.Schedule, err error) {
	refused, err := f.st.PutSchedules(ctx, all)
	if err != nil {
		return nil, err
	}
	for i := range all {
		switch err := refused[i]; {
		case err == nil:
			all[i].Revision++
			written = append(written, all[i])
		case !lost(err):
			return nil, err
		}
	}
	return written, nil
}

// lost reports whether a schedule was changed or deleted by somebody else.
func lost(err error) bool {
	return errors.Is(err, plan.ErrConflict) || errors.Is(err, plan.ErrNotFound)
}

// Ends returns, for each schedule, how each occurrence in its Open ended by now.
func Ends(ctx context.Context, st store.Reader, all []plan.Schedule, now time.Time) ([][]rules.OccurrenceEnd, error) {
	var ids []plan.TaskID
	for i := range all {
		for _, o := range all[i].Open {
			if o.State == plan.OccurrenceStarted && !o.Task.IsZero() {
				ids = append(ids, o.Task)
			}
		}
	}
	tasks := map[plan.TaskID]*plan.Task{}
	if len(ids) > 0 {
		found, err := store.TasksByID(ctx, st, store.TaskQuery{Brief: true}, ids)
		if err != nil {
			return nil, err
		}
		for i := range found {
			tasks[found[i].ID] = &found[i]
		}
	}
	gone := rules.OccurrenceEnd{State: plan.OccurrenceGone, Reason: "it was deleted before its end was seen", At: now}
	ends := make([][]rules.OccurrenceEnd, len(all))
	for i := range all {
		ends[i] = make([]rules.OccurrenceEnd, len(all[i].Open))
		for k, o := range all[i].Open {
			end := &ends[i][k]
			switch {
			case o.State != plan.OccurrenceStarted:
			case !o.Task.IsZero():
				if t := tasks[o.Task]; t == nil {
					*end = gone
				} else if t.Status.Finished() {
					*end = rules.OccurrenceEnd{State: rules.OccurrenceOfTask(t), At: t.Ended.UTC()}
				}
			default:
				p, err := st.Plan(ctx, o.Plan)
				switch {
				case errors.Is(err, plan.ErrNotFound):
					*end = gone
				case err != nil:
					return nil, err
				case p.State.Ended():
					*end = rules.OccurrenceEnd{State: rules.OccurrenceOfPlan(&p), At: p.Ended.UTC()}
				}
			}
		}
	}
	return ends, nil
}

// start adds what is in the state starting, and cancels what another occurrence replaces. Then it
// notes that in the schedules.
func (f *Firer) start(ctx context.Context, all []plan.Schedule) error {
	m := &maker{ctx: ctx, f: f}
	var changed []plan.Schedule
	for i := range all {
		if slices.ContainsFunc(all[i].Open, func(o plan.Occurrence) bool { return o.State == plan.OccurrenceStarting }) {
			if err := m.collect(&all[i]); err != nil {
				return err
			}
		}
		for _, o := range all[i].Open {
			if o.Stop && o.State == plan.OccurrenceStarted {
				if err := f.cancel(ctx, &o); err != nil {
					return err
				}
			}
		}
	}
	if err := m.add(); err != nil {
		return err
	}
	now, err := nowOf(ctx, f.st)
	if err != nil {
		return err
	}
	for i := range all {
		made := m.made[all[i].ID]
		m.noteMade(&all[i], now)
		f.tell(made, now)
		if len(made) > 0 {
			changed = append(changed, all[i])
		}
	}
	if len(changed) == 0 {
		return nil
	}
	_, err = f.put(ctx, changed) // who lost reads them again, and adds nothing twice
	return err
}

// tell tells how late occurrences were started.
func (f *Firer) tell(made []plan.Occurrence, now time.Time) {
	for _, o := range made {
		if f.fired != nil && o.Kind == plan.ByTimetable && o.State != "" {
			f.fired(now.Sub(o.At))
		}
	}
}

// cancel cancels the task or plan of an occurrence, unless it has ended.
func (f *Firer) cancel(ctx context.Context, o *plan.Occurrence) (err error) {
	if !o.Task.IsZero() {
		err = f.st.CancelTask(ctx, o.Task)
	} else {
		err = f.st.CancelPlan(ctx, o.Plan, false)
	}
	if errors.Is(err, plan.ErrConflict) || errors.Is(err, plan.ErrPlanEnded) || errors.Is(err, plan.ErrNotFound) {
		err = nil
	}
	return err
}

// A maker adds the tasks and plans of occurrences.
type maker struct {
	ctx    context.Context
	f      *Firer
	queues map[string]plan.Queue
	hidden secret.Names
	there  map[plan.TaskID]time.Time // when the tasks of backfills that have ended were added
	tasks  []plan.Task
	of     []wanted // the occurrences of tasks
	made   map[plan.ScheduleID][]plan.Occurrence
}

type wanted struct {
	schedule plan.ScheduleID
	o        plan.Occurrence
}

// note keeps what became of an occurrence.
func (m *maker) note(id plan.ScheduleID, o plan.Occurrence, err error) {
	decided := o.Decided
	o.Decided, o.Reason = time.Time{}, ""
	switch o.State = plan.OccurrenceStarted; {
	case errors.Is(err, plan.ErrOverlap) && o.Kind == plan.ByBackfill: // it waits for the plan that people started
		o.State, o.Reason, o.Decided = plan.OccurrenceWaiting, err.Error(), decided
	case errors.Is(err, plan.ErrOverlap):
		o.State, o.Reason = plan.OccurrenceSkipped, err.Error()
	case err != nil:
		o.State, o.Reason, o.Task = plan.OccurrenceFailed, err.Error(), plan.TaskID{}
	}
	if m.made == nil {
		m.made = map[plan.ScheduleID][]plan.Occurrence{}
	}
	m.made[id] = append(m.made[id], o)
}

// noteMade notes in a schedule what became of its occurrences.
func (m *maker) noteMade(s *plan.Schedule, now time.Time) {
	for _, o := range m.made[s.ID] {
		if o.State == plan.OccurrenceStarted {
			o.Begun = now
		}
		rules.MadeOccurrence(s, o, now)
	}
}

// leaveOut notes that an instant has an occurrence already.
func (m *maker) leaveOut(id plan.ScheduleID, o plan.Occurrence) {
	m.note(id, o, nil)
	all := m.made[id]
	all[len(all)-1].State = ""
}

// mayPass reports whether an error is of the store, and not of what was to be made.
func mayPass(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, plan.ErrUnavailable) || errors.Is(err, plan.ErrFull) || errors.Is(err, plan.ErrStoreGone)
}

// collect makes the tasks of a schedule's occurrences, for add, and submits its plans.
func (m *maker) collect(s *plan.Schedule) error {
	if m.queues == nil {
		queues, err := m.f.st.Queues(m.ctx)
		if err != nil {
			return err
		}
		m.queues, m.hidden = make(map[string]plan.Queue, len(queues)), secret.Of(queues)
		for _, q := range queues {
			m.queues[q.Name] = q
		}
	}
	if err := m.look(s); err != nil {
		return err
	}
	for _, o := range s.Open {
		if o.State != plan.OccurrenceStarting {
			continue
		}
		o.Task = rules.OccurrenceID(s.ID, o.At)
		target := s.Target()
		if added, ended := m.there[o.Task]; ended && added.Before(o.Decided) {
			m.leaveOut(s.ID, o)
			continue
		}
		if o.Target != nil {
			target = *o.Target
		}
		if target.Task != nil {
			t, err := m.task(s, target.Task)
			if err != nil {
				m.note(s.ID, o, err)
				continue
			}
			t.ID = o.Task
			m.tasks, m.of = append(m.tasks, t), append(m.of, wanted{s.ID, o})
			continue
		}
		p, repeated, err := m.submit(s, target.Plan, o.At)
		if err != nil && mayPass(m.ctx, err) {
			return err
		}
		if repeated && err == nil && p.State.Ended() && p.Created.Before(o.Decided) {
			m.leaveOut(s.ID, o)
			continue
		}
		o.Plan, o.Task = p.ID, plan.TaskID{}
		m.note(s.ID, o, err)
	}
	return nil
}

// look finds which instants of backfills have a task already that has ended.
func (m *maker) look(s *plan.Schedule) error {
	var ids []plan.TaskID
	for _, o := range s.Open {
		if o.State == plan.OccurrenceStarting && o.Kind == plan.ByBackfill {
			ids = append(ids, rules.OccurrenceID(s.ID, o.At))
		}
	}
	if len(ids) == 0 {
		return nil
	}
	found, err := store.TasksByID(m.ctx, m.f.st, store.TaskQuery{}, ids)
	m.there = make(map[plan.TaskID]time.Time, len(found))
	for i := range found {
		if found[i].Status.Finished() {
			m.there[found[i].ID] = found[i].Created
		}
	}
	return err
}

// task makes the task that an occurrence is, but for its id.
func (m *maker) task(s *plan.Schedule, t *plan.ScheduledTask) (plan.Task, error) {
	q, ok := m.queues[t.Queue]
	if !ok {
		return plan.Task{}, fmt.Errorf("queue %q: %w", t.Queue, plan.ErrNotFound)
	}
	if err := checkKept(&q); err != nil { // it was set so since
		return plan.Task{}, err
	}
	made, err := submit.Plain(specOf(s.Name, t), &q)
	made.Schedule, made.Created = s.Name, time.Time{} // by the store's clock
	if q.OnLost == plan.OnLostDefault {
		made.OnLost = plan.OnLostRetry // whatever dies
	}
	return made, err
}

// submit submits the plan that an occurrence is. A repeated call, by whichever node, submits it once.
func (m *maker) submit(s *plan.Schedule, p *plan.ScheduledPlan, at time.Time) (made plan.Plan, repeated bool, err error) {
	if p.File.Text == "" { // it was read without
		whole, err := m.f.st.Schedules(m.ctx, store.ScheduleQuery{Name: s.Name, Files: true})
		if err != nil || len(whole) == 0 || whole[0].Plan == nil {
			return plan.Plan{}, false, cmp.Or(err, plan.ErrNotFound)
		}
		with := *p
		with.File.Text = whole[0].Plan.File.Text
		p = &with
	}
	spec, err := Parse(p, m.hidden)
	if err != nil {
		return plan.Plan{}, false, err
	}
	spec.By = "schedule " + s.Name
	if spec.Keep > 0 {
		spec.Keep = max(spec.Keep, LeastKept)
	}
	made, repeated, err = submit.Once(m.ctx, m.f.st, spec, rules.OccurrenceKey(s.ID, at), false)
	if repeated && errors.Is(err, plan.ErrConflict) { // it is there, and its file was another one then
		err = nil
	}
	return made, repeated, err
}

// add adds the tasks: all of them in one call, or one by one if the store refuses that.
func (m *maker) add() error {
	if len(m.tasks) == 0 {
		return nil
	}
	err := m.f.st.AddTasks(m.ctx, plan.PlanID{}, m.tasks)
	if err != nil && mayPass(m.ctx, err) {
		return err
	}
	for i, w := range m.of {
		var refused error
		if err != nil {
			refused = m.f.st.AddTasks(m.ctx, plan.PlanID{}, m.tasks[i:i+1])
			if errors.Is(refused, plan.ErrExists) { // it is there, and its params were others then
				refused = nil
			}
			if refused != nil && mayPass(m.ctx, refused) {
				return refused
			}
		}
		m.note(w.schedule, w.o, refused)
	}
	return nil
}
