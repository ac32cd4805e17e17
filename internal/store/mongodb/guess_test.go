package mongodb

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
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

// mixedTasks adds tasks to the store: w, a and g, one after the other, and what more adds.
func mixedTasks(t *testing.T, s *Store, of plan.Queue, more func(task func(name string) plan.Task, a plan.Task) []plan.Task) protocol.Turn {
	t.Helper()
	no := noError(t)
	s.trusts = time.Hour
	turn := protocol.Turn{Instance: flatPlan(t, s, 0), Slots: 1, Plugins: []string{"x"}, Start: true, Shares: &protocol.Shares{}}
	of.Name, of.Plugin, of.Unlimited = "mixed", "x", true
	q, err := s.EnsureQueue(t.Context(), of)
	no(err)
	p, err := s.CreatePlan(t.Context(), plan.Plan{Name: "some"})
	no(err)
	at := time.Now()
	task := func(name string) plan.Task {
		at = at.Add(time.Second)
		return plan.Task{ID: plan.TaskID{ID: plan.NewID(at)}, Name: name, Queue: q.ID}
	}
	tasks := []plan.Task{task("w"), task("a"), task("g")}
	no(s.AddTasks(t.Context(), p.ID, append(tasks, more(task, tasks[1])...)))
	no(s.Ready(t.Context(), p.ID))
	return turn
}

// TestAGuessedTaskIsHandedOutOnce has a rate of the queue's group, which a claim spends for its tasks, and the turns want one task, or two.
func TestAGuessedTaskIsHandedOutOnce(t *testing.T) {
	uri, _ := database(t)
	no, s := noError(t), openAt(t, uri)
	no(s.PutGroup(t.Context(), plan.Group{}, plan.Group{Name: "g", GroupSettings: plan.GroupSettings{
		Rate: plan.Rate{Starts: 1000, Per: plan.Duration(time.Second), Burst: 1000},
	}}))
	of := plan.Queue{}
	of.Group = "g"
	turn := mixedTasks(t, s, of, func(task func(string) plan.Task, _ plan.Task) []plan.Task {
		return []plan.Task{task("b"), task("c"), task("d"), task("e")}
	})
	had := map[plan.TaskID]bool{}
	for i := range 5 {
		turn.Slots = 1
		if i == 2 {
			turn.Slots = 2
		}
		did, err := s.Turn(t.Context(), turn)
		no(err)
		for _, c := range did.Claimed {
			got, err := wire.FindOne[taskDoc](t.Context(), s.tasks, d("_id", oid(c.Task.ID)), wire.Query{})
			if err != nil || got.Status != plan.Running || got.Token != bson.ObjectID(c.Token) || had[c.Task] {
				t.Errorf("turn %d has %s, which is %v (%v), and was handed out before: %t", i, c.Name, got.Status, err, had[c.Task])
			}
			had[c.Task] = true
		}
		if len(did.Claimed) != turn.Slots || len(did.Lost) > 0 {
			t.Errorf("turn %d claimed %d and lost %v, want %d and none", i, len(did.Claimed), did.Lost, turn.Slots)
		}
		turn.Ended = endings(did.Claimed)
	}
}

// TestAGuessIsSeenByAClaimThatReadsAnew has a turn queue items, after which it reads what is next without its preview.
func TestAGuessIsSeenByAClaimThatReadsAnew(t *testing.T) {
	for _, elsewhere := range []bool{false, true} {
		uri, _ := database(t)
		no, s := noError(t), openAt(t, uri)
		other, err := s.EnsureQueue(t.Context(), plan.Queue{Name: "other", Plugin: "y", Unlimited: true})
		no(err)
		turn := mixedTasks(t, s, plan.Queue{Sort: plan.SortFIFO}, func(task func(string) plan.Task, a plan.Task) []plan.Task {
			h, f := task("h"), task("f")
			f.Needs, f.Foreach = []plan.TaskID{a.ID}, &plan.Foreach{List: []byte(`[1, 2, 3]`)}
			if elsewhere {
				f.Queue = other.ID
				return []plan.Task{f}
			}
			return []plan.Task{h, f}
		})
		for i, want := range []string{"w", "a", "g"} {
			did, err := s.Turn(t.Context(), turn)
			no(err)
			if len(did.Claimed) != 1 || did.Claimed[0].Name != want {
				t.Errorf("turn %d claimed %v, want %s (the items are in another queue: %t)", i, did.Claimed, want, elsewhere)
			}
			turn.Ended = endings(did.Claimed)
		}
	}
}

