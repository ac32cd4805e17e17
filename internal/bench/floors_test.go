package bench

import (
	"slices"
	"testing"
)

// A floor is what the ratio of a figure to its peer has to reach.
type floor struct {
	scenario, what string // regular expressions, each of the whole
	most           bool   // the limit is the most, else the least
	limit          float64
}

const most, least = true, false

// floors are all that Sluice promises of its speed.
var floors = []floor{
	{`noop/sqlite/flat/256`, `tasks`, least, 0.18},
	{`noop/sqlite/layered/256`, `tasks`, least, 0.2},
	{`noop/mongodb/flat/256`, `tasks`, least, 0.4},
	{`noop/mongodb/layered/256`, `tasks`, least, 0.3},
	{`few/mongodb/1`, `tasks`, least, 0.5},
	{`few/mongodb/16`, `tasks`, least, 1.2},
	{`river/256/sqlite`, `tasks`, least, 1},
	{`river/.*/mongodb`, `tasks`, least, 0.08},
	{`outside/.*`, `tasks`, least, 0.5},
	{`http/.*`, `requests|activities`, least, 0.5},
	{`approvals/.*`, `start-p99`, most, 1},
	{`pending/.*`, `turn|poll|sweep`, most, 1.1},
	{`later/.*`, `turn|poll|sweep`, most, 1.1},
	{`due/.*`, `last-ended`, most, 2},
	{`exec/.*`, `plain`, most, 1.3},
	{`exec/(fan-out|layered)`, `shell`, most, 1.5},
	{`exec/chain`, `shell`, most, 2},
	{`disco/message`, `message`, most, 2},
	{`disco/tasks`, `tasks`, most, 1.5},
	{`disco/http`, `output`, least, 0.9},
	{`disco/http`, `memory`, most, 0.03},
	{`disco/groups/sqlite`, `a-file`, most, 1},
	{`hop/sqlite`, `hop-p50`, most, 5},
	{`hop/sqlite`, `hop-p99`, most, 10},
	{`runner/.*`, `start-p50`, most, 4},
	{`busy/sqlite`, `hop-p99-of-8`, most, 10},
	{`busy/sqlite`, `beat-longest-.*`, most, 20},
	{`fan/.*`, `joined`, most, 1.5},
	{`steps/.*`, `three-steps`, most, 1.3},
	{`steps/.*`, `two-steps`, most, 1.3},
	{`waiting/.*`, `plan-wait`, most, 0.05},
	{`watching/run`, `plan-run`, most, 1.1},
	{`watching/events`, `server`, most, 0.1},
	{`large/sqlite/submit`, `inside`, most, 6},
	{`large/sqlite/submit`, `plan-submit`, most, 12},
	{`large/sqlite/(flat|layered)`, `.*`, most, 1.3},
	{`large/sqlite/memory`, `den`, most, 4},
	{`makespan/.*`, `makespan`, most, 1.05},
	{`idle/sqlite`, `turns|sweeps|beats`, most, 1},
	{`schedules/.*`, `lateness-p99|processor`, most, 12},
	{`rolls/.*`, `hand-over`, most, 4},
	{`rolls/.*`, `memory`, most, 2},
	{`fair/small/.*`, `turns`, most, 1},
	{`fair/thousand/sqlite`, `tasks`, least, 0.9},
	{`fair/weights/.*`, `off-on-.*`, most, 1},
	{`fair/slow/.*`, `quick`, least, 0.9},
	{`fair/hundred/sqlite`, `tasks`, least, 0.6},
	{`fair/hundred/mongodb`, `tasks`, least, 0.3},
	{`fair/rate/.*`, `of-the-rate`, least, 0.95},
	{`fair/rate/.*`, `in-a-window`, most, 1.1},
	{`progress/.*`, `processor`, most, 2.5},
	{`served/get`, `requests`, least, 0.1},
	{`served/submit/.*`, `request`, most, 10},
	{`served/submit/sqlite`, `memory`, most, 52},
	{`served/events`, `slowest`, most, 4},
	{`pages/sqlite/.*`, `10000-tasks-drawn`, most, 10},
	{`pages/sqlite/.*`, `100000-tasks-drawn`, most, 20},
	{`pages/sqlite/.*`, `.*-panned`, least, 0.5},
	{`cluster/claim/.*`, `round-trips`, most, 0.1},
	{`cluster/rescue`, `lease-of-.*`, most, 1},
}

// floorOf returns the floor of a line, nil if it has none.
func floorOf(scenario, what string) *floor {
	for i, f := range floors {
		if matches(f.scenario, scenario) && matches(f.what, what) {
			return &floors[i]
		}
	}
	return nil
}

// String writes the limit.
func (f *floor) String() string {
	if f.most {
		return "≤ " + number(f.limit)
	}
	return "≥ " + number(f.limit)
}

// missedBy reports whether the median of the ratios does not reach the floor. NaN never does. A line
// without a peer, and one without a floor, misses nothing.
func (f *floor) missedBy(l *line) bool {
	switch {
	case f == nil || l.peer == "":
		return false
	case f.most:
		return !(median(l.ratios) <= f.limit)
	default:
		return !(median(l.ratios) >= f.limit)
	}
}

func TestFloors(t *testing.T) {
	atLeast, atMost := &floor{limit: 0.5}, &floor{most: most, limit: 1.3}
	for name, c := range map[string]struct {
		floor  *floor
		line   line
		missed bool
	}{
		"at the floor passes":               {atLeast, line{peer: "ninja", ratios: []float64{0.5}}, false},
		"below what is at least misses":     {atLeast, line{peer: "ninja", ratios: []float64{0.49}}, true},
		"above what is at most misses":      {atMost, line{peer: "ninja", ratios: []float64{1.31}}, true},
		"the median is judged":              {atMost, line{peer: "ninja", ratios: []float64{1.2, 9, 1.3}}, false},
		"without a peer nothing is judged":  {atLeast, line{}, false},
		"without a floor nothing is judged": {nil, line{peer: "ninja", ratios: []float64{9}}, false},
	} {
		if c.floor.missedBy(&c.line) != c.missed {
			t.Errorf("%s: missed is %v", name, !c.missed)
		}
	}
}

func TestEachFloorIsOfAScenario(t *testing.T) {
	for _, f := range floors {
		if !slices.ContainsFunc(scenarios(), func(s scenario) bool { return matches(f.scenario, s.name) }) {
			t.Errorf("no scenario is called %s", f.scenario)
		}
	}
}
