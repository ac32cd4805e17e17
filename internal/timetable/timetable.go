// Package timetable owns the instants of a schedule. It leads from a cron line or an interval to
// instants, over all changes of the clock of a zone. It knows no store, no clock of its own, and
// nothing of what is to be done at an instant.
//
// The library github.com/netresearch/go-cron parses cron lines and finds the next matching time in
// UTC, where no clock changes. This package leads from that time to instants, because the rules of
// the library for changes of the clock know whole hours only.
package timetable

import (
	"crypto/sha256"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"
	_ "time/tzdata" // a node may have no tz database

	"github.com/seed-1177d267/sluice/plan"
)

// Settings are the settings of a timetable. Either Cron, Fields or Every is set. Each other zero
// value is the default.
type Settings struct {
	Cron   string        // a cron line of 5 fields, 6 with seconds first, or 7 with years last; or @daily and the like
	Fields *Fields       // the seven fields of the OSTE document
	Every  time.Duration // an interval of real time, counted from From on; at least a second

	Except   []string      // cron lines, and days as in 2027-12-25, that are left out; a line of 5 fields leaves out whole minutes
	Zone     string        // a zone of the tz database; default UTC
	Skipped  string        // for a local time that a clock change skips: Run (default) or Skip
	Repeated string        // for a local time that a clock change repeats: First (default), Second or Both
	Jitter   time.Duration // every delay is below it
	From     time.Time     // no instant is before it; in whole milliseconds
	Until    time.Time     // every instant is before it; zero: there is no end
}

// The policies for clock changes.
const (
	Run    = "run"  // once, at the first instant after the gap
	Skip   = "skip" // not at all
	First  = "first"
	Second = "second"
	Both   = "both"
)

// A Change is what a clock change did to an occurrence.
type Change string

// The changes. An occurrence that none befell has none.
const (
	Moved   Change = "moved"   // the clock skips the local time
	Doubled Change = "doubled" // the clock shows the local time twice
	Dropped Change = "dropped" // a policy leaves out this occurrence
)

// An Occurrence is one instant of a timetable.
type Occurrence struct {
	At     time.Time // in the zone of the timetable, without jitter
	Local  time.Time // the local time that was asked for, as a time in UTC
	Change Change
	Reason string // of the change
}

// A Timetable has instants. It does not change, and many goroutines may use it.
type Timetable struct {
	line              *line // nil: every counts
	every             time.Duration
	zone              *time.Location
	except            []*line
	skipped, repeated string
	jitter            time.Duration
	from, until       time.Time
}

// lastYear is the last year of every timetable. The days of the calendar repeat after 400 years, so
// a line that matches nothing until then never does.
const lastYear = 2499

// patience is how many candidates that Except leaves out may follow one another. After so many, a
// timetable has no more instants.
const patience = 20_000

// New makes a timetable. The error is plan.Problems, one for each setting that is wrong. The Key of
// a problem is the name of the setting in small letters.
func New(s Settings) (*Timetable, error) {
	t := &Timetable{every: s.Every, jitter: s.Jitter, from: s.From.Truncate(time.Millisecond), until: s.Until, skipped: s.Skipped, repeated: s.Repeated}
	var all plan.Problems
	wrong := func(key, of string, err error) {
		if err == nil {
			return
		}
		p := plan.Problem{Task: -1, Item: -1, Message: err.Error()}
		_ = errors.As(err, &p)
		p.Key = key
		p.Message = key + of + ": " + p.Message
		all = append(all, p)
	}
	quoted := func(word string) string { return fmt.Sprintf(" %q", word) }

	var err error
	switch ways := count(s.Cron != "", s.Fields != nil, s.Every != 0); {
	case ways != 1:
		wrong("cron", "", errors.New("give either a cron line, or every, an interval of at least a second, with from"))
	case s.Cron != "":
		t.line, err = readLine(s.Cron, "0")
		wrong("cron", quoted(s.Cron), err)
	case s.Fields != nil:
		t.line, err = readFields(*s.Fields)
		wrong("fields", "", err)
	case s.Every < time.Second:
		wrong("every", "", fmt.Errorf("%s is less than a second, the shortest interval", s.Every))
	case s.Every%time.Millisecond != 0:
		wrong("every", "", fmt.Errorf("%s is not in whole milliseconds", s.Every))
	case s.From.IsZero():
		wrong("every", "", errors.New("an interval is counted from an instant on; give from"))
	}
	for _, text := range s.Except {
		l, err := readExcept(text)
		wrong("except", quoted(text), err)
		t.except = append(t.except, l)
	}
	t.zone, err = LoadZone(s.Zone)
	wrong("zone", quoted(s.Zone), err)
	wrong("skipped", quoted(s.Skipped), oneOf(&t.skipped, Run, Skip))
	wrong("repeated", quoted(s.Repeated), oneOf(&t.repeated, First, Second, Both))
	if s.Jitter < 0 {
		wrong("jitter", "", fmt.Errorf("%s is less than nothing", s.Jitter))
	}
	if !s.Until.IsZero() && !s.From.Before(s.Until) {
		wrong("until", "", errors.New("it is not after from"))
	}
	if len(all) > 0 {
		return nil, all
	}
	return t, nil
}

