package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestQuantileIsTheNearestRank(t *testing.T) {
	ten := []int{9, 1, 8, 2, 7, 3, 6, 4, 5, 10}
	for _, c := range []struct {
		q    float64
		want int
	}{{0, 1}, {0.1, 1}, {0.5, 5}, {0.51, 6}, {0.99, 10}, {1, 10}} {
		if got := quantile(ten, c.q); got != c.want {
			t.Errorf("quantile %v of 1…10 is %d, want %d", c.q, got, c.want)
		}
	}
	if got := median([]int{7}); got != 7 {
		t.Errorf("median of 7 alone is %d", got)
	}
}

func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		name  string
		line  result
		quick bool
		want  verdict
	}{
		{"at the floor passes", result{Value: 45_000, Floor: atLeast(45_000)}, false, pass},
		{"below what is at least misses", result{Value: 44_999, Floor: atLeast(45_000)}, false, fail},
		{"above what is at most misses", result{Value: 5.1, Floor: atMost(5)}, false, fail},
		{"a ratio is judged, not its value", result{Value: 120, PeerVal: 100, Floor: ratioAtMost(1.3)}, false, pass},
		{"a ratio that is too high misses", result{Value: 131, PeerVal: 100, Floor: ratioAtMost(1.3)}, false, fail},
		{"without a peer there is no ratio to judge", result{Value: 120, Floor: ratioAtMost(1.3)}, false, didNotRun},
		{"without a floor there is no verdict", result{Value: 1}, false, noFloor},
		{"a smoke test judges nothing", result{Value: 1, Floor: atLeast(2)}, true, notJudged},
		{"what was left out did not run", result{Skipped: "no server", Floor: atLeast(2)}, false, didNotRun},
		{"an error is one in a smoke test too", result{Error: "no room"}, true, broken},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.line.judge(c.quick); c.line.Verdict != c.want {
				t.Errorf("verdict %q, want %q", c.line.Verdict, c.want)
			}
		})
	}
}

func TestWhatMissedIsReplacedAndNoted(t *testing.T) {
	line := func(scenario string, value float64, f *floor) result {
		l := result{Scenario: scenario, What: "tasks", Value: value, Unit: "tasks/s", PeerVal: 100, Floor: f, Note: "flat"}
		l.judge(false)
		return l
	}
	r := &report{Results: []result{line("a", 1, nil), line("b", 40, atLeast(50)), line("c", 160, ratioAtMost(1.5)), line("d", 1, nil)}}
	if r.missed("a") || !r.missed("b") || !r.missed("c") {
		t.Fatal("of four scenarios the second and the third missed a floor")
	}
	r.replace("b", []result{line("b", 45, atLeast(50))})
	r.replace("b", []result{line("b", 60, atLeast(50))})
	r.replace("c", []result{line("c", 170, ratioAtMost(1.5))})
	for i, want := range []string{"flat", "missed before: 40 tasks/s, 45 tasks/s; flat", "missed before: ratio 1.60; flat", "flat"} {
		if got := r.Results[i].note(); got != want {
			t.Errorf("line %d notes %q, want %q", i, got, want)
		}
	}
	if len(r.Results) != 4 || r.missed("b") || !r.missed("c") || r.Results[1].Value != 60 || r.Results[3].Scenario != "d" {
		t.Errorf("the report is %+v", r.Results)
	}
}

func TestNumbersAreWrittenForPeople(t *testing.T) {
	for _, c := range []struct {
		value float64
		unit  string
		want  string
	}{
		{45_000, "tasks/s", "45,000 tasks/s"}, {1_234_567.8, "", "1,234,568"}, {0.456, "ms", "0.46 ms"}, {0.0049, "ms", "0.005 ms"}, {12.34, "ms", "12.3 ms"}, {16, "", "16"}, {-1234, "", "-1,234"},
	} {
		if got := number(c.value, c.unit); got != c.want {
			t.Errorf("%v %s is written %q, want %q", c.value, c.unit, got, c.want)
		}
	}
}

