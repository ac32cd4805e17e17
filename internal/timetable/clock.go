package timetable

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"
)

// A stretch is the time between two changes of a clock, or less. All its instants have one offset
// to UTC.
type stretch struct {
	start, end            time.Time     // zero: it has no start, or no end
	offset, before, after time.Duration // of the stretch and of its neighbours
}

func stretchAt(at time.Time, zone *time.Location) stretch {
	offset := func(at time.Time) time.Duration {
		_, seconds := at.In(zone).Zone()
		return time.Duration(seconds) * time.Second
	}
	s := stretch{offset: offset(at)}
	s.before, s.after = s.offset, s.offset
	s.start, s.end = at.In(zone).ZoneBounds()
	if !s.end.IsZero() && !s.end.After(at) {
		// Far in the future, Go ends a stretch 365 days after the year began, also in a leap year and for
		// the instants of the day after. The clock of no zone changes on that day.
		s.end = at.Add(24 * time.Hour)
	}
	if !s.start.IsZero() {
		s.before = offset(s.start.Add(-time.Second))
	}
	if !s.end.IsZero() {
		s.after = offset(s.end)
	}
	return s
}

// Instant reads an instant: RFC 3339, or local time in a zone. If the clock skips the local time,
// it is the first instant after the gap. If the clock shows the local time twice, it is the first
// time.
func Instant(text string, zone *time.Location) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, text)
	if err == nil {
		return at, nil
	}
	impossible := impossibleTime(err)
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04", time.DateOnly} {
		local, err := time.Parse(layout, text)
		if err != nil {
			impossible = cmp.Or(impossible, impossibleTime(err))
			continue
		}
		s := stretchAt(local.Add(-24*time.Hour), zone) // clocks are less than a day apart from UTC
		for !s.end.IsZero() && !local.Add(-s.offset).Before(s.end) {
			s = stretchAt(s.end, zone)
		}
		if at = local.Add(-s.offset); at.Before(s.start) {
			at = s.start
		}
		return at.In(zone), nil
	}
	if impossible != "" {
		return time.Time{}, fmt.Errorf("there is no such time: %s", impossible)
	}
	return time.Time{}, ErrNoTime
}

// ErrNoTime is the error of Instant for a text that has not the form of a time.
var ErrNoTime = errors.New("it is a time, as in 2027-03-28T02:30:00Z, 2027-03-28T02:30 or 2027-03-28")

// impossibleTime says which part of a time is too large for it, if that is the error of time.Parse.
// It returns "" for a text that is no time.
func impossibleTime(err error) string {
	var broken *time.ParseError
	if !errors.As(err, &broken) || !strings.HasSuffix(broken.Message, " out of range") {
		return ""
	}
	what := strings.TrimPrefix(broken.Message, ": ")
	if month, err := time.Parse("2006-01", broken.Value[:min(len(broken.Value), len("2006-01"))]); err == nil && strings.HasPrefix(what, "day") {
		what += fmt.Sprintf(", because %s has %d days", month.Format("January 2006"), month.AddDate(0, 1, -1).Day())
	}
	return what
}

// wall returns what a clock shows at an instant, as a time in UTC.
func wall(at time.Time, offset time.Duration) time.Time { return at.UTC().Add(offset) }

// byClock leads from wall times to instants. It yields all occurrences at or after an instant, also
// those that the policies drop.
//
// A wall time that a clock change skips belongs to the instant of the change. All wall times that
// one change skips are one occurrence. A wall time that a change repeats has two instants. Where
// the hour of the line begins with *, real time counts: an instant is one if its wall time matches.
func (t *Timetable) byClock(from time.Time, yield func(Occurrence) bool) {
	from = from.Add(time.Second - 1).Truncate(time.Second)
	for {
		s := stretchAt(from, t.zone)
		if from.Equal(s.start) && s.before < s.offset && !t.line.anyHour {
			skipped := t.nextWall(wall(s.start, s.before))
			if !skipped.IsZero() && skipped.Before(wall(s.start, s.offset)) {
				o := t.skips(s, skipped)
				if !yield(o) {
					return
				}
				if o.Change == Moved { // the instant is taken
					from = from.Add(time.Second)
				}
			}
		}
		for local := t.nextWall(wall(from, s.offset)); !local.IsZero(); local = t.nextWall(local.Add(time.Second)) {
			at := local.Add(-s.offset)
			if !s.end.IsZero() && !at.Before(s.end) {
				break
			}
			if !yield(t.shows(s, at, local)) {
				return
			}
		}
		if s.end.IsZero() {
			return
		}
		// A line that matches rarely leaps over the stretches that have none of its times. Clocks are
		// less than a day apart from UTC.
		local := t.nextWall(wall(s.end, min(s.offset, s.after)))
		if local.IsZero() {
			return
		}
		from = s.end
		if leap := local.Add(-24 * time.Hour); leap.After(from) {
			from = leap
		}
	}
}

