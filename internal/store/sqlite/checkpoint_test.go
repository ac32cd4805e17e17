package sqlite

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/plan"
)

// The log is copied into the file, and begins anew, while a writer goes on and on: without anybody's commit doing so.
func TestTheLogDoesNotGrowForEver(t *testing.T) {
	s := openTest(t, Options{})
	defer closeStore(t, s)
	newPlan(t, s, "nightly", manyTasks(8_000)...) // with their outputs about 24,000 pages
	i := register(t, s, "n1")
	large := json.RawMessage(`"` + strings.Repeat("x", 24<<10) + `"`)
	x := protocol.Turn{Instance: i, Slots: 50, Start: true}
	written := 0
	for written < 8_000 {
		did := turn(t, s, x)
		written += len(x.Ended)
		x.Ended = x.Ended[:0]
		for _, c := range did.Claimed {
			x.Ended = append(x.Ended, protocol.Ending{Claim: c.Claim, Status: plan.Succeeded, Output: large})
		}
	}
	info, err := os.Stat(s.path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	if most := int64(2 * restartPages * pageSize); info.Size() > most {
		t.Errorf("the log has %d MB after some %d MB were written; it should have begun anew", info.Size()>>20, written*24>>10)
	}
}
