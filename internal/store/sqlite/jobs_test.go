package sqlite

import (
	"path/filepath"
	"testing"

	"github.com/seed-1177d267/sluice/plan"
)

// What is left of a large plan does not keep a small one, which came after it, waiting until it is done.
func TestJobsTakeTurns(t *testing.T) {
	s := openTest(t, Options{})
	defer closeStore(t, s)
	large := newPlan(t, s, "large", manyTasks(5000)...)
	small := newPlan(t, s, "small", task{name: "a"})
	i := register(t, s, "n1")
	for range 3 {
		turn(t, s, plan.Turn{Instance: i})
	}
	if got := named(t, s, small, "a"); got.Status != plan.Queued {
		t.Errorf("after three turns the small plan's only task is %v", got.Status)
	}
	p, err := s.Plan(t.Context(), large)
	if err != nil {
		t.Fatal(err)
	}
	if p.Counts.Held == 0 || p.Counts.Queued == 0 {
		t.Errorf("of the large plan %d tasks are held and %d queued; the test needs some of both", p.Counts.Held, p.Counts.Queued)
	}
}

// A turn goes on with what is left only as long as nobody waits for it.
func TestALongTurnIsCutShortForOthers(t *testing.T) {
	s := openTest(t, Options{})
	defer closeStore(t, s)
	newPlan(t, s, "large", manyTasks(5000)...)
	i := register(t, s, "n1")
	if did := turn(t, s, plan.Turn{Instance: i}); did.Queued != plan.DefaultBudget || !did.More {
		t.Errorf("alone it queued %d, more: %v; want %d, and more", did.Queued, did.More, plan.DefaultBudget)
	}
	s.waiting.Add(1)
	if did := turn(t, s, plan.Turn{Instance: i}); did.Queued != portion || !did.More {
		t.Errorf("with another writer waiting it queued %d, more: %v; want %d, and more", did.Queued, did.More, portion)
	}
	s.waiting.Add(-1)
}

func TestWhoHasTheTurnSeesWhoWaits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	has, waits := newTestTurnstile(t, path), newTestTurnstile(t, path)
	if ok, err := has.try(); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if has.awaited() {
		t.Error("nobody waits yet")
	}
	got := make(chan error)
	go func() { got <- waits.wait() }()
	for !has.awaited() {
		continue // until it waits; a test that hangs here has found that it is never seen
	}
	has.unlock()
	if err := <-got; err != nil {
		t.Fatal(err)
	}
	if waits.awaited() {
		t.Error("who waited has the turn now, and nobody waits")
	}
}