// nextWall returns the first wall time at or after from that the line matches and Except does not
// leave out; zero if there is none.
func (t *Timetable) nextWall(from time.Time) time.Time {
	for range patience {
		local := t.line.next(from)
		if local.IsZero() {
			return local
		}
		rest := t.leftOut(local)
		if rest == 0 {
			return local
		}
		from = local.Add(rest)
	}
	return time.Time{}
}

// leftOut returns for how long Except leaves out wall times from one on; 0 if it does not.
func (t *Timetable) leftOut(local time.Time) (rest time.Duration) {
	for _, l := range t.except {
		if l.matches(local) {
			rest = max(rest, local.Truncate(l.covers).Add(l.covers).Sub(local))
		}
	}
	return rest
}

// byInterval yields all occurrences of an interval at or after an instant.
func (t *Timetable) byInterval(from time.Time, yield func(Occurrence) bool) {
	start, every := t.from.UnixMilli(), t.every.Milliseconds()
	for left := 0; left < patience; {
		n := max(0, (from.Add(time.Millisecond-1).UnixMilli()-start+every-1)/every)
		at := time.UnixMilli(start + n*every).In(t.zone)
		if at.Year() > lastYear {
			return
		}
		s := stretchAt(at, t.zone)
		o := Occurrence{At: at, Local: wall(at, s.offset)}
		rest := t.leftOut(o.Local)
		switch {
		case rest > 0: // until the clock changes, at most: then the wall time is another one
			left++
			from = at.Add(rest)
			if !s.end.IsZero() && from.After(s.end) {
				from = s.end
			}
		case !yield(o):
			return
		default:
			left = 0
			from = at.Add(t.every)
		}
	}
}

// skips is the occurrence of a wall time that the change at the start of a stretch skips.
func (t *Timetable) skips(s stretch, local time.Time) Occurrence {
	o := Occurrence{At: s.start.In(t.zone), Local: local, Change: Moved, Reason: fmt.Sprintf("the clock skips %s: it goes from %s to %s",
		text(local, time.Time{}), text(wall(s.start, s.before), local), text(wall(s.start, s.offset), local))}
	if t.skipped == Skip {
		o.Change = Dropped
	}
	return o
}

// shows is the occurrence of a wall time that the clock shows in a stretch, perhaps not only there.
func (t *Timetable) shows(s stretch, at, local time.Time) Occurrence {
	o := Occurrence{At: at.In(t.zone), Local: local}
	showing, drop := "", false
	switch {
	case t.line.anyHour:
	case s.before > s.offset && at.Before(s.start.Add(s.before-s.offset)):
		showing, drop = "second", t.repeated == First
	case s.after < s.offset && !at.Before(s.end.Add(s.after-s.offset)):
		showing, drop = "first", t.repeated == Second
	}
	if showing != "" {
		o.Change, o.Reason = Doubled, fmt.Sprintf("the clock shows %s twice; this is the %s time", text(local, time.Time{}), showing)
	}
	if drop {
		o.Change = Dropped
	}
	return o
}

// text writes a wall time, without its day if that is a day already named.
func text(local, named time.Time) string {
	layout := "2006-01-02 15:04"
	if local.Format(time.DateOnly) == named.Format(time.DateOnly) {
		layout = "15:04"
	}
	if local.Second() != 0 {
		layout += ":05"
	}
	return local.Format(layout)
}
