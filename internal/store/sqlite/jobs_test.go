package sqlite

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/polltest"
	"github.com/seed-1177d267/sluice/plan"
)

// The remaining work of a large plan does not delay a small plan that came later.
func TestJobsTakeTurns(t *testing.T) {
	s := openTest(t, Options{})
	defer closeStore(t, s)
	large := newPlan(t, s, "large", manyTasks(5000)...)
	small := newPlan(t, s, "small", task{name: "a"})
	i := register(t, s, "n1")
	for range 3 {
		turn(t, s, protocol.Turn{Instance: i})
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

// Most tasks that are skipped below a failure, or cancelled, have no children. They leave nothing
// for later turns, so that a turn costs the same however many there are.
func TestWhatHasNoChildrenLeavesNoJob(t *testing.T) {
	const children = 5000
	family := func() []task {
		tasks := []task{{name: "root"}}
		for i := range children {
			tasks = append(tasks, task{name: fmt.Sprint("c", i), needs: []string{"root"}})
		}
		return tasks
	}
	for _, c := range []struct {
		name string
		end  func(*Store, plan.PlanID, protocol.ClaimedTask) (protocol.Turn, error)
	}{
		{"skipped", func(_ *Store, _ plan.PlanID, root protocol.ClaimedTask) (protocol.Turn, error) {
			return protocol.Turn{Ended: []protocol.Ending{{Claim: root.Claim, Status: plan.Failed}}}, nil
		}},
		{"cancelled", func(s *Store, p plan.PlanID, _ protocol.ClaimedTask) (protocol.Turn, error) {
			return protocol.Turn{}, s.CancelPlan(t.Context(), p, false)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := openTest(t, Options{})
			defer closeStore(t, s)
			p := newPlan(t, s, "family", family()...)
			i := register(t, s, "n1")
			root := turn(t, s, protocol.Turn{Instance: i, Slots: 1, Start: true, Plugins: []string{"exec"}}).Claimed
			if len(root) != 1 {
				t.Fatalf("claimed %d tasks, want the root", len(root))
			}
			next, err := c.end(s, p, root[0])
			if err != nil {
				t.Fatal(err)
			}
			for more := true; more; next = (protocol.Turn{}) {
				next.Instance = i
				more = turn(t, s, next).More
				if jobs := s.number("SELECT count(*) FROM jobs"); jobs > 1 {
					t.Fatalf("%d jobs are left after a turn, want that of the large family or plan alone", jobs)
				}
			}
			now, err := s.Plan(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			if got := now.Counts.Skipped + now.Counts.Cancelled; got != children {
				t.Errorf("%d children ended without a start, want %d", got, children)
			}
		})
	}
}

// Jobs are read in their order without a look at the others.
func TestJobsAreReadWithoutSorting(t *testing.T) {
	s := openTest(t, Options{})
	defer closeStore(t, s)
	if steps := explain(t, s.w, keptReleases); strings.Contains(strings.Join(steps, "; "), "TEMP B-TREE") {
		t.Errorf("releases that were left are sorted: %q", steps)
	}
	if steps := explain(t, s.w, nextOther); !strings.Contains(steps[0], "SEARCH jobs USING INDEX sqlite_autoindex_jobs_1") {
		t.Errorf("other jobs are looked for among all: %q", steps)
	}
}

// A turn goes on with what is left only as long as nobody waits for it.
func TestALongTurnIsCutShortForOthers(t *testing.T) {
	s := openTest(t, Options{})
	defer closeStore(t, s)
	newPlan(t, s, "large", manyTasks(5000)...)
	i := register(t, s, "n1")
	if did := turn(t, s, protocol.Turn{Instance: i}); did.Queued != protocol.DefaultBudget || !did.More {
		t.Errorf("alone it queued %d, more: %v; want %d, and more", did.Queued, did.More, protocol.DefaultBudget)
	}
	s.waiting.Add(1)
	if did := turn(t, s, protocol.Turn{Instance: i}); did.Queued != portion || !did.More {
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
	polltest.Until(t, time.Minute, "it is seen that it waits", has.awaited)
	has.unlock()
	if err := <-got; err != nil {
		t.Fatal(err)
	}
	if waits.awaited() {
		t.Error("who waited has the turn now, and nobody waits")
	}
}
