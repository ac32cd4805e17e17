package planfile

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/seed-1177d267/sluice/internal/timetable"
	"github.com/seed-1177d267/sluice/plan"
)

// aSchedule is the schedule of a plan while it is read.
type aSchedule struct {
	r *reader
	plan.ScheduleSettings
}

var scheduleHints = map[string]string{
	"timezone": "write zone:", "tz": "write zone:", "start": "write from:", "start_date": "write from:", "end": "write until:", "end_date": "write until:",
	"interval": "write every:", "catchup": "write missed: one or skip", "concurrency": "write overlap: skip, queue, replace or allow",
	"concurrencyPolicy": "write overlap: skip, queue, replace or allow", "exclude": "write except:",
}

func oneWord(want string, words ...string) *schema {
	return &schema{Type: []string{"string"}, Enum: words, want: want}
}

// scheduleKeys are the keys of a schedule.
func scheduleKeys() *table[*aSchedule] {
	word := func(name string, to func(*aSchedule) *string) func(*aSchedule, *yaml.Node) {
		return func(s *aSchedule, n *yaml.Node) { *to(s), _ = s.r.constant(n, name) }
	}
	policy := func(name string, to func(*aSchedule) *string, known []string) func(*aSchedule, *yaml.Node) {
		return func(s *aSchedule, n *yaml.Node) {
			if *to(s) = n.Value; !slices.Contains(known, n.Value) {
				s.r.add(fault{at: s.r.at(n), text: fmt.Sprintf("%s has no word %q", name, n.Value), word: n.Value, known: known, none: "; it is one of " + strings.Join(known, ", ")})
			}
		}
	}
	instant := func(name string, to func(*aSchedule) *time.Time) func(*aSchedule, *yaml.Node) {
		return func(s *aSchedule, n *yaml.Node) {
			zone, err := timetable.LoadZone(s.Zone)
			if err != nil {
				zone = time.UTC // the zone itself is refused
			}
			if *to(s), err = timetable.Instant(n.Value, zone); err != nil {
				s.r.errorf(n, "%s: %v", name, err)
			}
		}
	}
	return newTable("a schedule", scheduleHints,
		key[*aSchedule]{name: "zone", value: textShape.about("The zone of the tz database. Default: UTC."), read: word("zone", func(s *aSchedule) *string { return &s.Zone })},
		key[*aSchedule]{name: "cron", value: textShape.about("A cron line of 5 fields, 6 with seconds first, or 7 with years last."), read: word("cron", func(s *aSchedule) *string { return &s.Cron })},
		key[*aSchedule]{name: "every", value: durationShape.about("An interval of real time in place of a cron line, counted from from."),
			read: func(s *aSchedule, n *yaml.Node) { s.Every = plan.Duration(s.r.duration(n, "every")) }},
		key[*aSchedule]{name: "from", value: textShape.about("The instant at which it begins: RFC 3339, or local time in the zone."), read: instant("from", func(s *aSchedule) *time.Time { return &s.From })},
		key[*aSchedule]{name: "until", value: textShape.about("The instant at which it ends."), read: instant("until", func(s *aSchedule) *time.Time { return &s.Until })},
		key[*aSchedule]{name: "except", value: &schema{Type: []string{"array"}, Items: textShape, want: "a list of days and cron lines, like [2027-12-25]",
			Description: "Days, and what cron lines match, that are left out."},
			read: func(s *aSchedule, n *yaml.Node) {
				for _, c := range n.Content {
					if day, ok := s.r.constant(follow(c), "except"); ok {
						s.Except = append(s.Except, day)
					}
				}
			}},
		key[*aSchedule]{name: "skipped", value: oneWord("run or skip", timetable.Run, timetable.Skip).about("What becomes of a local time that a clock change skips."),
			read: word("skipped", func(s *aSchedule) *string { return &s.Skipped })},
		key[*aSchedule]{name: "repeated", value: oneWord("first, second or both", timetable.First, timetable.Second, timetable.Both).about("When a local time that a clock change repeats fires."),
			read: word("repeated", func(s *aSchedule) *string { return &s.Repeated })},
		key[*aSchedule]{name: "jitter", value: durationShape.about("Each occurrence starts later by a delay below it."),
			read: func(s *aSchedule, n *yaml.Node) { s.Jitter = plan.Duration(s.r.duration(n, "jitter")) }},
		key[*aSchedule]{name: "overlap", value: oneWord("skip, queue, replace or allow", plan.Overlaps()...).
			about("What happens at an instant while the occurrence before has not ended. Default: skip."),
			read: policy("overlap", func(s *aSchedule) *string { return (*string)(&s.Overlap) }, plan.Overlaps())},
		key[*aSchedule]{name: "missed", value: oneWord("one or skip", plan.Misses()...).
			about("Instants that no node came to within a minute: the latest is made up for (one, the default), or none."),
			read: policy("missed", func(s *aSchedule) *string { return (*string)(&s.Missed) }, plan.Misses())},
	)
}

func scheduleShape() *schema {
	s := scheduleKeys().schema()
	s.AnyOf = []*schema{{Required: []string{"cron"}}, {Required: []string{"every"}}}
	s.Not = &schema{Required: []string{"cron", "every"}}
	s.want = "a mapping like {cron: '30 2 * * *', zone: Europe/Berlin}"
	return s
}

// readSchedule reads when the plan starts by itself.
func (r *reader) readSchedule(n *yaml.Node) {
	keys := scheduleKeys()
	s := &aSchedule{r: r}
	found := make([]entry, len(keys.keys))
	all, before := keys.collect(r, n, found), len(r.list)
	keys.apply(r, s, found)
	if found[keys.index["cron"]].k == nil && found[keys.index["every"]].k == nil {
		if all {
			r.errorf(n, "schedule does not say when; add cron, as in {cron: '30 2 * * *'}, or every, as in {every: 90m}")
		}
		return
	}
	if len(r.list) > before { // a value is wrong that all others may depend on
		return
	}
	settings := timetable.SettingsOf(s.Timetable)
	if settings.Every != 0 && settings.From.IsZero() {
		settings.From = time.Unix(0, 0) // else when it is applied
	}
	t, err := timetable.New(settings)
	if err == nil && t.Fires(time.Now()) != nil {
		err = t.Fires(time.Unix(0, 0)) // a plan whose schedule is over is valid
	}
	if problems, ok := errors.AsType[plan.Problems](err); ok {
		for _, p := range problems {
			at := n
			if i, ok := keys.index[p.Key]; ok && found[i].v != nil {
				at = follow(found[i].v)
			}
			r.add(fault{at: r.at(at), text: p.Message, word: p.Word, known: p.Known})
		}
		return
	}
	r.spec.Schedule = &s.ScheduleSettings
}
