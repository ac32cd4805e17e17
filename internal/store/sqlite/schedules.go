package sqlite

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

var (
	_ store.Schedules = (*Store)(nil)
	_ store.Starter   = (*Store)(nil)
)

// PutSchedules implements store.Schedules, in one transaction.
func (s *Store) PutSchedules(ctx context.Context, schedules []plan.Schedule) ([]error, error) {
	return s.StartTasks(ctx, schedules, make([][]plan.Task, len(schedules)))
}

func (s *Store) StartTasks(ctx context.Context, schedules []plan.Schedule, tasks [][]plan.Task) (refused []error, err error) {
	err = s.write(ctx, func(t *tx) error {
		refused = make([]error, len(schedules))
		var all []plan.Task
		for i := range schedules {
			doc, file, err := schedules[i].Text()
			if err == nil {
				err = t.putSchedule(&schedules[i], doc, file)
			}
			if refused[i] = err; err == nil {
				all = append(all, tasks[i]...)
			}
		}
		added, err := t.check(nil, all)
		if err == nil && len(added) > 0 {
			t.addTasks(nil, added, 0)
		}
		return err
	})
	return refused, err
}

// putSchedule writes one schedule, or returns why the store does not take it.
func (t *tx) putSchedule(s *plan.Schedule, doc, file string) error {
	var due any
	if at := s.Due(); !at.IsZero() {
		due = micro(at)
	}
	if r := t.query("SELECT id, revision, doc FROM schedules WHERE id = ?", s.ID.ID[:]); r.one() {
		switch revision, is := r.int(1), r.text(2); {
		case revision == s.Revision+1 && is == doc:
			return nil
		case revision != s.Revision:
			return fmt.Errorf("schedule %q was changed meanwhile: %w", s.Name, plan.ErrConflict)
		}
		t.exec("UPDATE schedules SET revision = revision + 1, due = ?, doc = ?, file = CASE WHEN ? = '' THEN file ELSE ? END WHERE id = ?", due, doc, file, file, s.ID.ID[:])
		return nil
	}
	if s.Revision > 0 {
		return fmt.Errorf("schedule %q: %w", s.Name, plan.ErrNotFound)
	}
	if r := t.query("SELECT 1 FROM schedules WHERE name = ?", s.Name); r.one() {
		return fmt.Errorf("schedule %q: %w", s.Name, plan.ErrExists)
	}
	t.exec("INSERT INTO schedules (id, name, revision, due, doc, file) VALUES (?, ?, 1, ?, ?, ?)", s.ID.ID[:], s.Name, due, doc, file)
	return nil
}

func (s *Store) Schedules(ctx context.Context, q store.ScheduleQuery) (found []plan.Schedule, err error) {
	where, order, args := "name > ?", "name", []any{q.After}
	switch {
	case q.Name != "":
		where, args = "name = ?", []any{q.Name}
	case !q.Due.IsZero():
		where, order, args = "due <= ?", "due", []any{micro(q.Due)}
	}
	err = s.read(ctx, func(c *conn) error {
		found = nil
		for r := c.query("SELECT doc, revision, "+pick(q.Files, "file", "''")+" FROM schedules WHERE "+where+" ORDER BY "+order+" LIMIT ? + 0",
			append(args, cmp.Or(q.Limit, 100))...); r.next(); {
			one, err := plan.ScheduleOf(r.text(0), r.int(1), r.text(2))
			if err != nil {
				return err
			}
			found = append(found, one)
		}
		return nil
	})
	return found, err
}

func (s *Store) DeleteSchedule(ctx context.Context, id plan.ScheduleID) error {
	return s.write(ctx, func(t *tx) error {
		if t.exec("DELETE FROM schedules WHERE id = ?", id.ID[:]) == 0 {
			return fmt.Errorf("schedule %s: %w", id, plan.ErrNotFound)
		}
		return nil
	})
}

// scheduleDue returns how long it is until the first schedule is due; nil if none will be.
func (t *tx) scheduleDue() *time.Duration {
	r := t.query("SELECT due FROM schedules WHERE due IS NOT NULL ORDER BY due LIMIT 1")
	if !r.one() {
		return nil
	}
	in := time.Duration(r.int(0)-t.now) * time.Microsecond
	return &in
}
