package timetable

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/plan"
)

// instants returns what a timetable fires between two instants, as in "2027-03-28T01:00Z moved". An
// instant on a full minute has no seconds. A dropped occurrence is in parentheses.
func instants(t *testing.T, s Settings, after, until string) string {
	t.Helper()
	table, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	end := instant(t, until)
	var all []string
	for o := range table.After(instant(t, after)) {
		if !o.At.Before(end) {
			break
		}
		text := strings.Replace(o.At.UTC().Format(time.RFC3339), ":00Z", "Z", 1)
		switch {
		case o.Change == Dropped:
			text = "(" + text + ")"
		case o.Change != "":
			text += " " + string(o.Change)
		}
		if (o.Change == "") != (o.Reason == "") {
			t.Errorf("%s: the change %q has the reason %q", text, o.Change, o.Reason)
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

func instant(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// The instants of this test were computed by hand.
func TestClockChanges(t *testing.T) {
	const (
		berlin, newYork, lordHowe = "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"
		saoPaulo, apia            = "America/Sao_Paulo", "Pacific/Apia"
	)
	for _, c := range []struct {
		name         string
		settings     Settings
		after, until string
		want         string
	}{
		{"a skipped time runs at the change", Settings{Cron: "30 2 * * *", Zone: berlin},
			"2027-03-27T12:00:00Z", "2027-03-29T12:00:00Z", "2027-03-28T01:00Z moved, 2027-03-29T00:30Z"},
		{"a skipped time can be skipped", Settings{Cron: "30 2 * * *", Zone: berlin, Skipped: Skip},
			"2027-03-27T12:00:00Z", "2027-03-29T12:00:00Z", "(2027-03-28T01:00Z), 2027-03-29T00:30Z"},
		{"all times that one change skips run once", Settings{Cron: "*/10 2 * * *", Zone: berlin},
			"2027-03-27T12:00:00Z", "2027-03-28T12:00:00Z", "2027-03-28T01:00Z moved"},
		{"a skipped time and a time at the change run once", Settings{Cron: "0 2,3 * * *", Zone: berlin},
			"2027-03-27T12:00:00Z", "2027-03-28T12:00:00Z", "2027-03-28T01:00Z moved"},
		{"a time at the change runs where a skipped time is skipped", Settings{Cron: "0 2,3 * * *", Zone: berlin, Skipped: Skip},
			"2027-03-27T12:00:00Z", "2027-03-28T12:00:00Z", "(2027-03-28T01:00Z), 2027-03-28T01:00Z"},
		{"a repeated time runs the first time", Settings{Cron: "30 2 * * *", Zone: berlin},
			"2027-10-30T12:00:00Z", "2027-11-01T12:00:00Z", "2027-10-31T00:30Z doubled, (2027-10-31T01:30Z), 2027-11-01T01:30Z"},
		{"a repeated time can run the second time", Settings{Cron: "30 2 * * *", Zone: berlin, Repeated: Second},
			"2027-10-30T12:00:00Z", "2027-10-31T12:00:00Z", "(2027-10-31T00:30Z), 2027-10-31T01:30Z doubled"},
		{"a repeated time can run both times", Settings{Cron: "30 2 * * *", Zone: berlin, Repeated: Both},
			"2027-10-30T12:00:00Z", "2027-10-31T12:00:00Z", "2027-10-31T00:30Z doubled, 2027-10-31T01:30Z doubled"},
		{"New York repeats an hour", Settings{Cron: "30 1 * * *", Zone: newYork, Repeated: Both},
			"2027-11-06T12:00:00Z", "2027-11-07T12:00:00Z", "2027-11-07T05:30Z doubled, 2027-11-07T06:30Z doubled"},
		{"Lord Howe skips half an hour", Settings{Cron: "15 2 * * *", Zone: lordHowe},
			"2027-10-02T00:00:00Z", "2027-10-03T00:00:00Z", "2027-10-02T15:30Z moved"},
		{"Lord Howe repeats half an hour", Settings{Cron: "45 1 * * *", Zone: lordHowe, Repeated: Both},
			"2027-04-03T00:00:00Z", "2027-04-04T00:00:00Z", "2027-04-03T14:45Z doubled, 2027-04-03T15:15Z doubled"},
		{"Sao Paulo has no midnight", Settings{Cron: "0 0 4 11 *", Zone: saoPaulo},
			"2018-11-03T00:00:00Z", "2018-11-05T00:00:00Z", "2018-11-04T03:00Z moved"},
		{"Sao Paulo begins the day at one", Settings{Cron: "0 1 4 11 *", Zone: saoPaulo},
			"2018-11-03T00:00:00Z", "2018-11-05T00:00:00Z", "2018-11-04T03:00Z"},
		{"Apia has no such day", Settings{Cron: "0 12 30 12 *", Zone: apia},
			"2011-12-29T00:00:00Z", "2012-01-01T00:00:00Z", "2011-12-30T10:00Z moved"},
		{"29 February comes every four years", Settings{Cron: "0 12 29 2 *"},
			"2027-01-01T00:00:00Z", "2037-01-01T00:00:00Z", "2028-02-29T12:00Z, 2032-02-29T12:00Z, 2036-02-29T12:00Z"},
		{"29 February does not come in 2100", Settings{Cron: "0 12 29 2 *"},
			"2096-02-29T12:00:00Z", "2105-01-01T00:00:00Z", "2104-02-29T12:00Z"},
		{"a Sunday that is 29 February is rare", Settings{Cron: "0 0 29 2 */7", Zone: berlin},
			"2088-01-01T00:00:00Z", "2130-01-01T00:00:00Z", "2088-02-28T23:00Z, 2128-02-28T23:00Z"},
		{"the last second of a year", Settings{Cron: "59 59 23 31 12 *", Zone: newYork},
			"2027-06-01T00:00:00Z", "2029-06-01T00:00:00Z", "2028-01-01T04:59:59Z, 2029-01-01T04:59:59Z"},
		{"an instant is after the one that was given", Settings{Cron: "59 59 23 31 12 *"},
			"2027-12-31T23:59:59Z", "2028-12-31T23:59:59Z", ""},
		{"the year ends a line", Settings{Cron: "0 0 12 1 1 * 2027,2030-2031", Zone: "UTC"},
			"2026-06-01T00:00:00Z", "2040-01-01T00:00:00Z", "2027-01-01T12:00Z, 2030-01-01T12:00Z, 2031-01-01T12:00Z"},
		{"the last year is this one, and the clock repeats its last time", Settings{Cron: "0 30 2 31 10 * 2027", Zone: berlin, Repeated: Second},
			"2027-10-31T00:45:00Z", "2040-01-01T00:00:00Z", "2027-10-31T01:30Z doubled"},
		{"the last day of a leap year far in the future", Settings{Cron: "0 */12 31 12 *", Zone: "America/Chicago"},
			"2044-12-31T00:00:00Z", "2045-12-31T07:00:00Z", "2044-12-31T06:00Z, 2044-12-31T18:00Z, 2045-12-31T06:00Z"},
		{"a day of the month or a day of the week", Settings{Cron: "0 0 1 * mon"},
			"2027-06-01T00:00:00Z", "2027-07-06T00:00:00Z", "2027-06-07T00:00Z, 2027-06-14T00:00Z, 2027-06-21T00:00Z, 2027-06-28T00:00Z, 2027-07-01T00:00Z, 2027-07-05T00:00Z"},
		{"a field that begins with * narrows the other", Settings{Cron: "0 0 */10 * mon"},
			"2027-06-01T00:00:00Z", "2027-07-31T00:00:00Z", "2027-06-21T00:00Z"},
		{"a * that does not begin a field widens", Settings{Cron: "0 0 1 * 1,*"},
			"2027-06-01T00:00:00Z", "2027-06-04T00:00:00Z", "2027-06-02T00:00Z, 2027-06-03T00:00Z"},
		{"a week ends with Sunday", Settings{Cron: "0 0 * * fri-sun"},
			"2027-06-01T00:00:00Z", "2027-06-09T00:00:00Z", "2027-06-04T00:00Z, 2027-06-05T00:00Z, 2027-06-06T00:00Z"},
		{"a day is left out", Settings{Cron: "0 12 * * *", Except: []string{"2027-12-25", "* * 31 12 *"}},
			"2027-12-24T00:00:00Z", "2028-01-01T00:00:00Z", "2027-12-24T12:00Z, 2027-12-26T12:00Z, 2027-12-27T12:00Z, 2027-12-28T12:00Z, 2027-12-29T12:00Z, 2027-12-30T12:00Z"},
		{"a left out month of seconds costs little", Settings{Cron: "* * * * * *", Except: []string{"* * * 12 *"}},
			"2027-11-30T23:59:58Z", "2028-01-01T00:00:01Z", "2027-11-30T23:59:59Z, 2028-01-01T00:00Z"},
		{"a moved time is left out by its own day", Settings{Cron: "0 12 30 12 *", Zone: apia, Except: []string{"2011-12-30"}},
			"2011-12-29T00:00:00Z", "2012-01-01T00:00:00Z", ""},
		{"from and until", Settings{Cron: "0 * * * *", From: instant(t, "2027-01-01T10:00:00Z"), Until: instant(t, "2027-01-01T12:00:00Z")},
			"2020-01-01T00:00:00Z", "2030-01-01T00:00:00Z", "2027-01-01T10:00Z, 2027-01-01T11:00Z"},
		{"an interval counts real time", Settings{Every: 90 * time.Minute, From: instant(t, "2027-03-27T23:30:00Z"), Zone: berlin},
			"2027-03-28T00:00:00Z", "2027-03-28T03:00:00Z", "2027-03-28T01:00Z, 2027-03-28T02:30Z"},
		{"an interval begins with from", Settings{Every: 90 * time.Minute, From: instant(t, "2027-03-27T23:30:00Z")},
			"2026-03-28T00:00:00Z", "2027-03-28T01:00:00Z", "2027-03-27T23:30Z"},
		{"an interval leaves out local days", Settings{Every: 12 * time.Hour, From: instant(t, "2027-03-27T00:00:00Z"), Zone: berlin, Except: []string{"2027-03-28"}},
			"2027-03-27T00:00:00Z", "2027-03-29T12:00:00Z", "2027-03-27T12:00Z, 2027-03-29T00:00Z"},
		{"a line by name", Settings{Cron: "@daily", Zone: berlin},
			"2027-03-28T00:00:00Z", "2027-03-29T00:00:00Z", "2027-03-28T22:00Z"},
		{"the fields of the OSTE document", Settings{Fields: &Fields{Year: "2027", Month: "jun", DayOfWeek: "1", Hour: "6", Minute: "*/30"}},
			"2027-06-01T00:00:00Z", "2027-06-14T06:01:00Z", "2027-06-07T06:00Z, 2027-06-07T06:30Z, 2027-06-14T06:00Z"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := instants(t, c.settings, c.after, c.until); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestInstantsOfLocalTimes(t *testing.T) {
	for _, c := range []struct{ text, zone, want string }{
		{"2027-03-28T02:30:00Z", "Europe/Berlin", "2027-03-28T02:30:00Z"},
		{"2027-03-28T02:30:00+05:30", "UTC", "2027-03-27T21:00:00Z"},
		{"2027-03-28T01:59:59", "Europe/Berlin", "2027-03-28T00:59:59Z"},
		{"2027-03-28T02:30", "Europe/Berlin", "2027-03-28T01:00:00Z"},
		{"2027-03-28T03:00", "Europe/Berlin", "2027-03-28T01:00:00Z"},
		{"2027-10-31T02:30", "Europe/Berlin", "2027-10-31T00:30:00Z"},
		{"2027-10-31T03:00", "Europe/Berlin", "2027-10-31T02:00:00Z"},
		{"2027-10-03T02:15", "Australia/Lord_Howe", "2027-10-02T15:30:00Z"},
		{"2018-11-04", "America/Sao_Paulo", "2018-11-04T03:00:00Z"},
		{"2011-12-30T12:00", "Pacific/Apia", "2011-12-30T10:00:00Z"},
		{"2027-06-01", "Pacific/Kiritimati", "2027-05-31T10:00:00Z"},
		{"2044-12-31T23:59", "America/Chicago", "2045-01-01T05:59:00Z"},
		{"1800-01-01", "Asia/Manila", "1800-01-01T15:56:08Z"},
		{"2027-02-29", "UTC", ""},
		{"2027-01-01T24:00", "UTC", ""},
		{"tomorrow", "UTC", ""},
	} {
		zone, err := LoadZone(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		at, err := Instant(c.text, zone)
		if c.want == "" {
			if err == nil {
				t.Errorf("%s is %s, and should be refused", c.text, at)
			}
			continue
		}
		if got := at.UTC().Format(time.RFC3339); err != nil || got != c.want {
			t.Errorf("%s in %s is %s (%v), want %s", c.text, c.zone, got, err, c.want)
		}
	}
}

func TestAnImpossibleTimeIsNamed(t *testing.T) {
	for text, want := range map[string]string{
		"2099-02-29":           "there is no such time: day out of range, because February 2099 has 28 days",
		"2099-04-31T02:30:00Z": "there is no such time: day out of range, because April 2099 has 30 days",
		"2099-13-01":           "there is no such time: month out of range",
		"2099-12-01T24:30":     "there is no such time: hour out of range",
		"2099-2":               "it is a time, as in",
		"":                     "it is a time, as in",
	} {
		if _, err := Instant(text, time.UTC); !strings.HasPrefix(fmt.Sprint(err), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if _, err := readExcept("2027-02-29"); fmt.Sprint(err) != "there is no such day: day out of range, because February 2027 has 28 days" {
		t.Errorf("a day that is left out: %v", err)
	}
}

func TestNoGapAndNoDoubleWhereTheHourIsAny(t *testing.T) {
	for zone, change := range map[string]string{
		"Europe/Berlin": "2027-03-28T01:00:00Z", "America/New_York": "2027-11-07T06:00:00Z", "Australia/Lord_Howe": "2027-10-02T15:30:00Z",
		"America/Sao_Paulo": "2018-11-04T03:00:00Z", "Pacific/Apia": "2011-12-30T10:00:00Z",
	} {
		t.Run(zone, func(t *testing.T) {
			table, err := New(Settings{Cron: "*/15 * * * *", Zone: zone})
			if err != nil {
				t.Fatal(err)
			}
			last := instant(t, change).Add(-24 * time.Hour)
			for o := range table.After(last) {
				if o.At.Sub(last) != 15*time.Minute || o.Change != "" {
					t.Errorf("%s (%s) follows %s", o.At, o.Change, last)
				}
				if last = o.At; last.After(instant(t, change).Add(24 * time.Hour)) {
					return
				}
			}
		})
	}
}

func TestReasons(t *testing.T) {
	for _, c := range []struct{ line, zone, after, want string }{
		{"30 2 * * *", "Europe/Berlin", "2027-03-27T12:00:00Z", "the clock skips 2027-03-28 02:30: it goes from 02:00 to 03:00"},
		{"5 30 2 * * *", "Europe/Berlin", "2027-10-30T12:00:00Z", "the clock shows 2027-10-31 02:30:05 twice; this is the first time"},
		{"0 12 30 12 *", "Pacific/Apia", "2011-12-01T00:00:00Z", "the clock skips 2011-12-30 12:00: it goes from 00:00 to 2011-12-31 00:00"},
	} {
		table, err := New(Settings{Cron: c.line, Zone: c.zone})
		if err != nil {
			t.Fatal(err)
		}
		if o, ok := table.Next(instant(t, c.after)); !ok || o.Reason != c.want {
			t.Errorf("%s in %s: %q, want %q", c.line, c.zone, o.Reason, c.want)
		}
	}
}

func TestRefusals(t *testing.T) {
	from := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		settings   Settings
		want, near string
	}{
		{Settings{}, "cron: give either a cron line, or every, an interval of at least a second, with from", ""},
		{Settings{Cron: "@daily", Every: time.Hour, From: from}, "cron: give either a cron line, or every, an interval of at least a second, with from", ""},
		{Settings{Cron: "0 25 * * *"}, `cron "0 25 * * *": the hour is "25"; it holds 0 to 23`, ""},
		{Settings{Cron: "0 4 * * mno"}, `cron "0 4 * * mno": the day of week is "mno"; it holds 0 to 7 or sun to sat, where 0 and 7 are Sunday`, "mon"},
		{Settings{Cron: "0 4 * octobre *"}, `cron "0 4 * octobre *": the month is "octobre"; it holds 1 to 12 or jan to dec`, "october"},
		{Settings{Cron: "0 22-2 * * *"}, `cron "0 22-2 * * *": the hour has the range "22-2" upside down; write "22-23,0-2"`, ""},
		{Settings{Cron: "0 4 * * 5-0"}, `cron "0 4 * * 5-0": the day of week has the range "5-0" upside down; write "5-7,0"`, ""},
		{Settings{Cron: "*/90 * * * *"}, `cron "*/90 * * * *": the minute has the step "90"; a step is 1 to 59, as in */2`, ""},
		{Settings{Cron: "1,,2 * * * *"}, `cron "1,,2 * * * *": the minute is ""; it holds 0 to 59`, ""},
		{Settings{Cron: "*-5 * * * *"}, `cron "*-5 * * * *": the minute is "*"; it holds 0 to 59`, ""},
		{Settings{Cron: "+5 * * * *"}, `cron "+5 * * * *": the minute is "+5"; it holds 0 to 59`, ""},
		{Settings{Cron: "0 4 L * *"}, `cron "0 4 L * *": the day of month is "L"; it holds 1 to 31`, ""},
		{Settings{Cron: "H * * * *"}, `cron "H * * * *": the minute is "H"; it holds 0 to 59`, ""},
		{Settings{Cron: "TZ=UTC * * * * *"}, `cron "TZ=UTC * * * * *": the second is "TZ=UTC"; it holds 0 to 59`, ""},
		{Settings{Cron: "0 4 * *"}, `cron "0 4 * *": the line has 4 fields; it has 5 (minute, hour, day of month, month, day of week), 6 with seconds first, or 7 with years last`, ""},
		{Settings{Cron: "* * * * * * * *"}, `cron "* * * * * * * *": the line has 8 fields; it has 5 (minute, hour, day of month, month, day of week), 6 with seconds first, or 7 with years last`, ""},
		{Settings{Cron: "0 12 1 1 * 2027"}, `cron "0 12 1 1 * 2027": the day of week is 2027; a line with a year has seven fields, seconds first`, ""},
		{Settings{Cron: "@dayly"}, `cron "@dayly": "@dayly" is not known; there are @annually, @daily, @hourly, @midnight, @monthly, @weekly, @yearly`, "@daily"},
		{Settings{Cron: "@every 5m"}, `cron "@every 5m": @every is no cron line; give an interval with every and from`, ""},
		{Settings{Cron: strings.Repeat("1,", 300) + "1 * * * *"}, `the line has 609 bytes; it can have 512`, ""},
		{Settings{Fields: &Fields{Hour: "4", Minute: "0", DayOfWeek: "sonday"}}, `fields: DayOfWeek is "sonday"; it holds 0 to 7 or sun to sat, where 0 and 7 are Sunday`, "sunday"},
		{Settings{Fields: &Fields{Hour: "4"}}, `fields: Minute is missing; it holds 0 to 59, or *`, ""},
		{Settings{Every: time.Second / 2, From: from}, "every: 500ms is less than a second, the shortest interval", ""},
		{Settings{Every: -time.Hour, From: from}, "every: -1h0m0s is less than a second, the shortest interval", ""},
		{Settings{Every: time.Second + time.Microsecond, From: from}, "every: 1.000001s is not in whole milliseconds", ""},
		{Settings{Every: time.Minute}, "every: an interval is counted from an instant on; give from", ""},
		{Settings{Cron: "@daily", Zone: "Europe/Berlni"}, `zone "Europe/Berlni": it is not a zone of the tz database, as in Europe/Berlin or UTC`, "Europe/Berlin"},
		{Settings{Cron: "@daily", Zone: "Local"}, `zone "Local": it is not a zone of the tz database, as in Europe/Berlin or UTC`, ""},
		{Settings{Cron: "@daily", Skipped: "rum"}, `skipped "rum": it is one of run, skip`, "run"},
		{Settings{Cron: "@daily", Repeated: "frist"}, `repeated "frist": it is one of first, second, both`, "first"},
		{Settings{Cron: "@daily", Except: []string{"2027-02-30"}}, `except "2027-02-30": there is no such day: day out of range, because February 2027 has 28 days`, ""},
		{Settings{Cron: "@daily", Jitter: -1}, "jitter: -1ns is less than nothing", ""},
		{Settings{Cron: "@daily", From: from, Until: from}, "until: it is not after from", ""},
	} {
		t.Run(c.want, func(t *testing.T) {
			_, err := New(c.settings)
			var all plan.Problems
			if !errors.As(err, &all) || len(all) != 1 || !strings.HasSuffix(all[0].Message, c.want) {
				t.Fatalf("%v, want %s", err, c.want)
			}
			if c.near != "" && !slices.Contains(all[0].Known, c.near) {
				t.Errorf("the known words %q lack %q", all[0].Known, c.near)
			}
		})
	}
	if _, err := New(Settings{Cron: "x", Zone: "y", Skipped: "z"}); len(err.(plan.Problems)) != 3 {
		t.Errorf("not every setting is refused: %v", err)
	}
}

func TestFires(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		settings Settings
		want     string
	}{
		{Settings{Cron: "0 0 30 2 *"}, "no year has such a day"},
		{Settings{Cron: "0 0 0 29 2 * 2027"}, "no year has such a day"},
		{Settings{Cron: "0 0 0 1 1 * 2020"}, "its years have passed"},
		{Settings{Cron: "@daily", Until: now.Add(-time.Hour)}, "until has passed"},
		{Settings{Cron: "@daily", Until: now.Add(time.Hour)}, "it has no instant before until"},
		{Settings{Cron: "0 30 2 28 3 * 2027", Zone: "Europe/Berlin", Skipped: Skip}, "skipped, repeated and except leave out every instant"},
		{Settings{Cron: "@daily", From: time.Date(9999, 12, 30, 0, 0, 0, 0, time.UTC)}, "it has no instant after the year 2499"},
		{Settings{Cron: "0 0 2 28 3 * 2099", From: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)}, "no year after from has such a day"},
		{Settings{Cron: "* 2 * * *", Except: []string{"* 1-3 * * *"}}, "skipped, repeated and except leave out every instant"},
		{Settings{Cron: "* * * * * *", Except: []string{"* 0-11 * * *", "* 12-23 * * *"}}, "skipped, repeated and except leave out every instant"},
		{Settings{Every: time.Second, From: now, Except: []string{"* * * * *"}}, "skipped, repeated and except leave out every instant"},
		{Settings{Cron: "0 0 29 2 *"}, ""},
		{Settings{Every: time.Hour, From: now.AddDate(10, 0, 0)}, ""},
	} {
		t.Run(fmt.Sprint(c.settings.Cron, c.want), func(t *testing.T) {
			table, err := New(c.settings)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if err := table.Fires(now); err != nil {
				got = strings.TrimPrefix(err.Error(), "the schedule never fires: ")
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestDelay(t *testing.T) {
	table, err := New(Settings{Cron: "@daily", Jitter: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[time.Duration]bool{}
	at := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	for n := range 1000 {
		d := table.Delay("nightly", at.AddDate(0, 0, n))
		if d < 0 || d >= time.Minute || d%time.Millisecond != 0 {
			t.Errorf("day %d: %s", n, d)
		}
		seen[d] = true
	}
	if len(seen) < 950 {
		t.Errorf("1,000 instants have %d delays", len(seen))
	}
	// The delay is stored with tasks, so it is the same for ever.
	if a, b := table.Delay("nightly", at), table.Delay("weekly", at); a != 18044*time.Millisecond || b != 56172*time.Millisecond {
		t.Errorf("the delays are %s and %s", a, b)
	}
}

func TestEveryZoneIsThere(t *testing.T) {
	for _, name := range Zones() {
		if _, err := LoadZone(name); err != nil {
			t.Error(err)
		}
	}
}

func BenchmarkNext(b *testing.B) {
	for _, c := range []struct {
		name     string
		settings Settings
	}{
		{"minutes in UTC", Settings{Cron: "* * * * *"}},
		{"nightly in Berlin", Settings{Cron: "30 2 * * *", Zone: "Europe/Berlin"}},
		{"yearly in Berlin", Settings{Cron: "@yearly", Zone: "Europe/Berlin"}},
		{"an interval", Settings{Every: time.Minute, From: time.Unix(0, 0)}},
	} {
		b.Run(c.name, func(b *testing.B) {
			table, err := New(c.settings)
			if err != nil {
				b.Fatal(err)
			}
			at := time.Date(2027, 1, 1, 0, 0, 1, 0, time.UTC)
			for b.Loop() {
				table.Next(at)
			}
		})
	}
}
