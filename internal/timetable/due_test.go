package timetable_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/timetable"
)

func TestDue(t *testing.T) {
	at := func(word string) time.Time {
		t.Helper()
		if word == "" {
			return time.Time{}
		}
		v, err := time.Parse(time.DateTime, word)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	short := func(v time.Time) string {
		if v.IsZero() {
			return "-"
		}
		return v.UTC().Format("2T15:04:05")
	}
	for _, c := range []struct{ name, cron, cursor, now, want string }{
		{"an instant that came", "* * * * *", "2027-01-02 10:00:00", "2027-01-02 10:01:00", "- 2T10:01:00 2T10:01:00 2T10:02:00"},
		{"none that came", "* * * * *", "2027-01-02 10:00:00", "2027-01-02 10:00:59", "-  2T10:00:00 2T10:01:00"},
		{"each of the last minute", "*/20 * * * * *", "2027-01-02 10:00:00", "2027-01-02 10:01:00", "- 2T10:00:20,2T10:00:40,2T10:01:00 2T10:01:00 2T10:01:20"},
		{"the latest before that", "0 * * * *", "2027-01-01 10:00:00", "2027-01-02 10:30:00", "2T10:00:00  2T10:29:00 2T11:00:00"},
		{"after years", "0 0 4 1 * *", "2020-01-01 00:00:00", "2027-01-02 10:30:00", "1T04:00:00  2T10:29:00 1T04:00:00"},
		{"after years of seconds", "* * * * * *", "2007-01-01 00:00:00", "2027-01-02 10:30:00", ""},
		{"no more", "0 0 0 1 1 * 2027", "2027-01-02 00:00:00", "2027-01-02 10:00:00", "-  2T09:59:00 -"},
		{"a clock that was set back", "* * * * *", "2027-01-02 12:00:00", "2027-01-02 10:00:30", "-  2T10:00:30 2T10:01:00"},
	} {
		t.Run(c.name, func(t *testing.T) {
			table, err := timetable.New(timetable.Settings{Cron: c.cron})
			if err != nil {
				t.Fatal(err)
			}
			d := table.Due("x", at(c.cursor), at(c.now))
			var due []string
			for _, v := range d.Now {
				due = append(due, short(v))
			}
			if c.want == "" { // as many as a minute has, and the one before
				if len(due) != 60 || short(d.Missed) != "2T10:29:00" {
					t.Errorf("%d are due, missed is %s", len(due), short(d.Missed))
				}
				return
			}
			if got := strings.TrimSpace(fmt.Sprintf("%s %s %s %s", short(d.Missed), strings.Join(due, ","), short(d.Cursor), short(d.Next))); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestAnInstantIsDueWithItsJitter(t *testing.T) {
	table, err := timetable.New(timetable.Settings{Cron: "* * * * *", Jitter: 50 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	cursor := time.Date(2027, 1, 2, 10, 0, 0, 0, time.UTC)
	first := cursor.Add(time.Minute)
	next := first.Add(table.Delay("x", first))
	if next.Equal(first) {
		t.Fatal("this instant has no jitter: choose another one")
	}
	if d := table.Due("x", cursor, next.Add(-1)); len(d.Now) != 0 || !d.Next.Equal(next) || !d.Cursor.Equal(cursor) {
		t.Errorf("before its jitter is over: %+v", d)
	}
	if d := table.Due("x", cursor, next); len(d.Now) != 1 || !d.Now[0].Equal(first) || !d.Cursor.Equal(first) {
		t.Errorf("when its jitter is over: %+v", d)
	}
}

func TestJitterOvertakes(t *testing.T) {
	for _, c := range []struct {
		name, cron string
		jitter     time.Duration
		want       bool
	}{
		{"no jitter", "* * * * *", 0, false},
		{"jitter as long as the interval", "* * * * *", time.Minute, false},
		{"jitter longer than the interval", "* * * * *", time.Minute + time.Millisecond, true},
		{"two instants that are close", "0,5 4 * * *", 10 * time.Minute, true},
		{"one instant a day", "0 4 * * *", 10 * time.Hour, false},
		{"a last instant", "0 0 4 2 1 * 2027", 10 * time.Hour, false},
	} {
		table, err := timetable.New(timetable.Settings{Cron: c.cron, Jitter: c.jitter})
		if err != nil {
			t.Fatal(err)
		}
		if got := table.Overtakes(time.Date(2027, 1, 2, 0, 0, 0, 0, time.UTC)); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestWithin(t *testing.T) {
	table, err := timetable.New(timetable.Settings{Cron: "0 * * * *"})
	if err != nil {
		t.Fatal(err)
	}
	from := time.Date(2027, 1, 2, 10, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		hours, most, want int
		more              bool
	}{{0, 5, 1, false}, {4, 5, 5, false}, {5, 5, 5, true}, {1000, 3, 3, true}} {
		all, more := table.Within(from, from.Add(time.Duration(c.hours)*time.Hour), c.most)
		if len(all) != c.want || more != c.more || !all[0].Equal(from) {
			t.Errorf("%d hours, at most %d: %d, more %v", c.hours, c.most, len(all), more)
		}
	}
}
