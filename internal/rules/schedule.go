package rules

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/seed-1177d267/sluice/plan"
)

// A ScheduleView is what StepSchedule decides by, beside the schedule. The timetable of the schedule
// gives the instants, and the store the ends.
type ScheduleView struct {
	Now    time.Time
	Missed time.Time   // the latest instant after the cursor that is more than a minute ago; zero: there is none
	Before int         // how many missed instants are before it; counted for MissedSkip alone
	More   bool        // Before is not all of them
	Due    []time.Time // the instants that came in the last minute, oldest first
	Cursor time.Time   // every instant up to it is in Missed or Due, or before these
	Next   time.Time   // when the next instant comes, with its jitter; zero: never

	// Ends are the ends of the occurrences in Open, by their index. The zero End says that the
	// occurrence has not ended.
	Ends []OccurrenceEnd
	// Backfill are the next instants of the first span, at most MostWaiting, and Left is the rest of
	// the span; nil: no instant is left.
	Backfill []time.Time
	Left     *plan.Span
}

// An OccurrenceEnd is how an occurrence ended.
type OccurrenceEnd struct {
	State  plan.OccurrenceState // "": it has not ended
	Reason string
	At     time.Time
}

// lookSoon is how often a node looks at an occurrence that another one waits for. lookLater and
// lookLatest are the limits for one that nothing waits for: its end is of interest to people alone.
const (
	lookSoon   = time.Second
	lookLater  = 10 * time.Second
	lookLatest = 5 * time.Minute
)

// StepSchedule returns the schedule with what is to be done at v.Now. It notes the ends of
// occurrences, decides each instant that has come by Missed and Overlap, and moves the cursor. An
// occurrence in the state starting is to be added, and one with Stop is to be cancelled. An instant
// that has an occurrence gets no other one. While the schedule is paused, StepSchedule decides no
// instant of the timetable.
func StepSchedule(s plan.Schedule, v ScheduleView) plan.Schedule {
	st := stepping{&s, v.Now}
	s.Last = slices.Clone(s.Last)
	open := s.Open
	s.Open = nil
	for i, o := range open {
		if i < len(v.Ends) && v.Ends[i].State != "" {
			o.State, o.Reason, o.Ended = v.Ends[i].State, v.Ends[i].Reason, v.Ends[i].At
			if o.Stop && o.State != plan.OccurrenceSucceeded {
				o.State, o.Reason = plan.OccurrenceCancelled, "another one took its place"
			}
			st.end(o)
		} else {
			s.Open = append(s.Open, o)
		}
	}
	if s.Paused == nil {
		if !v.Missed.IsZero() && s.Missed == plan.MissedSkip {
			st.skipMissed(v)
		} else if !v.Missed.IsZero() {
			st.decide(plan.Occurrence{At: v.Missed})
		}
		for _, at := range v.Due {
			st.decide(plan.Occurrence{At: at})
		}
		if !v.Cursor.IsZero() {
			s.Cursor = v.Cursor
		}
		s.Next = v.Next
	} else {
		s.Next = time.Time{}
	}
	st.fill(v)
	st.promote()
	s.Look = st.look()
	return s
}

// RunSchedule adds the occurrence that a person wants at an instant.
func RunSchedule(s plan.Schedule, now time.Time) plan.Schedule {
	st := stepping{&s, now}
	s.Open, s.Last = slices.Clone(s.Open), slices.Clone(s.Last)
	st.decide(plan.Occurrence{At: now, Kind: plan.ByRun})
	s.Look = st.look()
	return s
}

