package sqlite

import (
	"testing"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

func TestASweepLosesClaimsOfInstancesThatAreNotRegistered(t *testing.T) {
	s := openTest(t, Options{})
	defer closeStore(t, s)
	p := newPlan(t, s, "nightly", manyTasks(3)...)
	lost, kept := register(t, s, "n1"), register(t, s, "n2")
	claimed := turn(t, s, protocol.Turn{Instance: lost, Slots: 2, Start: true}).Claimed
	held := turn(t, s, protocol.Turn{Instance: kept, Slots: 1, Start: true}).Claimed
	if len(claimed) != 2 || len(held) != 1 {
		t.Fatalf("claimed %d and %d tasks, want 2 and 1", len(claimed), len(held))
	}
	for _, damage := range []string{
		"UPDATE tasks SET instance = 4711 WHERE status = 0 AND instance = (SELECT n FROM instances WHERE node = 'n1')", "UPDATE instances SET gone = 1 WHERE node = 'n1'",
	} {
		if _, err := s.commit(t.Context(), func(tx *tx) error { tx.exec(damage); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	nodes, err := s.Instances(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found, err := s.Tasks(t.Context(), store.TaskQuery{Plan: p, Statuses: []plan.Status{plan.Running}})
	if strays := (rules.Registered{nodes[0].ID: true}).Strays(found); err != nil || len(nodes) != 1 || len(strays) != 2 {
		t.Errorf("readers see %d strays under %d instances, %v; want 2 and 1", len(strays), len(nodes), err)
	}
	did, err := s.Sweep(t.Context(), protocol.Sweep{Instance: kept, Holding: []plan.TaskID{held[0].Task}})
	if err != nil || did.Queued != 2 {
		t.Fatalf("a sweep queued %d tasks, %v; want 2", did.Queued, err)
	}
	ended := turn(t, s, protocol.Turn{Instance: kept, Ended: []protocol.Ending{{Claim: held[0].Claim, Status: plan.Succeeded}}})
	if len(ended.Lost) > 0 {
		t.Errorf("the sweep lost the claim of an instance that is registered")
	}
	runAll(t, s, kept, func(protocol.ClaimedTask) protocol.Ending { return protocol.Ending{Status: plan.Succeeded} })
	after, err := s.Plan(t.Context(), p)
	if err != nil || after.State != plan.PlanSucceeded {
		t.Errorf("the plan is %v, %v; want succeeded", after.State, err)
	}
}
