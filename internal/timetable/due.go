package timetable

import (
	"time"

	"github.com/seed-1177d267/sluice/plan"
)

// SettingsOf returns the timetable of a schedule as Settings.
func SettingsOf(t plan.Timetable) Settings {
	return Settings{
		Cron: t.Cron, Every: time.Duration(t.Every), Except: t.Except, Zone: t.Zone, Skipped: t.Skipped, Repeated: t.Repeated,
		Jitter: time.Duration(t.Jitter), From: t.From, Until: t.Until,
	}
}

// Late is how late an occurrence may start. An instant that is longer ago was missed.
const Late = time.Minute

// A Due is which instants of a timetable have come.
type Due struct {
	Missed time.Time   // the latest that is more than Late ago; zero: there is none
	Now    []time.Time // the others, oldest first
	Cursor time.Time   // every instant up to it is in Now, or is Missed or before it
	Next   time.Time   // when the next instant comes, with its jitter; zero: never
}

// Due returns the instants after the cursor that have come by now, with their jitter, all in UTC. A cursor that
// is more than Late ahead of now belongs to a clock that somebody set back, and counts as now.
func (t *Timetable) Due(schedule string, cursor, now time.Time) Due {
	if cursor.After(now.Add(Late)) {
		cursor = now
	}
	d := Due{Cursor: cursor}
	late := now.Add(-Late)
	if recent := late.Add(-t.jitter); recent.After(cursor) {
		d.Missed = t.latest(cursor, recent)
		d.Cursor = recent
	}
	for o := range t.fires(d.Cursor) {
		at := o.At.Add(t.Delay(schedule, o.At))
		if at.After(now) {
			d.Next = at.UTC()
			break
		}
		if at.Before(late) {
			d.Missed = o.At.UTC()
		} else {
			d.Now = append(d.Now, o.At.UTC())
		}
		d.Cursor = o.At.UTC()
	}
	return d
}

// Overtakes reports whether the jitter can start an occurrence before that of an earlier instant. It
// looks at the next 100 instants.
func (t *Timetable) Overtakes(after time.Time) bool {
	var last time.Time
	n := 0
	for o := range t.fires(after) {
		if n++; n > 1 && o.At.Sub(last) < t.jitter {
			return true
		} else if n == 100 || t.jitter == 0 {
			return false
		}
		last = o.At
	}
	return false
}

// fires returns the occurrences after an instant that no policy drops.
func (t *Timetable) fires(after time.Time) func(yield func(Occurrence) bool) {
	return func(yield func(Occurrence) bool) {
		for o := range t.After(after) {
			if o.Change != Dropped && !yield(o) {
				return
			}
		}
	}
}

// latest returns the last instant after one instant and up to another; zero: there is none. It looks
// at ranges that double, so that it is quick for a long absence of a timetable that fires often.
func (t *Timetable) latest(after, upTo time.Time) (last time.Time) {
	for span := Late; ; span *= 2 {
		from := upTo.Add(-span)
		if from.Before(after) || span > upTo.Sub(after) {
			from = after
		}
		for o := range t.fires(from) {
			if o.At.After(upTo) {
				break
			}
			last = o.At.UTC()
		}
		if !last.IsZero() || !from.After(after) {
			return last
		}
	}
}

// Within returns the instants from one instant on and up to another, at most so many, and whether
// there are more.
func (t *Timetable) Within(from, to time.Time, most int) (all []time.Time, more bool) {
	for o := range t.fires(from.Add(-1)) {
		switch {
		case o.At.After(to):
			return all, false
		case len(all) == most:
			return all, true
		}
		all = append(all, o.At.UTC())
	}
	return all, false
}
