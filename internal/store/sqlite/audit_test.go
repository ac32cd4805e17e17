package sqlite

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

func TestAnAuditGoesOnWithTheNextSweep(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	s := openTest(t, Options{Now: func() time.Time { return now }})
	defer closeStore(t, s)
	for k := range 3 {
		tasks := manyTasks(30)
		for i := range 10 {
			tasks = append(tasks, task{name: fmt.Sprint("after-", i), needs: []string{fmt.Sprint("task-", i), fmt.Sprint("task-", i+1)}})
		}
		newPlan(t, s, fmt.Sprint("p", k), tasks...)
	}
	i := register(t, s, "n1")
	sweep := func(budget int) protocol.Swept {
		t.Helper()
		did, err := s.Sweep(t.Context(), protocol.Sweep{Instance: i, Budget: budget})
		if err != nil {
			t.Fatal(err)
		}
		return did
	}
	if sweep(0); s.auditing.on || s.mended.Load() != 0 {
		t.Fatalf("an audit of a small store with no faults goes on (%+v), and mended %d", s.auditing, s.mended.Load())
	}
	runAll(t, s, i, func(protocol.ClaimedTask) protocol.Ending { return protocol.Ending{Status: plan.Succeeded} })
	for _, damage := range []string{ // as if nobody had looked at the children, nor at the plans
		"UPDATE tasks SET status = -4, gate = 3, outcome = 0, ended = 0, flags = flags & ~64, attempt = 0 WHERE name LIKE 'after-%'",
		"UPDATE gates SET waits = waits + 256", "UPDATE plans SET state = 0, ended = 0, succeeded = 40, held = 1",
	} {
		if _, err := s.commit(t.Context(), func(tx *tx) error { tx.exec(damage); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	s.auditSize = auditSize{tasks: 16, held: 4, edges: 7, wrong: 1000}
	if sweep(0); s.mended.Load() != 0 {
		t.Fatal("an audit is made before it is due")
	}
	now = now.Add(rules.AuditEvery)
	sweeps := 1
	for most := int64(0); ; sweeps++ {
		before := s.mended.Load()
		sweep(3)
		if most = s.mended.Load() - before; most > 4 { // and the counts of a plan
			t.Errorf("one sweep mended %d faults, want 4 at most", most)
		}
		if !s.auditing.on && len(s.auditing.left) == 0 {
			break
		}
	}
	if sweeps < 12 || s.mended.Load() != 33 {
		t.Errorf("%d sweeps mended %d faults; want 12 sweeps or more and 33 faults", sweeps, s.mended.Load())
	}
	if ran := runAll(t, s, i, func(protocol.ClaimedTask) protocol.Ending { return protocol.Ending{Status: plan.Succeeded} }); len(ran) != 30 {
		t.Errorf("%d tasks run, want 30", len(ran))
	}
	plans, err := s.Plans(t.Context(), store.PlanQuery{Limit: 9})
	for _, p := range plans {
		if err != nil || p.State != plan.PlanSucceeded {
			t.Errorf("plan %s is %v, %v", p.Title(), p.State, err)
		}
	}
}
