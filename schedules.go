package sluice

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/seed-1177d267/sluice/internal/client"
	"github.com/seed-1177d267/sluice/internal/schedule"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// Schedules returns all schedules by name, without the text of their plan files. The loop reads them in
// pages; it ends after an error.
func (s *Store) Schedules(ctx context.Context) iter.Seq2[plan.Schedule, error] {
	query := store.ScheduleQuery{Limit: 100}
	return paged(query.Limit, func() ([]plan.Schedule, error) {
		st, err := s.schedules()
		if err != nil {
			return nil, err
		}
		return st.List(ctx, query)
	}, func(last plan.Schedule) { query.After = last.Name })
}

// Schedule returns a schedule by its name, with the text of its plan file, or plan.ErrNotFound. Secrets
// in the text are ***.
func (s *Store) Schedule(ctx context.Context, name string) (plan.Schedule, error) {
	st, err := s.schedules()
	if err != nil {
		return plan.Schedule{}, err
	}
	return st.Show(ctx, name)
}

// PutSchedule makes a schedule of that name, or gives it these settings, and returns the schedule. A
// schedule that has the settings already stays as it is. So a program may put its schedules whenever it
// starts, and instants that came while no node ran are still made up for. Other settings
// count for the instants from now on.
//
// PutSchedule returns plan.Problems for settings that are not valid, FileErrors for a plan file that is
// not, ErrQueue for a queue that does not suit its plan, and plan.ErrNotFound for the missing queue of
// a task. A server refuses in its words. An empty text of a plan file leaves the text as it is.
//
// A node starts what schedules say if its den.Config says so:
//
//	den.Run(ctx, st, den.Config{Plugins: reg, Schedules: st})
func (s *Store) PutSchedule(ctx context.Context, name string, settings plan.ScheduleSettings) (plan.Schedule, error) {
	st, err := s.schedules()
	if err != nil {
		return plan.Schedule{}, err
	}
	is, err := st.Set(ctx, name, 0, settings)
	if errors.Is(err, plan.ErrNotFound) {
		is, err = st.Create(ctx, name, settings, "")
	}
	if errors.Is(err, plan.ErrExists) { // somebody else made it meanwhile
		is, err = st.Set(ctx, name, 0, settings)
	}
	return is, fileErrors(err)
}

// PauseSchedule stops a schedule from firing, and keeps why for people. Its tasks and plans continue.
// PauseSchedule returns plan.ErrConflict for a paused schedule.
func (s *Store) PauseSchedule(ctx context.Context, name, why string) (plan.Schedule, error) {
	st, err := s.schedules()
	if err != nil {
		return plan.Schedule{}, err
	}
	return st.Pause(ctx, name, 0, why)
}

// ResumeSchedule lets a paused schedule fire again, from now on: instants of the pause are not made up
// for. It returns plan.ErrConflict for a schedule that is not paused.
func (s *Store) ResumeSchedule(ctx context.Context, name string) (plan.Schedule, error) {
	st, err := s.schedules()
	if err != nil {
		return plan.Schedule{}, err
	}
	return st.Resume(ctx, name, 0)
}

// RunSchedule wants one occurrence of a schedule now, whatever its timetable says. A node starts it
// within about a second. RunSchedule returns plan.ErrConflict if the occurrence before has not ended
// and the schedule's Overlap does not let another one start, or if its plan file is not valid any more.
// A queue that was deleted is plan.ErrNotFound.
func (s *Store) RunSchedule(ctx context.Context, name string) (plan.Occurrence, error) {
	st, err := s.schedules()
	if err != nil {
		return plan.Occurrence{}, err
	}
	return st.Run(ctx, name)
}

// DeleteSchedule deletes a schedule, and nothing that it started. A missing one is plan.ErrNotFound.
func (s *Store) DeleteSchedule(ctx context.Context, name string) error {
	st, err := s.schedules()
	if err != nil {
		return err
	}
	return st.Delete(ctx, name, 0)
}

// schedules returns the schedules of the store, or of the server.
func (s *Store) schedules() (schedule.Service, error) {
	if c, ok := s.driver.(*client.Client); ok {
		return c.ScheduleService(), nil
	}
	st, ok := schedule.StoreOf(s.driver)
	if !ok {
		return nil, fmt.Errorf("schedules: %w by this store", errors.ErrUnsupported)
	}
	set := &schedule.Setter{Store: st}
	if s.plugins != nil {
		set.Check = s.plugins.Refused
	}
	return set, nil
}

// A firer makes a schedule.Firer as it is first needed. Any number of goroutines may use it.
type firer struct {
	mu sync.Mutex
	*schedule.Firer
}

// Fire is for package den: den.Config.Schedules may be a Store. Any number of nodes of this process may
// have the same Store. Fire returns errors.ErrUnsupported for a server, behind which the nodes fire.
func (s *Store) Fire(ctx context.Context, i plan.InstanceID) (held bool, next *time.Duration, err error) {
	st, ok := schedule.StoreOf(s.driver)
	if !ok || s.far {
		return false, nil, fmt.Errorf("start what schedules say: %w; a node needs the store itself", errors.ErrUnsupported)
	}
	s.firer.mu.Lock()
	defer s.firer.mu.Unlock()
	if s.firer.Firer == nil {
		s.firer.Firer = schedule.NewFirer(st, nil)
	}
	return s.firer.Fire(ctx, i)
}
