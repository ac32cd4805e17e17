package mongodb

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// submission makes a plan that is being submitted, and tasks to be added to it, which three commands insert.
func submission(t *testing.T, s *Store) (p plan.Plan, tasks []plan.Task) {
	t.Helper()
	no := noError(t)
	q, err := s.EnsureQueue(t.Context(), plan.Queue{Name: "q", Plugin: "x", Unlimited: true})
	no(err)
	tasks = make([]plan.Task, 2*addAtOnce+10)
	for i := range tasks {
		tasks[i] = plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Name: fmt.Sprint("t", i), Queue: q.ID}
		if i >= addAtOnce { // in another command
			tasks[i].Needs = []plan.TaskID{tasks[i-addAtOnce].ID}
		}
	}
	p, err = s.CreatePlan(t.Context(), plan.Plan{Name: "p", Size: len(tasks)})
	no(err)
	return p, tasks
}

// hooked is another handle on a store's database, with a hook.
func hooked(t *testing.T, s *Store, h store.Hook) *Store {
	t.Helper()
	other := newStore(s.Client, s.DB.Name(), Options{Hook: h})
	noError(t)(other.prepare(t.Context(), false))
	return other
}

// TestSubmittedTasksAreInsertedSideBySide holds back each insert until the others are about to be made too.
func TestSubmittedTasksAreInsertedSideBySide(t *testing.T) {
	s, _, no := openTest(t)
	p, tasks := submission(t, s)
	var begun atomic.Int64
	all := make(chan struct{})
	other := hooked(t, s, func(written bool) error {
		if written {
			return nil
		}
		switch n := begun.Add(1); {
		case n == 1:
			return nil // the plan is touched
		case n == 1+insertsAway:
			close(all)
		}
		select {
		case <-all:
			return nil
		case <-time.After(time.Minute):
			return errors.New("no other insert came")
		}
	})
	no(other.AddTasks(t.Context(), p.ID, tasks))
	no(s.Ready(t.Context(), p.ID))
}

// TestASubmissionDiesAmongItsInserts has the submitter die before and after each of the inserts that it makes side by side, and another one
// go on: whatever was in, nothing of the plan is to be had before, and all of it after.
func TestASubmissionDiesAmongItsInserts(t *testing.T) {
	s, _, no := openTest(t)
	for at := 0; ; at++ {
		p, tasks := submission(t, s)
		var mu sync.Mutex
		calls := 0
		dead := errors.New("dead")
		added := hooked(t, s, func(bool) error {
			mu.Lock()
			defer mu.Unlock()
			if calls++; calls > at {
				return dead
			}
			return nil
		}).AddTasks(t.Context(), p.ID, tasks)
		in, err := s.tasks.CountDocuments(t.Context(), d("plan", oid(p.ID.ID)))
		no(err)
		if ready := s.Ready(t.Context(), p.ID); int(in) < len(tasks) && !errors.Is(ready, plan.ErrConflict) {
			t.Errorf("died at %d with %d of %d tasks in: to make the plan ready: got %v, want %v", at, in, len(tasks), ready, plan.ErrConflict)
		}
		if int(in) < len(tasks) {
			no(s.AddTasks(t.Context(), p.ID, tasks))
			no(s.Ready(t.Context(), p.ID))
		}
		now, err := s.Plan(t.Context(), p.ID)
		no(err)
		if want := (plan.Counts{Held: addAtOnce + 10, Queued: addAtOnce}); now.Counts != want {
			t.Errorf("died at %d with %d tasks in: in the end the plan has %+v, want %+v", at, in, now.Counts, want)
		}
		if added == nil {
			if at != 2+2*3 { // the plan is touched, then three inserts
				t.Errorf("a submitter that asked %d times did not die: it needs other writes than this test knows", at)
			}
			return
		}
		if !errors.Is(added, dead) {
			t.Fatalf("died at %d: got %v", at, added)
		}
	}
}

// TestANameTakenMeanwhileTakesAllBack has another process take the name of one of the last tasks while the first are being inserted.
func TestANameTakenMeanwhileTakesAllBack(t *testing.T) {
	s, _, no := openTest(t)
	p, tasks := submission(t, s)
	var once sync.Once
	other := hooked(t, s, func(written bool) (err error) {
		once.Do(func() {
			err = s.AddTasks(t.Context(), p.ID, []plan.Task{{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Name: tasks[len(tasks)-1].Name, Queue: tasks[0].Queue}})
		})
		return err
	})
	if err := other.AddTasks(t.Context(), p.ID, tasks); !errors.Is(err, plan.ErrExists) {
		t.Errorf("got %v, want %v", err, plan.ErrExists)
	}
	in, err := s.tasks.CountDocuments(t.Context(), d("plan", oid(p.ID.ID)))
	no(err)
	if in != 1 {
		t.Errorf("%d tasks are in, want the other process's alone", in)
	}
}