func TestPollsThatTheBackOffAllows(t *testing.T) {
	for _, c := range []struct {
		within time.Duration
		want   int
	}{
		{0, 1},
		{100 * time.Millisecond, 2}, // at 0 and 100
		{249 * time.Millisecond, 2},
		{250 * time.Millisecond, 3}, // and at 100 + 150
		{time.Minute, 16},
	} {
		if got := pollsAllowed(c.within); got != c.want {
			t.Errorf("in %v it allows %d polls, want %d", c.within, got, c.want)
		}
	}
}

func TestBareLoopsFinishTheWholeGraph(t *testing.T) {
	b := smokeBench(t)
	for _, k := range []kind{onSQLite, onMongoDB} {
		if b.missing(k) != "" {
			continue
		}
		for _, l := range []load{
			{kind: k, shape: "flat", make: flat, threads: 8},
			{kind: k, shape: "layered", make: func(n int) *graph { return layered(n, 10) }, threads: 8},
		} {
			t.Run(string(k)+" "+l.shape, func(t *testing.T) {
				if err := try(func() { l.bare(t.Context(), b.trial(k, nil), l.make(50)) }); err != nil { // it counts what it finished
					t.Error(err)
				}
			})
		}
	}
}

func TestEachFloorIsOfAScenario(t *testing.T) {
	for _, f := range floors {
		whole := regexp.MustCompile(`^(` + f.scenario + `)$`)
		if !slices.ContainsFunc(scenarios(), func(s scenario) bool { return whole.MatchString(s.name) }) {
			t.Errorf("no scenario is called %s", f.scenario)
		}
	}
	if f := floorOf("noop/sqlite/flat/256", "no-op tasks"); f == nil || f.Limit != 45_000 {
		t.Errorf("the floor of no-op tasks is %v", f)
	}
	if f := floorOf("noop/sqlite/flat/64", "no-op tasks"); f != nil {
		t.Errorf("fewer threads have a floor: %v", f)
	}
	if f := floorOf("exec/chain", "run: '/bin/true \"a b\"'"); f != nil {
		t.Errorf("a line for the shell has a floor: %v", f)
	}
}

func TestSmokeRunPrintsOneTable(t *testing.T) {
	var out, errs bytes.Buffer
	args := []string{"-quick", "-mongodb", "", "-dir", t.TempDir(), "-run", "^noop/(sqlite|mongodb)/flat/256"}
	if code := run(t.Context(), args, &out, &errs); code != 0 {
		t.Fatalf("exit code %d; it said: %s", code, &errs)
	}
	for _, want := range []string{"SCENARIO", "noop/sqlite/flat", "no-op tasks", "submission", "set SLUICE_TEST_MONGODB", "0 errors"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table does not say %q:\n%s", want, &out)
		}
	}
}

func TestSmokeRunPrintsJSON(t *testing.T) {
	var out bytes.Buffer
	args := []string{"-quick", "-json", "-mongodb", "", "-dir", t.TempDir(), "-run", "^noop/sqlite/flat/256"}
	if code := run(t.Context(), args, &out, io.Discard); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	var r report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Machine) == 0 || len(r.Results) != 2 || r.Results[0].Value <= 0 {
		t.Errorf("the report says %+v", r)
	}
}

func TestBadUsageIsRefused(t *testing.T) {
	for _, args := range [][]string{{"-run", "("}, {"noop"}, {"-nosuch"}} {
		if code := run(t.Context(), args, io.Discard, io.Discard); code != 2 {
			t.Errorf("%q: exit code %d, want 2", args, code)
		}
	}
}

func smokeBench(t *testing.T) *bench {
	t.Helper()
	b, err := newBench(t.Context(), settings{quick: true, dir: t.TempDir(), mongodb: os.Getenv("SLUICE_TEST_MONGODB")}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.close)
	return b
}
