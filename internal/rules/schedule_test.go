package rules_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

// clock returns a time of one day, as in 9:30 or 10:30:01.
func clock(t *testing.T, word string) time.Time {
	t.Helper()
	if strings.Count(word, ":") == 1 {
		word += ":00"
	}
	at, err := time.Parse("2006-01-02 15:04:05", "2027-01-02 "+strings.Repeat("0", len("10:00:00")-len(word))+word)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// occurrences reads occurrences, each as in 10:30=started, with a ! after one that is replaced, and /b
// after one of a backfill.
func occurrences(t *testing.T, words string) (all []plan.Occurrence) {
	for word := range strings.FieldsSeq(words) {
		at, state, _ := strings.Cut(word, "=")
		state, stop := strings.CutSuffix(state, "!")
		state, backfill := strings.CutSuffix(state, "/b")
		o := plan.Occurrence{At: clock(t, at), State: plan.OccurrenceState(state), Stop: stop}
		if o.State == plan.OccurrenceStarted {
			o.Begun = o.At
		}
		if backfill {
			o.Kind = plan.ByBackfill
		}
		all = append(all, o)
	}
	return all
}

// shown writes occurrences as occurrences reads them.
func shown(all []plan.Occurrence) string {
	words := make([]string, len(all))
	for i, o := range all {
		words[i] = strings.TrimSuffix(o.At.Format(time.TimeOnly), ":00") + "=" + string(o.State)
		if o.Stop {
			words[i] += "!"
		}
		if o.Kind == plan.ByBackfill && o.State != plan.OccurrenceStarting {
			words[i] += "/b"
		}
	}
	return strings.Join(words, " ")
}

func TestStepSchedule(t *testing.T) {
	for _, c := range []struct {
		name     string
		overlap  plan.Overlap
		missed   plan.Missed
		open     string // before
		ended    string // the states that open has meanwhile, one for each, - for none
		skipped  string // the missed instant
		due      string
		paused   bool
		backfill string // the instants of the span, with a + for more

		want, last string
		look       string // from 10:00
	}{
		{name: "an instant starts an occurrence", overlap: "skip", due: "10:00", want: "10:00=starting", look: "0s"},
		{name: "nothing is due", overlap: "skip"},
		{name: "what ended makes room", overlap: "skip", open: "9:59=started", ended: "succeeded", due: "10:00", want: "10:00=starting", last: "09:59=succeeded", look: "0s"},
		{name: "skip: not while another runs", overlap: "skip", open: "9:59=started", due: "10:00", want: "09:59=started", last: "10:00=skipped", look: "1m0s"},
		{name: "skip: one of two", overlap: "skip", due: "9:59:59 10:00", want: "09:59:59=starting", last: "10:00=skipped", look: "0s"},
		{name: "queue: after the one before", overlap: "queue", open: "9:59=started", due: "10:00", want: "09:59=started 10:00=waiting", look: "1s"},
		{name: "queue: once that has ended, however", overlap: "queue", open: "9:58=started 9:59=waiting 10:00=waiting", ended: "failed - -",
			want: "09:59=starting 10:00=waiting", last: "09:58=failed", look: "0s"},
		{name: "replace: the one before is stopped", overlap: "replace", open: "9:59=started", due: "10:00", want: "09:59=started! 10:00=waiting", look: "1s"},
		{name: "replace: the latest takes its place", overlap: "replace", open: "9:58=started! 9:59=waiting", due: "10:00",
			want: "09:58=started! 10:00=waiting", last: "09:59=skipped", look: "1s"},
		{name: "replace: once that has ended", overlap: "replace", open: "9:58=started! 9:59=waiting", ended: "cancelled -", want: "09:59=starting", last: "09:58=cancelled", look: "0s"},
		{name: "allow: both run", overlap: "allow", open: "9:59=started", due: "10:00", want: "09:59=started 10:00=starting", look: "0s"},
		{name: "one: the latest missed instant, once", overlap: "skip", missed: "one", skipped: "9:00", want: "09:00=starting", look: "0s"},
		{name: "one: and those of the last minute", overlap: "allow", missed: "one", skipped: "9:00", due: "9:59:30 10:00", want: "09:00=starting 09:59:30=starting 10:00=starting", look: "0s"},
		{name: "skip: no missed instant", overlap: "skip", missed: "skip", skipped: "9:00", due: "10:00", want: "10:00=starting", last: "09:00=skipped", look: "0s"},
		{name: "no instant twice", overlap: "allow", open: "10:00=started", due: "10:00", want: "10:00=started", look: "10s"},
		{name: "no instant while paused", overlap: "skip", open: "9:59=started", ended: "gone", due: "10:00", skipped: "9:00", paused: true, last: "09:59=gone"},
		{name: "a backfill goes one by one", overlap: "skip", backfill: "8:00 8:01+", want: "08:00=starting", look: "0s"},
		{name: "a backfill waits for what runs", overlap: "queue", open: "9:59=started", backfill: "8:00", want: "09:59=started", look: "1s"},
		{name: "a backfill goes at once if both may run", overlap: "allow", open: "9:59=started", backfill: "8:00 8:01", want: "09:59=started 08:00=starting 08:01=starting", look: "0s"},
		{name: "no backfill while paused", overlap: "skip", paused: true, backfill: "8:00"},
		{name: "skip: an instant waits for a backfill", overlap: "skip", open: "8:00=started/b", due: "9:59:59 10:00", want: "08:00=started/b 09:59:59=waiting", last: "10:00=skipped", look: "1s"},
		{name: "replace: an instant waits for a backfill", overlap: "replace", open: "8:00=started/b", due: "10:00", want: "08:00=started/b 10:00=waiting", look: "1s"},
		{name: "replace: what was stopped is cancelled", overlap: "replace", open: "9:58=started! 9:59=waiting", ended: "failed -", want: "09:59=starting", last: "09:58=cancelled", look: "0s"},
		{name: "an end that only people want is looked for seldom", overlap: "skip", open: "8:00=started", want: "08:00=started", look: "5m0s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := clock(t, "10:00")
			s := plan.Schedule{Open: occurrences(t, c.open), Cursor: clock(t, "9:59")}
			s.Overlap, s.Missed = c.overlap, c.missed
			if c.paused {
				s.Paused = &plan.PausedSchedule{}
			}
			v := rules.ScheduleView{Now: now, Cursor: now, Next: clock(t, "10:01")}
			for word := range strings.FieldsSeq(c.ended) {
				end := rules.OccurrenceEnd{State: plan.OccurrenceState(word), At: now}
				if word == "-" {
					end = rules.OccurrenceEnd{}
				}
				v.Ends = append(v.Ends, end)
			}
			if c.skipped != "" {
				v.Missed = clock(t, c.skipped)
			}
			for word := range strings.FieldsSeq(c.due) {
				v.Due = append(v.Due, clock(t, word))
			}
			span, more := strings.CutSuffix(c.backfill, "+")
			for word := range strings.FieldsSeq(span) {
				v.Backfill = append(v.Backfill, clock(t, word))
			}
			if c.backfill != "" {
				s.Backfills = []plan.Span{{From: v.Backfill[0], To: now}}
			}
			if more {
				v.Left = &plan.Span{From: now, To: now}
			}
			before := fmt.Sprintf("%+v", s)
			got := rules.StepSchedule(s, v)
			if after := fmt.Sprintf("%+v", s); after != before {
				t.Errorf("the schedule that was handed in is\n%s, was\n%s", after, before)
			}
			if shown(got.Open) != c.want || shown(got.Last) != c.last {
				t.Errorf("open is %q, last %q; want %q, %q", shown(got.Open), shown(got.Last), c.want, c.last)
			}
			look := ""
			if !got.Look.IsZero() {
				look = got.Look.Sub(now).String()
			}
			if look != c.look {
				t.Errorf("a node looks again after %q, want %q", look, c.look)
			}
			if got.Next.IsZero() != c.paused || got.Cursor.Equal(now) == c.paused {
				t.Errorf("the next instant is %v, the cursor %v", got.Next, got.Cursor)
			}
		})
	}
}

