package sqlite

import (
	"testing"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// A page of the feed has each task and plan once, as it is now, in the order in which they changed last, and pages are full to the end.
func TestAPageOfTheFeedHasEachThingOnce(t *testing.T) {
	s := openTest(t, Options{})
	defer s.Close()
	i := register(t, s, "n1")
	p := newPlan(t, s, "nightly", manyTasks(7)...)
	claimed := turn(t, s, protocol.Turn{Instance: i, Slots: 7}).Claimed
	for n := range claimed {
		end := protocol.Ending{Claim: claimed[n].Claim, Status: plan.Succeeded}
		turn(t, s, protocol.Turn{Instance: i, Ended: []protocol.Ending{end}})
	}
	for _, limit := range []int{1, 3, 8, 100} {
		told := map[plan.TaskID]plan.Status{}
		ended := false
		for cursor := store.Cursor("0"); ; {
			changes, next, err := s.Changes(t.Context(), cursor, limit)
			if err != nil {
				t.Fatal(err)
			}
			once := map[plan.TaskID]bool{}
			for _, c := range changes {
				if c.Plan != p {
					t.Errorf("limit %d: told of %+v", limit, c)
				}
				if once[c.Task] {
					t.Errorf("limit %d: one page has %s twice", limit, c.Name)
				}
				once[c.Task], told[c.Task] = true, c.Status
				ended = ended || c.Task.IsZero() && c.State.Ended()
			}
			if cursor = next; len(changes) < limit {
				break
			}
		}
		if delete(told, plan.TaskID{}); len(told) != 7 || !ended {
			t.Errorf("limit %d: told of %d tasks, and of the plan's end: %t", limit, len(told), ended)
		}
		for id, status := range told {
			if status != plan.Succeeded {
				t.Errorf("limit %d: %s was last told as %v", limit, id, status)
			}
		}
	}
}
