package bench

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/runner"
)

// TestMain lets this program also be the processes that scenarios start.
func TestMain(m *testing.M) {
	runner.GuardMain()
	asksMain()
	partMain()
	os.Exit(m.Run())
}

// A scenario measures a group of figures.
type scenario struct {
	name string // as RUN selects it: group/store/shape
	on   kind   // the database that it needs; "": none
	run  func(*measurement)
}

// onBoth returns a scenario for each store that is a database.
func onBoth(group string, run func(*measurement)) []scenario {
	return []scenario{{group + "/sqlite", onSQLite, run}, {group + "/mongodb", onMongoDB, run}}
}

func scenarios() []scenario {
	return slices.Concat(
		noopScenarios(), fewScenarios(), riverScenarios(), onBoth("outside", outside), onBoth("due", due), onBoth("http", requests), onBoth("later", later), []scenario{{"approvals/sqlite", onSQLite, approvals}, {"pending/sqlite", onSQLite, pending}}, execScenarios(), discoScenarios(),
		onBoth("hop", hop), onBoth("runner", runners), []scenario{{"busy/sqlite", onSQLite, busy}}, onBoth("fan", fan), onBoth("steps", steps), onBoth("waiting", waiting),
		[]scenario{{"watching/run", onSQLite, watchingRun}, {"watching/events", onSQLite, watchingEvents}}, largeScenarios(), makespanScenarios(),
		[]scenario{{"idle/sqlite", onSQLite, idle}}, onBoth("schedules", fires), onBoth("rolls", rolls), onBoth("fair/small", small), onBoth("fair/thousand", thousand), onBoth("fair/weights", weights), onBoth("fair/slow", slow), onBoth("fair/hundred", hundred), onBoth("fair/rate", paced), onBoth("progress", reporting), servedScenarios(), pagesScenarios(), clusterScenarios(),
	)
}

// Benchmark measures all scenarios, each as a benchmark of its own.
func Benchmark(b *testing.B) {
	printMachine(b)
	for _, s := range scenarios() {
		b.Run(s.name, func(b *testing.B) {
			m := &measurement{B: b, scenario: s}
			if s.on == onMongoDB && mongoServer() == "" {
				m.skip("set SLUICE_TEST_MONGODB=mongodb://HOST:PORT/")
			}
			if err := try(func() { s.run(m) }); err != nil {
				b.Fatal(err)
			}
			m.report()
		})
	}
}

// A measurement is one scenario while it is measured. An error ends it: see check.
type measurement struct {
	*testing.B
	scenario
	lines []*line
	notes string
}

// A line is one figure and its peer, of all repetitions.
type line struct {
	what, unit, peer     string // peer is "" without one
	ours, theirs, ratios []float64
	missed               []float64 // the ratios of earlier rounds
}

// pair notes a figure of one repetition and that of its peer. The figure stands alone if the peer's
// is 0.
func (m *measurement) pair(what, unit string, ours float64, peer string, theirs float64) {
	i := slices.IndexFunc(m.lines, func(l *line) bool { return l.what == what })
	if i < 0 {
		i, m.lines = len(m.lines), append(m.lines, &line{what: what, unit: unit})
	}
	l := m.lines[i]
	l.ours = append(l.ours, ours)
	if theirs > 0 {
		l.peer, l.theirs, l.ratios = peer, append(l.theirs, theirs), append(l.ratios, ours/theirs)
	}
}

// skip measures nothing, and says why: package testing would not.
func (m *measurement) skip(why string) {
	fmt.Printf("%s did not run: %s\n", m.name, why)
	m.SkipNow()
}

// note says of what size the figures are. The last repetition's note stays.
func (m *measurement) note(format string, args ...any) { m.notes = fmt.Sprintf(format, args...) }

// repeat measures as often as -benchtime says. A shared machine has slow minutes, so repeat starts
// from nothing, at most twice, if a floor was missed.
func (m *measurement) repeat(once func()) {
	for m.Loop() {
		once()
	}
	for range 2 {
		if testing.Short() || !slices.ContainsFunc(m.lines, func(l *line) bool { return floorOf(m.name, l.what).missedBy(l) }) {
			return
		}
		for _, l := range m.lines {
			if floorOf(m.name, l.what).missedBy(l) {
				l.missed = append(l.missed, median(l.ratios))
			}
			l.ours, l.theirs, l.ratios = nil, nil, nil
		}
		for range m.N {
			once()
		}
	}
}

// report writes the lines, and fails the benchmark if one misses its floor.
func (m *measurement) report() {
	m.ReportMetric(0, "ns/op") // it would be the time of all sides together
	for _, l := range m.lines {
		m.ReportMetric(median(l.ours), l.what+"-"+l.unit)
		if l.peer != "" {
			m.ReportMetric(median(l.ratios), l.what+"-ratio")
		}
		f := floorOf(m.name, l.what)
		fmt.Fprintln(m.Output(), l.text(f))
		if !testing.Short() && f.missedBy(l) {
			m.Errorf("%s: %s: the ratio %s misses its floor: %s", m.name, l.what, number(median(l.ratios)), f)
		}
	}
	fmt.Fprintf(m.Output(), "(%s; %s)\n", m.notes, condition(m.TempDir()))
}

// text writes a line for people.
func (l *line) text(f *floor) string {
	text := fmt.Sprintf("%s: %s %s", l.what, number(median(l.ours)), l.unit)
	if l.peer != "" {
		text += fmt.Sprintf(" | %s %s | ratio %s", l.peer, number(median(l.theirs)), number(median(l.ratios)))
	}
	if f != nil {
		text += fmt.Sprintf(" | floor %s, ", f)
		switch {
		case l.peer == "" || testing.Short():
			text += "not judged"
		case f.missedBy(l):
			text += "MISSED"
		default:
			text += "passed"
		}
	}
	for _, r := range l.missed {
		text += " | missed before: " + number(r)
	}
	return text
}

// number writes a figure with as many digits as its size deserves.
func number(v float64) string {
	if v >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

// size chooses between the size to measure and that of a quick run.
func size[T any](full, quick T) T {
	if testing.Short() {
		return quick
	}
	return full
}

// A failure is an error that ended a measurement.
type failure struct{ error }

// check ends a measurement, or a process of one, with an error if there is one.
func check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// must is check for a call that returns something else too.
func must[T any](v T, err error) T {
	check(err)
	return v
}

func failf(format string, args ...any) { check(fmt.Errorf(format, args...)) }

// try calls do, and returns the error that ended it.
func try(do func()) (err error) {
	defer func() {
		switch f := recover().(type) {
		case nil:
		case failure:
			err = errors.Join(err, f.error)
		default:
			panic(f)
		}
	}()
	do()
	return nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// perSecond returns how many of n things were done in a second if they took d.
func perSecond(n int, d time.Duration) float64 { return float64(n) / d.Seconds() }

// matches reports whether the whole of a text matches a regular expression.
func matches(expression, text string) bool {
	return regexp.MustCompile(`^(?:` + expression + `)$`).MatchString(text)
}
