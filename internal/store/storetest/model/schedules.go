package model

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

var _ store.Schedules = (*Store)(nil)

// A kept is a schedule as the model keeps it.
type kept struct {
	plan.Schedule
	doc, file string
}

func (s *Store) PutSchedules(ctx context.Context, schedules []plan.Schedule) (refused []error, err error) {
	err = s.write(ctx, func(tx *tx) error {
		refused = nil
		for i := range schedules {
			refused = append(refused, tx.putSchedule(schedules[i]))
		}
		return nil
	})
	return refused, err
}

func (tx *tx) putSchedule(s plan.Schedule) error {
	doc, file, err := s.Text()
	if err != nil {
		return err
	}
	is, there := tx.schedules[s.ID]
	switch {
	case there && is.Revision == s.Revision+1 && is.doc == doc:
		return nil
	case there && is.Revision != s.Revision:
		return fmt.Errorf("schedule %q was changed meanwhile: %w", s.Name, plan.ErrConflict)
	case !there && s.Revision > 0:
		return fmt.Errorf("schedule %q: %w", s.Name, plan.ErrNotFound)
	}
	for id, other := range tx.schedules {
		if other.Name == s.Name && id != s.ID {
			return fmt.Errorf("schedule %q: %w", s.Name, plan.ErrExists)
		}
	}
	s.Revision++
	tx.schedules[s.ID] = kept{s, doc, cmp.Or(file, is.file)}
	return nil
}

func (s *Store) Schedules(ctx context.Context, q store.ScheduleQuery) (found []plan.Schedule, err error) {
	err = s.read(ctx, func() error {
		for _, is := range s.schedules {
			switch {
			case q.Name != "" && is.Name != q.Name, is.Name <= q.After, !q.Due.IsZero() && (is.Due().IsZero() || is.Due().After(q.Due)):
				continue
			}
			file := ""
			if q.Files {
				file = is.file
			}
			one, err := plan.ScheduleOf(is.doc, is.Revision, file)
			if err != nil {
				return err
			}
			found = append(found, one)
		}
		slices.SortFunc(found, func(a, b plan.Schedule) int {
			if q.Due.IsZero() {
				return strings.Compare(a.Name, b.Name)
			}
			return cmp.Or(a.Due().Compare(b.Due()), bytes.Compare(a.ID.ID[:], b.ID.ID[:]))
		})
		found = found[:min(len(found), cmp.Or(q.Limit, 100))]
		return nil
	})
	return found, err
}

func (s *Store) DeleteSchedule(ctx context.Context, id plan.ScheduleID) error {
	return s.write(ctx, func(tx *tx) error {
		if _, there := tx.schedules[id]; !there {
			return fmt.Errorf("schedule %s: %w", id, plan.ErrNotFound)
		}
		delete(tx.schedules, id)
		return nil
	})
}
