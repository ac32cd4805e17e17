package mongodb

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/event"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// guessingStore has a handle whose next turn ends the first of some tasks and has guessed the second. It returns them in their order.
func guessingStore(t *testing.T, uri string, m *event.CommandMonitor) (s *Store, turn protocol.Turn, tasks []taskDoc) {
	t.Helper()
	s = openMonitored(t, uri, m)
	s.trusts = time.Hour
	turn = protocol.Turn{Instance: flatPlan(t, s, 10), Slots: 1, Plugins: []string{"x"}, Start: true, Shares: &protocol.Shares{}}
	tasks, err := wire.Find[taskDoc](t.Context(), s.tasks, onlyQueued(nil), wire.Query{Sort: d("rank", -1, "_id", 1)})
	noError(t)(err)
	for i := range 2 {
		did, err := s.Turn(t.Context(), turn)
		if err != nil || len(did.Claimed) != 1 || oid(did.Claimed[0].Task.ID) != tasks[i].ID {
			t.Fatalf("claimed %v, %v; want the task at %d", did.Claimed, err, i)
		}
		turn.Ended = endings(did.Claimed)
	}
	if g := s.guesses[oid(turn.Instance.ID)]; len(g.docs) == 0 || g.docs[0].ID != tasks[2].ID {
		t.Fatalf("the next turn is guessed to claim %v, want the task at 2", idsOfTasks(g.docs))
	}
	return s, turn, tasks
}

// TestWhatAGuessIsWrongAbout has something change between two turns. The second one claims as if it had not guessed.
func TestWhatAGuessIsWrongAbout(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(s *Store, turn *protocol.Turn, tasks []taskDoc) error
		want   int // the place of the task that is claimed; 0: none is
		gone   bool
		status plan.Status // of the task at 2
	}{
		{"nothing", func(*Store, *protocol.Turn, []taskDoc) error { return nil }, 2, false, plan.Running},
		{"another task has a higher rank", func(s *Store, _ *protocol.Turn, tasks []taskDoc) error {
			_, err := s.tasks.UpdateByID(t.Context(), tasks[7].ID, d("$set", d("rank", int64(1e12))))
			return err
		}, 7, false, plan.Queued},
		{"another node has it", func(s *Store, _ *protocol.Turn, tasks []taskDoc) error {
			_, err := s.tasks.UpdateByID(t.Context(), tasks[2].ID, d("$set", d("node", "another")))
			return err
		}, 3, false, plan.Queued},
		{"its queue has no threads", func(s *Store, _ *protocol.Turn, tasks []taskDoc) error {
			_, err := s.queues.UpdateByID(t.Context(), tasks[2].Queue, d("$set", d("threads", 0), "$unset", d("unlimited", 1)))
			return err
		}, 0, false, plan.Queued},
		{"the turn serves another queue", func(_ *Store, turn *protocol.Turn, _ []taskDoc) error {
			turn.Plugins = []string{"y"}
			return nil
		}, 0, false, plan.Queued},
		{"its plan is closed", func(s *Store, _ *protocol.Turn, tasks []taskDoc) error {
			_, err := s.plans.UpdateByID(t.Context(), tasks[2].Plan, d("$set", d("closing", plan.ClosedByPerson)))
			return err
		}, 0, false, plan.Cancelled},
		{"the instance is gone", func(s *Store, turn *protocol.Turn, _ []taskDoc) error {
			_, err := s.instances.UpdateByID(t.Context(), oid(turn.Instance.ID), d("$set", d("gone", true)))
			return err
		}, 0, true, plan.Queued},
	} {
		t.Run(c.name, func(t *testing.T) {
			uri, _ := database(t)
			s, turn, tasks := guessingStore(t, uri, nil)
			noError(t)(c.change(s, &turn, tasks))
			did, err := s.Turn(t.Context(), turn)
			if errors.Is(err, plan.ErrInstanceGone) != c.gone || !c.gone && err != nil {
				t.Fatalf("the turn returned %v", err)
			}
			if c.want == 0 && len(did.Claimed) > 0 || c.want > 0 && (len(did.Claimed) != 1 || oid(did.Claimed[0].Task.ID) != tasks[c.want].ID) {
				t.Errorf("claimed %v, want the task at %d", did.Claimed, c.want)
			}
			got, err := wire.FindOne[taskDoc](t.Context(), s.tasks, d("_id", tasks[2].ID), wire.Query{})
			if err != nil || got.Status != c.status || c.status != plan.Running && (got.Attempt > 0 || got.Rescues > 0 || got.Ran || !got.Token.IsZero()) {
				t.Errorf("the guessed task is %v in attempt %d, %v; want %v, as if nobody had claimed it", got.Status, got.Attempt, err, c.status)
			}
		})
	}
}

// TestAChildIsAddedAsItsParentEnds adds it once the turn has read its preview, and before it writes the end.
func TestAChildIsAddedAsItsParentEnds(t *testing.T) {
	uri, _ := database(t)
	read := make(chan struct{}, 100)
	s, turn, tasks := guessingStore(t, uri, &event.CommandMonitor{Succeeded: func(_ context.Context, e *event.CommandSucceededEvent) {
		if e.CommandName == "aggregate" {
			read <- struct{}{}
		}
	}})
	other, no := openAt(t, uri), noError(t)
	for len(read) > 0 {
		<-read
	}
	child := plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Name: "child", Queue: plan.QueueID{ID: plan.ID(tasks[0].Queue)}, Needs: []plan.TaskID{turn.Ended[0].Task}}
	var first sync.Once
	s.Hook = func(bool) error {
		first.Do(func() {
			<-read
			no(other.AddTasks(t.Context(), planID(tasks[0].Plan), []plan.Task{child}))
		})
		return nil
	}
	for range 2 {
		did, err := s.Turn(t.Context(), turn)
		no(err)
		turn.Ended = endings(did.Claimed)
	}
	if got, err := s.Task(t.Context(), child.ID); err != nil || got.Status == plan.Held {
		t.Errorf("the child is %v, %v; want that the next turn has let it go", got.Status, err)
	}
}
