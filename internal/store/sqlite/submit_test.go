package sqlite

import (
	"errors"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/polltest"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// A rival is a plan that is being submitted, and another handle that does something once the first transaction of it is over.
type rival struct {
	s, other *Store
	plan     plan.Plan
	tasks    []plan.Task
	did      chan error
}

// newRival makes a plan of more tasks than two transactions insert, each but the first thousand with needs in its own and in the one before.
func newRival(t *testing.T, do func(*rival) error) *rival {
	var s *Store
	r := &rival{did: make(chan error, 1)}
	var once sync.Once
	s = openTest(t, Options{Hook: func(written bool) error {
		if !written || r.tasks == nil {
			return nil
		}
		once.Do(func() { // its turn is not over: it waits until the other one stands next in the line
			go func() { r.did <- do(r) }()
			seen := 0
			polltest.Holds(30*time.Second, func() bool {
				if seen++; !s.turn.awaited() { // once may be an attempt that is not waited with
					seen = 0
				}
				return seen == 3 || len(r.did) > 0
			})
		})
		return nil
	}})
	t.Cleanup(func() { closeStore(t, s) })
	r.s, r.other = s, openAt(t, s.path, Options{})
	t.Cleanup(func() { closeStore(t, r.other) })
	specs := manyTasks(2*insertAtOnce + 10)
	for i := insertAtOnce; i < len(specs); i++ {
		specs[i].needs = []string{specs[i-1].name, specs[i-insertAtOnce].name}
	}
	p, tasks := compile(t, s, "nightly", specs...)
	if _, err := s.CreatePlan(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	r.plan, r.tasks = p, tasks
	return r
}

// add adds the tasks, and returns with what error, when the other handle has done its own.
func (r *rival) add(t *testing.T) error {
	err := r.s.AddTasks(t.Context(), r.plan.ID, r.tasks)
	if did := <-r.did; did != nil {
		t.Fatal(did)
	}
	return err
}

// whole reports what is wrong with tasks, edges and gates.
func (r *rival) whole(t *testing.T) {
	t.Helper()
	in, err := r.s.Tasks(t.Context(), store.TaskQuery{Plan: r.plan.ID, Needs: true, Limit: 2 * len(r.tasks)})
	if err != nil || len(in) != len(r.tasks) {
		t.Fatalf("%d tasks are in (%v), want %d", len(in), err, len(r.tasks))
	}
	for i := range in {
		if in[i].ID != r.tasks[i].ID || !slices.Equal(in[i].Needs, r.tasks[i].Needs) {
			t.Fatalf("task %d is %s, which needs %v; want %s and %v", i, in[i].ID, in[i].Needs, r.tasks[i].ID, r.tasks[i].Needs)
		}
	}
	err = r.s.read(t.Context(), func(c *conn) error {
		q := c.query(`SELECT count(*), count(*) FILTER (WHERE waits / 256 <> (SELECT count(*) FROM kids AS k JOIN tasks AS t ON t.n = k.parent WHERE k.child = gates.n)) FROM gates`)
		if !q.one() || q.int(0) != insertAtOnce+10 || q.int(1) != 0 {
			t.Errorf("of %d gates %d wait for others than their parents, want %d and 0", q.int(0), q.int(1), insertAtOnce+10)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestWhatIsInOfManyTasksEndsWithThePlanThatIsCancelledMeanwhile(t *testing.T) {
	r := newRival(t, func(r *rival) error { return r.other.CancelPlan(t.Context(), r.plan.ID, false) })
	if err := r.add(t); !errors.Is(err, plan.ErrPlanEnded) {
		t.Errorf("got error %v, want %v", err, plan.ErrPlanEnded)
	}
	i := register(t, r.s, "n1")
	for more := true; more; {
		did, err := r.s.Sweep(t.Context(), protocol.Sweep{Instance: i})
		if err != nil {
			t.Fatal(err)
		}
		more = did.More
	}
	got, err := r.s.Plan(t.Context(), r.plan.ID)
	if err != nil || got.State != plan.PlanCancelled || got.Counts.Cancelled != insertAtOnce || got.Counts.Total() != insertAtOnce {
		t.Errorf("the plan is %v with %+v (%v), want it cancelled with the tasks of one transaction", got.State, got.Counts, err)
	}
}

func TestManyTasksAreAddedByOneOrByTwoAtOnce(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(*rival) error
	}{
		{"alone", func(*rival) error { return nil }},
		{"while another one adds the same", func(r *rival) error { return r.other.AddTasks(t.Context(), r.plan.ID, r.tasks) }},
		{"while another one adds some of them", func(r *rival) error { return r.other.AddTasks(t.Context(), r.plan.ID, r.tasks[:insertAtOnce+7]) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRival(t, c.do)
			if err := r.add(t); err != nil {
				t.Fatal(err)
			}
			r.whole(t)
		})
	}
}

func TestANameIsTakenWhileManyTasksAreAdded(t *testing.T) {
	r := newRival(t, func(r *rival) error {
		taker := plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Name: r.tasks[len(r.tasks)-1].Name, Queue: r.tasks[0].Queue}
		return r.other.AddTasks(t.Context(), r.plan.ID, []plan.Task{taker})
	})
	if err := r.add(t); !errors.Is(err, plan.ErrExists) {
		t.Errorf("got error %v, want %v", err, plan.ErrExists)
	}
}

func TestAnswersOfManyTasksWaitForOneFlush(t *testing.T) {
	r := newRival(t, func(*rival) error { return nil })
	flushes := 0
	flush := r.s.wal.flush
	r.s.wal.flush = func(f *os.File) error {
		flushes++
		got, err := r.other.Plan(t.Context(), r.plan.ID)
		if err != nil || got.Counts.Total() != len(r.tasks) {
			t.Errorf("at flush %d %d tasks are in (%v), want %d", flushes, got.Counts.Total(), err, len(r.tasks))
		}
		return flush(f)
	}
	if err := r.add(t); err != nil || flushes != 1 {
		t.Errorf("%d flushes (%v), want 1", flushes, err)
	}
}
