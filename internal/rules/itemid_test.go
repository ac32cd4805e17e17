package rules_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/plan"
)

func TestItemsOfTasksHaveIDsOfTheirOwn(t *testing.T) {
	ids := plan.NewIDs(time.Unix(1_700_000_000, 0), 3)
	seen := map[plan.TaskID]bool{}
	for range 3 {
		of := plan.TaskID{ID: ids.Next()}
		seen[of] = true
		last := plan.TaskID{}
		for i := range plan.MaxItems {
			id := rules.ItemID(of, i)
			if got := rules.ItemIndex(id); got != i {
				t.Fatalf("item %d of %s has index %d by its id", i, of, got)
			}
			if seen[id] || i > 0 && bytes.Compare(id.ID[:], last.ID[:]) <= 0 {
				t.Fatalf("item %d of %s has id %s, which is taken or not behind %s", i, of, id, last)
			}
			seen[id], last = true, id
		}
		if again := rules.ItemID(of, plan.MaxItems-1); again != last {
			t.Errorf("the last item of %s has two ids, %s and %s", of, last, again)
		}
	}
}
