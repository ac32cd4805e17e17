package timetable

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// A guess is a random line with what it matches, for a model that shares no code with the package.
type guess struct {
	text string
	set  [5]map[int]bool // minute, hour, day of month, month, day of week
	star [5]bool
}

func guessed(r *rand.Rand, around time.Time) guess {
	g := guess{}
	var words []string
	for i, bound := range [][3]int{{0, 59, around.Minute()}, {0, 23, around.Hour()}, {1, 31, around.Day()}, {1, 12, int(around.Month())}, {0, 6, int(around.Weekday())}} {
		least, most, near := bound[0], bound[1], bound[2]
		g.set[i] = map[int]bool{}
		fill := func(from, to, step int) {
			for n := from; n <= to; n += step {
				g.set[i][n] = true
			}
		}
		word := ""
		switch kind := r.IntN(6); {
		case kind <= 2 && i >= 2 || kind == 0: // most lines are of any day
			word, g.star[i] = "*", true
			fill(least, most, 1)
		case kind == 1:
			step := 2 + r.IntN(3)
			word, g.star[i] = fmt.Sprintf("*/%d", step), true
			fill(least, most, step)
		case kind == 2:
			from := least + r.IntN(most-least)
			to := from + 1 + r.IntN(most-from)
			step := 1 + r.IntN(3)
			word = fmt.Sprintf("%d-%d/%d", from, to, step)
			fill(from, to, step)
		default:
			one, other := near, least+r.IntN(most-least+1)
			word = fmt.Sprintf("%d,%d", one, other)
			fill(one, one, 1)
			fill(other, other, 1)
		}
		words = append(words, word)
	}
	g.text = strings.Join(words, " ")
	return g
}

func (g *guess) matches(local time.Time) bool {
	dom, dow := g.set[2][local.Day()], g.set[4][int(local.Weekday())]
	days := dom && dow
	if !g.star[2] && !g.star[4] {
		days = dom || dow
	}
	return days && g.set[0][local.Minute()] && g.set[1][local.Hour()] && g.set[3][int(local.Month())]
}

// FuzzInstants compares the instants around a clock change with those of a model that looks at each
// minute.
func FuzzInstants(f *testing.F) {
	for seed := range uint64(300) {
		f.Add(seed)
	}
	f.Add(uint64(341)) // the last day of a leap year
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 0))
		names := Zones()
		name := names[r.IntN(len(names))]
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		middle := time.Unix(r.Int64N(70*365)*86400+5*365*86400, 0)
		if _, change := middle.In(zone).ZoneBounds(); !change.IsZero() {
			middle = change
		}
		if middle.Unix()%60 != 0 {
			return // the clock changes within a minute, and the model knows minutes only
		}
		g, except := guessed(r, middle.In(zone)), guessed(r, middle.In(zone))
		s := Settings{Cron: g.text, Zone: name, Skipped: []string{Run, Skip}[r.IntN(2)], Repeated: []string{First, Second, Both}[r.IntN(3)]}
		excepted := r.IntN(3) == 0
		if excepted {
			s.Except = []string{except.text}
		}
		matches := func(local time.Time) bool { return g.matches(local) && !(excepted && except.matches(local)) }

		// The model: all minutes of six days, and the local times that they show.
		const day = 24 * time.Hour
		begin, end := middle.Add(-3*day), middle.Add(3*day)
		shown := map[time.Time][]time.Time{} // instants by local time
		var locals []time.Time
		for at := begin; at.Before(end); at = at.Add(time.Minute) {
			l := at.In(zone)
			local := time.Date(l.Year(), l.Month(), l.Day(), l.Hour(), l.Minute(), l.Second(), 0, time.UTC)
			shown[local] = append(shown[local], at)
			locals = append(locals, local)
		}
		var want []time.Time
		for local := locals[0].Truncate(time.Minute); local.Before(locals[len(locals)-1]); local = local.Add(time.Minute) {
			if !matches(local) {
				continue
			}
			at := shown[local]
			switch {
			case g.star[1] || len(at) == 1:
				want = append(want, at...)
			case len(at) == 0 && s.Skipped == Run:
				past := slices.IndexFunc(locals, func(l time.Time) bool { return l.After(local) })
				want = append(want, begin.Add(time.Duration(past)*time.Minute))
			case len(at) == 0:
			case s.Repeated == First:
				want = append(want, at[0])
			case s.Repeated == Second:
				want = append(want, at[len(at)-1])
			default:
				want = append(want, at...)
			}
		}
		begin, end = middle.Add(-day), middle.Add(day)
		want = slices.DeleteFunc(want, func(at time.Time) bool { return at.Before(begin) || !at.Before(end) })
		slices.SortFunc(want, time.Time.Compare)
		want = slices.CompactFunc(want, time.Time.Equal)

		table, err := New(s)
		if err != nil {
			t.Fatal(err)
		}
		var got []time.Time
		for o := range table.After(begin.Add(-1)) {
			if !o.At.Before(end) {
				break
			}
			if o.Change != Dropped {
				got = append(got, o.At)
			}
		}
		if !slices.EqualFunc(got, want, time.Time.Equal) {
			t.Errorf("%+v around %s:\ngot  %v\nwant %v", s, middle.In(zone), got, want)
		}
	})
}
