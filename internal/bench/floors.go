package main

import "regexp"

// floors are what figures have to reach: all floors that Sluice promises, by scenario and line.
var floors = []struct {
	scenario, what string // regular expressions, each of the whole
	*floor
}{
	{`noop/sqlite/flat/256`, `no-op tasks`, atLeast(45_000)},
	{`noop/sqlite/layered/256`, `no-op tasks`, atLeast(25_000)},
	{`noop/mongodb/flat/256`, `no-op tasks`, atLeast(2_500)},
	{`noop/mongodb/layered/256`, `no-op tasks`, atLeast(1_000)},
	{`outside/.*`, `no-op tasks of no plan`, ratioAtLeast(0.5)},
	{`http/.*`, `requests`, ratioAtLeast(0.5)}, // of the smaller of no-op tasks and the bare client
	{`due/.*`, `tasks due at one instant.*`, ratioAtMost(2)},
	{`exec/.*`, `run: /.*/true`, ratioAtMost(1.3)},
	{`exec/(fan-out|layered)`, `run: 'true'`, ratioAtMost(1.5)},
	{`exec/chain`, `run: 'true'`, ratioAtMost(2)},
	{`disco/message`, `message and reply`, ratioAtMost(2)},
	{`disco/tasks`, `tasks of a worker`, ratioAtMost(1.5)},
	{`disco/http`, `an output over HTTP`, ratioAtLeast(0.9)},
	{`disco/http`, `more memory than before`, atMost(32)},
	{`hop/sqlite`, `hop p50`, atMost(1)},
	{`hop/sqlite`, `hop p99`, atMost(5)},
	{`runner/.*`, `claimed to started, p50`, atMost(30)},
	{`busy/sqlite`, `hop p99, 8 threads each`, atMost(20)},
	{`busy/sqlite`, `heartbeat, longest`, atMost(200)},
	{`fan/.*`, `1 → .*`, ratioAtMost(1.5)},
	{`waiting/.*`, `sluice plan wait, processor time`, ratioAtMost(0.05)},
	{`watching/run`, `sluice plan run, .*`, ratioAtMost(1.1)},
	{`watching/events`, `events with counts .*`, ratioAtMost(0.1)},
	{`large/sqlite/submit`, `.*`, atMost(5)},
	{`large/sqlite/(flat|layered)`, `(500|2000|10000|100000) tasks`, ratioAtMost(1.3)}, // of the smallest plan
	{`large/sqlite/memory`, `most memory of den`, atMost(150)},
	{`makespan/.*`, `makespan`, ratioAtMost(1.05)},
	{`idle/sqlite`, `polls \((turns|sweeps)\)`, atMost(16)}, // as many as zk-plan's back-off allows in a minute: see pollsAllowed
	{`idle/sqlite`, `heartbeats`, atMost(61)},
	{`progress/.*`, `processors, beside what silent tasks take`, atMost(0.05)},
	{`served/get`, `GET .*`, atLeast(2000)},
	{`served/submit/sqlite`, `POST .*`, atMost(8)},
	{`served/submit/mongodb`, `POST .*`, atMost(20)},
	{`served/submit/sqlite`, `most memory of the server`, atMost(300 / 1.048576)},
	{`served/events`, `a change to all listeners, the slowest`, atMost(200)},
	{`pages/sqlite/.*`, `10,000 tasks drawn`, atMost(1000)},
	{`pages/sqlite/.*`, `100,000 tasks drawn`, atMost(3000)},
	{`pages/sqlite/.*`, `.* panned`, atLeast(30)},
	{`cluster/claim/.*`, `round trips a task`, atMost(0.2)},
	{`cluster/rescue`, `death to running elsewhere, p99, lease of 3s`, atMost(5)}, // two seconds after the lease
	{`cluster/rescue`, `death to running elsewhere, p99, lease of 10s`, atMost(12)},
	{`build/size`, `binary`, atMost(30)},
	{`build/demo`, `make demo`, atMost(90)},
}

// floorOf returns the floor of a line, nil if it has none.
func floorOf(scenario, what string) *floor {
	for _, f := range floors {
		if regexp.MustCompile(`^(`+f.scenario+`)$`).MatchString(scenario) && regexp.MustCompile(`^(`+f.what+`)$`).MatchString(what) {
			return f.floor
		}
	}
	return nil
}