// MadeOccurrence notes that the occurrence of an instant was added, as o says. An o that has failed
// could not be made, one that was skipped was not to be, and one that
// waits is tried again. An o without a state is left out, because the instant has an occurrence.
func MadeOccurrence(s *plan.Schedule, o plan.Occurrence, now time.Time) {
	st := stepping{s, now}
	i := slices.IndexFunc(s.Open, func(is plan.Occurrence) bool { return is.At.Equal(o.At) })
	if i < 0 {
		return
	}
	if o.State == "" {
		s.Open = slices.Delete(slices.Clone(s.Open), i, i+1)
	} else if o.State == plan.OccurrenceFailed || o.State == plan.OccurrenceSkipped {
		s.Open = slices.Delete(slices.Clone(s.Open), i, i+1)
		o.Ended = now
		st.end(o)
	} else {
		s.Open = slices.Clone(s.Open)
		if s.Open[i] = o; o.State == plan.OccurrenceStarted {
			s.Tally.Started++
		}
	}
	s.Look = st.look()
}

// OccurrenceID is the id of the task that an occurrence is. Each node makes the same one, so that
// adding an occurrence twice adds one task.
func OccurrenceID(s plan.ScheduleID, at time.Time) (id plan.TaskID) {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", s, at.UnixMilli()))
	binary.BigEndian.PutUint32(id.ID[:4], uint32(at.Unix()))
	copy(id.ID[4:], sum[:])
	return id
}

// OccurrenceKey is the idempotency key of the plan that an occurrence is.
func OccurrenceKey(s plan.ScheduleID, at time.Time) string {
	return fmt.Sprintf("schedule/%s/%d", s, at.UnixMilli())
}

// stepping changes a schedule.
type stepping struct {
	*plan.Schedule
	now time.Time
}

// knows reports whether an instant has an occurrence.
func (s *stepping) knows(at time.Time) bool {
	is := func(o plan.Occurrence) bool { return o.At.Equal(at) }
	return slices.ContainsFunc(s.Open, is) || slices.ContainsFunc(s.Last, is)
}

// end puts an occurrence among the last ones.
func (s *stepping) end(o plan.Occurrence) {
	o.Target, o.Stop = nil, false
	switch o.State {
	case plan.OccurrenceSucceeded:
		s.Tally.Succeeded++
		if o.Ended.After(s.Succeeded) {
			s.Succeeded = o.Ended
		}
	case plan.OccurrenceFailed:
		s.Tally.Failed++
	case plan.OccurrenceSkipped:
		s.Tally.Skipped++
	}
	s.Last = append(s.Last, o)
	s.Last = s.Last[max(0, len(s.Last)-plan.MostLast):]
}

// ran reports whether an instant has an occurrence that was not skipped.
func (s *stepping) ran(at time.Time) bool {
	is := func(o plan.Occurrence) bool { return o.At.Equal(at) && o.State != plan.OccurrenceSkipped }
	return slices.ContainsFunc(s.Open, is) || slices.ContainsFunc(s.Last, is)
}

func (s *stepping) skip(o plan.Occurrence, reason string, args ...any) {
	if !s.knows(o.At) {
		o.State, o.Reason, o.Ended = plan.OccurrenceSkipped, fmt.Sprintf(reason, args...), s.now
		s.end(o)
	}
}

// skipMissed skips all missed instants, and keeps the latest one.
func (s *stepping) skipMissed(v ScheduleView) {
	before := ""
	switch {
	case v.More:
		before = fmt.Sprintf(", nor to at least %d before it", v.Before)
	case v.Before > 0:
		before = fmt.Sprintf(", nor to %d before it", v.Before)
	}
	if !s.knows(v.Missed) {
		s.Tally.Skipped += v.Before
	}
	s.skip(plan.Occurrence{At: v.Missed}, "no node came to it within a minute%s", before)
}