func count(which ...bool) (n int) {
	for _, is := range which {
		if is {
			n++
		}
	}
	return n
}

// oneOf refuses a word that is not one of several. An empty word becomes the first of them.
func oneOf(word *string, words ...string) error {
	if *word == "" {
		*word = words[0]
	}
	for _, w := range words {
		if *word == w {
			return nil
		}
	}
	return unknown(*word, words, "it is one of %s", strings.Join(words, ", "))
}

// readExcept reads a day or a cron line. A line of five fields matches every second of its minutes.
func readExcept(text string) (*line, error) {
	if strings.Count(text, "-") == 2 && !strings.Contains(text, " ") {
		d, err := time.Parse(time.DateOnly, text)
		switch impossible := impossibleTime(err); {
		case impossible != "":
			return nil, fmt.Errorf("there is no such day: %s", impossible)
		case err != nil:
			return nil, errors.New("it is not a day, as in 2027-12-25")
		}
		text = d.Format("* * * 2 1 * 2006")
	}
	return readLine(text, "*")
}

//go:embed zones.txt
var zones string

// Zones returns the names of the zones of the tz database.
func Zones() []string { return strings.Fields(zones) }

// LoadZone returns a zone of the tz database by its name; UTC if the name is empty. It never
// returns the zone of the machine. The tz database of the machine comes before the one in the
// binary.
func LoadZone(name string) (*time.Location, error) {
	zone, err := time.LoadLocation(name)
	if err != nil || name == "Local" {
		return nil, unknown(name, Zones(), "it is not a zone of the tz database, as in Europe/Berlin or UTC")
	}
	return zone, nil
}

// Zone returns the zone of the timetable.
func (t *Timetable) Zone() *time.Location { return t.zone }

// Next returns the first occurrence after an instant that no policy drops; false if there is none.
func (t *Timetable) Next(after time.Time) (Occurrence, bool) {
	for o := range t.After(after) {
		if o.Change != Dropped {
			return o, true
		}
	}
	return Occurrence{}, false
}

// After returns all occurrences after an instant, in their order, also those that a policy drops.
// No two occurrences that are not dropped have the same instant.
func (t *Timetable) After(after time.Time) iter.Seq[Occurrence] {
	from := after.Add(1)
	if t.from.After(from) {
		from = t.from
	}
	return func(yield func(Occurrence) bool) {
		until := func(o Occurrence) bool { return (t.until.IsZero() || o.At.Before(t.until)) && yield(o) }
		if t.line == nil {
			t.byInterval(from, until)
		} else {
			t.byClock(from, until)
		}
	}
}

// YearsPassed is the reason of Fires for a timetable that is about years, all of which have passed.
const YearsPassed = "its years have passed"

// Fires refuses a timetable that has no instant after now, with the reason.
func (t *Timetable) Fires(now time.Time) error {
	if _, ok := t.Next(now); ok {
		return nil
	}
	first := now
	if t.from.After(first) {
		first = t.from
	}
	reason := "skipped, repeated and except leave out every instant"
	switch {
	case !t.until.IsZero() && !now.Before(t.until):
		reason = "until has passed"
	case first.Year() > lastYear:
		reason = fmt.Sprintf("it has no instant after the year %d", lastYear)
	case t.line != nil && t.line.next(time.Unix(0, 0).UTC()).IsZero():
		reason = "no year has such a day"
	case t.line != nil && t.line.next(wall(now, -24*time.Hour)).IsZero():
		reason = YearsPassed
	case t.line != nil && t.line.next(wall(first, -24*time.Hour)).IsZero():
		reason = "no year after from has such a day"
	case !t.until.IsZero():
		reason = "it has no instant before until"
	}
	return plan.Problems{{Task: -1, Item: -1, Key: "cron", Message: "the schedule never fires: " + reason}}
}

// Delay returns the jitter of an instant: at least 0, below the bound, in whole milliseconds. It
// follows from the name of the schedule and the instant, so every node and every version of Sluice
// computes the same delay.
func (t *Timetable) Delay(schedule string, at time.Time) time.Duration {
	if t.jitter == 0 {
		return 0
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", schedule, at.UnixMilli()))
	return time.Duration(binary.BigEndian.Uint64(sum[:]) % uint64(t.jitter)).Truncate(time.Millisecond)
}
