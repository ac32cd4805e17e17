package sqlite

import (
	"errors"
	"os"
	"sync"
	"testing"

	"github.com/seed-1177d267/sluice/plan"
)

func TestWhatIsInOfManyTasksEndsWithThePlanThatIsCancelledMeanwhile(t *testing.T) {
	s := openTest(t, Options{})
	defer closeStore(t, s)
	other := openAt(t, s.path, Options{})
	defer closeStore(t, other)
	p, tasks := compile(t, s, "nightly", manyTasks(2*submitBatch+1)...)
	if _, err := s.CreatePlan(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	s.wal.flush = func(*os.File) error { // the first of its transactions is over, and others have their turn
		var err error
		once.Do(func() { err = other.CancelPlan(t.Context(), p.ID) })
		return err
	}
	if err := s.AddTasks(t.Context(), p.ID, tasks); !errors.Is(err, plan.ErrPlanEnded) {
		t.Errorf("got error %v, want %v", err, plan.ErrPlanEnded)
	}
	i := register(t, s, "n1")
	for more := true; more; {
		did, err := s.Sweep(t.Context(), plan.Sweep{Instance: i})
		if err != nil {
			t.Fatal(err)
		}
		more = did.More
	}
	got, err := s.Plan(t.Context(), p.ID)
	if err != nil || got.State != plan.PlanCancelled || got.Counts.Cancelled != submitBatch || got.Counts.Total() != submitBatch {
		t.Errorf("the plan is %v with %+v (%v), want it cancelled with the tasks of one transaction", got.State, got.Counts, err)
	}
}