func TestAHundredOccurrencesWait(t *testing.T) {
	now := clock(t, "10:00")
	s := plan.Schedule{Open: occurrences(t, "9:00=started")}
	s.Overlap = plan.OverlapQueue
	for i := range plan.MostWaiting + 30 {
		s = rules.StepSchedule(s, rules.ScheduleView{Now: now, Due: []time.Time{now.Add(time.Duration(i) * time.Second)}})
	}
	if len(s.Open) != plan.MostWaiting+1 || s.Tally.Skipped != 30 || len(s.Last) != plan.MostLast {
		t.Errorf("%d are open, %d skipped, %d kept", len(s.Open), s.Tally.Skipped, len(s.Last))
	}
	if reason := s.Last[0].Reason; reason != "100 wait already" {
		t.Errorf("one was skipped since %q", reason)
	}
}

func TestWhatWasMadeOfAnOccurrence(t *testing.T) {
	now := clock(t, "10:00")
	s := plan.Schedule{Open: occurrences(t, "9:58=starting 9:59=starting")}
	s.Overlap = plan.OverlapAllow
	begun := s.Open[0]
	begun.State, begun.Begun = plan.OccurrenceStarted, now
	rules.MadeOccurrence(&s, begun, now)
	failed := s.Open[1]
	failed.State, failed.Reason = plan.OccurrenceFailed, "no queue"
	rules.MadeOccurrence(&s, failed, now)
	rules.MadeOccurrence(&s, failed, now) // it is noted already
	if shown(s.Open) != "09:58=started" || shown(s.Last) != "09:59=failed" || s.Tally != (plan.ScheduleTally{Started: 1, Failed: 1}) {
		t.Errorf("open is %s, last %s, %+v", shown(s.Open), shown(s.Last), s.Tally)
	}
	s = rules.StepSchedule(s, rules.ScheduleView{Now: now, Ends: []rules.OccurrenceEnd{{State: plan.OccurrenceSucceeded, At: now}}})
	if !s.Succeeded.Equal(now) || s.Tally.Succeeded != 1 || !s.Look.IsZero() {
		t.Errorf("succeeded is %v, %+v, look %v", s.Succeeded, s.Tally, s.Look)
	}
}

func TestAnOccurrenceHasOneIDEverywhere(t *testing.T) {
	id, err := plan.ParseID("0102030405060708090a0b0c")
	if err != nil {
		t.Fatal(err)
	}
	at := clock(t, "10:00")
	s := plan.ScheduleID{ID: id}
	if got := rules.OccurrenceID(s, at.In(time.FixedZone("x", 3600))); got != rules.OccurrenceID(s, at) || got == rules.OccurrenceID(s, at.Add(time.Millisecond)) || got.Time().Unix() != at.Unix() {
		t.Errorf("the id is %s", got)
	}
	if got := rules.OccurrenceKey(s, at); got != "schedule/0102030405060708090a0b0c/1798884000000" {
		t.Errorf("the key is %s", got)
	}
}