// TestATaskThatIsGivenBackIsAsItWas has a turn guess a task that reads a file, which no other program may claim, and then serve another queue.
func TestATaskThatIsGivenBackIsAsItWas(t *testing.T) {
	uri, _ := database(t)
	no, s := noError(t), openAt(t, uri)
	turn := mixedTasks(t, s, plan.Queue{Sort: plan.SortFIFO}, func(task func(string) plan.Task, _ plan.Task) []plan.Task {
		h := task("h")
		h.Foreach = &plan.Foreach{Lines: "list"}
		return []plan.Task{h}
	})
	h, err := wire.FindOne[taskDoc](t.Context(), s.tasks, d("name", "h"), wire.Query{Fields: ones("_id")})
	no(err)
	now := func() (doc bson.D) {
		no(s.tasks.FindOne(t.Context(), d("_id", h.ID)).Decode(&doc))
		return slices.DeleteFunc(doc, func(e bson.E) bool {
			return !slices.Contains([]string{"node", "status", "ours", "started", "ran", "token"}, e.Key)
		})
	}
	was := now()
	for range 3 {
		did, err := s.Turn(t.Context(), turn)
		no(err)
		turn.Ended = endings(did.Claimed)
	}
	if guessed := s.guesses[oid(turn.Instance.ID)].docs; len(guessed) != 1 || guessed[0].ID != h.ID {
		t.Fatalf("the guess is %v, want h", idsOfTasks(guessed))
	}
	turn.Plugins = []string{"y"}
	if did, err := s.Turn(t.Context(), turn); err != nil || len(did.Claimed) > 0 {
		t.Errorf("claimed %v, %v", did.Claimed, err)
	}
	if is := now(); !reflect.DeepEqual(is, was) {
		t.Errorf("h was %v and is %v", was, is)
	}
}

// TestAGuessedTaskIsCancelled has a person cancel a task that a turn has guessed, before the turn gives it back.
func TestAGuessedTaskIsCancelled(t *testing.T) {
	uri, _ := database(t)
	no := noError(t)
	s, turn, tasks := guessingStore(t, uri, nil)
	other := openAt(t, uri)
	_, err := s.tasks.UpdateByID(t.Context(), tasks[7].ID, d("$set", d("rank", int64(1e12))))
	no(err)
	writes := 0
	s.Hook = func(written bool) error {
		if !written {
			if writes++; writes == 3 {
				no(other.CancelTask(t.Context(), taskID(tasks[2].ID)))
			}
		}
		return nil
	}
	_, err = s.Turn(t.Context(), turn)
	no(err)
	if got, err := s.Task(t.Context(), taskID(tasks[2].ID)); err != nil || got.Status != plan.Cancelled {
		t.Errorf("a task that nobody ran is %v (%v), want cancelled", got.Status, err)
	}
}

// TestATurnFailsAfterItsGuess has the context of a turn end with the command that ends and claims, before the preview is read.
func TestATurnFailsAfterItsGuess(t *testing.T) {
	uri, _ := database(t)
	ctx, cancel := context.WithCancel(t.Context())
	var armed atomic.Bool
	s, turn, tasks := guessingStore(t, uri, &event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStartedEvent) {
		if e.CommandName == "aggregate" && armed.Load() {
			<-ctx.Done()
		}
	}})
	armed.Store(true)
	s.Hook = func(written bool) error {
		if written {
			cancel()
		}
		return nil
	}
	if _, err := s.Turn(ctx, turn); err == nil {
		t.Error("the turn returned no error")
	}
	got, err := wire.FindOne[taskDoc](t.Context(), s.tasks, d("_id", tasks[2].ID), wire.Query{})
	if err != nil || got.Status != plan.Queued || got.Attempt != 0 || got.Ran || got.Rescues > 0 || !got.Started.IsZero() {
		t.Errorf("the guessed task is %v (%v) in attempt %d, ran %t, started %v; nobody ran it", got.Status, err, got.Attempt, got.Ran, got.Started)
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
