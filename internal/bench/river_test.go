package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// riverServer is the URI of the PostgreSQL server on which River takes part; "": it does not.
var riverServer = os.Getenv("SLUICE_BENCH_RIVER")

// riverScenarios compare no-op tasks of no plan with jobs of River.
func riverScenarios() (all []scenario) {
	for _, threads := range []int{16, mostThreads} {
		all = append(all, onBoth(fmt.Sprint("river/", threads), func(m *measurement) { againstRiver(m, threads) })...)
	}
	return all
}

func againstRiver(m *measurement, threads int) {
	if riverServer == "" {
		m.skip("make bench RIVER=postgres://USER@HOST:PORT/DATABASE builds River")
	}
	n := size(10_000, 1000)
	if m.on == onMongoDB {
		n = size(4000, 500)
	}
	program := filepath.Join(m.TempDir(), "river")
	m.timed("river", "go", "build", "-o", program, ".")
	m.repeat(func() {
		ours := m.drainedBy(threads, n, noops(), 0)
		var theirs struct{ Worked time.Duration }
		check(json.Unmarshal(must(exec.CommandContext(m.Context(), program, "-postgres", riverServer, "-jobs", fmt.Sprint(n), "-workers", fmt.Sprint(threads)).Output()), &theirs))
		m.pair("tasks", "tasks/s", perSecond(n, ours), "River", perSecond(n, theirs.Worked))
		m.note("%d tasks of no plan, with results; %d jobs without", n, n)
	})
}