// decide decides an instant by Overlap. The occurrence before is one that has not ended. A backfill
// holds up an instant of the timetable, and does not take its place.
func (s *stepping) decide(o plan.Occurrence) {
	if s.knows(o.At) {
		return
	}
	o.State = plan.OccurrenceStarting
	if len(s.Open) == 0 || s.Overlap == plan.OverlapAllow {
		s.Open = append(s.Open, o)
		return
	}
	before := plan.Occurrence{Kind: plan.ByBackfill}
	for i := range s.Open {
		if s.Open[i].Kind != plan.ByBackfill {
			before = s.Open[i]
		}
	}
	switch s.Overlap {
	case plan.OverlapQueue:
		if waiting := s.waiting(); waiting >= plan.MostWaiting {
			s.skip(o, "%d wait already", waiting)
			return
		}
	case plan.OverlapReplace:
		for i := len(s.Open) - 1; i >= 0; i-- {
			if is := s.Open[i]; is.State == plan.OccurrenceWaiting {
				s.Open = slices.Delete(s.Open, i, i+1)
				s.skip(is, "that of %s took its place", o.At.UTC().Format(time.RFC3339))
			} else {
				s.Open[i].Stop = is.Kind != plan.ByBackfill
			}
		}
	default:
		if before.Kind != plan.ByBackfill {
			s.skip(o, "that of %s has not ended", before.At.UTC().Format(time.RFC3339))
			return
		}
	}
	o.State = plan.OccurrenceWaiting
	s.Open = append(s.Open, o)
}

func (s *stepping) waiting() (n int) {
	for i := range s.Open {
		if s.Open[i].State == plan.OccurrenceWaiting {
			n++
		}
	}
	return n
}

// fill takes instants of the first span: one if nothing has to end before, or all that the view has if
// occurrences may overlap.
func (s *stepping) fill(v ScheduleView) {
	if s.Paused != nil || len(s.Backfills) == 0 || s.Overlap != plan.OverlapAllow && len(s.Open) > 0 {
		return
	}
	s.Backfills = slices.Clone(s.Backfills)
	for i, at := range v.Backfill {
		if s.Overlap != plan.OverlapAllow && len(s.Open) > 0 {
			s.Backfills[0].From = v.Backfill[i]
			return
		}
		if !s.ran(at) {
			s.Open = append(s.Open, plan.Occurrence{At: at, Kind: plan.ByBackfill, State: plan.OccurrenceStarting, Decided: s.now.Truncate(time.Millisecond)})
		}
	}
	if v.Left != nil {
		s.Backfills[0] = *v.Left
	} else {
		s.Backfills = s.Backfills[1:]
	}
}

// promote has the first occurrence that waits start once nothing runs. While the schedule is paused,
// only what a person wanted to run starts.
func (s *stepping) promote() {
	if n := s.waiting(); n == 0 || n < len(s.Open) {
		return
	}
	i := slices.IndexFunc(s.Open, func(o plan.Occurrence) bool { return s.Paused == nil || o.Kind == plan.ByRun })
	if i >= 0 {
		s.Open[i].State = plan.OccurrenceStarting
	}
}

// look returns when a node is to look at the schedule again, whatever its timetable says.
func (s *stepping) look() time.Time {
	soon := len(s.Backfills) > 0 && s.Paused == nil
	if len(s.Open) == 0 && !soon {
		return time.Time{}
	}
	oldest := s.now
	for i := range s.Open {
		o := &s.Open[i]
		switch {
		case o.State == plan.OccurrenceStarting:
			return s.now
		case o.State == plan.OccurrenceWaiting && s.Paused != nil && o.Kind != plan.ByRun: // it waits for the end of the pause
		case o.State == plan.OccurrenceWaiting, o.Stop:
			soon = true
		case o.Begun.Before(oldest):
			oldest = o.Begun
		}
	}
	if soon {
		return s.now.Add(lookSoon)
	}
	return s.now.Add(min(max(s.now.Sub(oldest), lookLater), lookLatest))
}

// OccurrenceOfTask is how the occurrence of a task that has finished ended.
func OccurrenceOfTask(t *plan.Task) plan.OccurrenceState {
	switch t.Status {
	case plan.Succeeded:
		return plan.OccurrenceSucceeded
	case plan.Cancelled:
		return plan.OccurrenceCancelled
	}
	return plan.OccurrenceFailed
}

// OccurrenceOfPlan is how the occurrence of a plan that has ended ended.
func OccurrenceOfPlan(p *plan.Plan) plan.OccurrenceState {
	switch p.State {
	case plan.PlanSucceeded:
		return plan.OccurrenceSucceeded
	case plan.PlanFailed:
		return plan.OccurrenceFailed
	}
	return plan.OccurrenceCancelled
}
