package mongodb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// flatPlan makes a plan of tasks that need nothing, and its queue ready for a node.
func flatPlan(t *testing.T, s *Store, tasks int) (id plan.InstanceID) {
	t.Helper()
	no := noError(t)
	q, err := s.EnsureQueue(t.Context(), plan.Queue{Name: "q", Plugin: "x", Unlimited: true})
	no(err)
	p, err := s.CreatePlan(t.Context(), plan.Plan{Name: "flat"})
	no(err)
	all := make([]plan.Task, tasks)
	for i := range all {
		all[i] = plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Name: fmt.Sprint("t", i), Queue: q.ID}
	}
	no(s.AddTasks(t.Context(), p.ID, all))
	no(s.Ready(t.Context(), p.ID))
	id = plan.InstanceID{ID: plan.NewID(time.Now())}
	no(s.Register(t.Context(), plan.Instance{ID: id, Node: "n1", Plugins: []string{"x"}}))
	return id
}

// readyPlan makes a plan that runs: its only task waits for tomorrow.
func readyPlan(t *testing.T, s *Store) plan.PlanID {
	t.Helper()
	no := noError(t)
	q, err := s.EnsureQueue(t.Context(), plan.Queue{Name: "later", Plugin: "x", Unlimited: true})
	no(err)
	p, err := s.CreatePlan(t.Context(), plan.Plan{Name: "ready"})
	no(err)
	later := plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Name: "later", Queue: q.ID, NotBefore: time.Now().Add(24 * time.Hour)}
	no(s.AddTasks(t.Context(), p.ID, []plan.Task{later}))
	no(s.Ready(t.Context(), p.ID))
	return p.ID
}

// endings ends what was claimed.
func endings(claimed []protocol.ClaimedTask) (ended []protocol.Ending) {
	for _, c := range claimed {
		ended = append(ended, protocol.Ending{Claim: c.Claim, Status: plan.Succeeded})
	}
	return ended
}

// TestWhatATurnAsksOfTheServer counts the commands of a turn that ends and claims a hundred tasks: what they cost is what a task costs.
func TestWhatATurnAsksOfTheServer(t *testing.T) {
	uri, _ := database(t)
	var mu sync.Mutex
	var asked []string
	s := openMonitored(t, uri, &event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStartedEvent) {
		c, _ := e.Command.Index(0).Value().StringValueOK()
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, e.CommandName+" "+c)
	}})
	turn := protocol.Turn{Instance: flatPlan(t, s, 400), Slots: 100, Plugins: []string{"x"}, Start: true}
	for range 3 {
		asked = nil
		did, err := s.Turn(t.Context(), turn)
		if err != nil || len(did.Claimed) != 100 || len(did.Lost) > 0 {
			t.Fatalf("claimed %d and lost %d tasks, %v; want 100 and none", len(did.Claimed), len(did.Lost), err)
		}
		turn.Ended, turn.Plan = endings(did.Claimed), did.Claimed[0].Plan // it ends with none of these
	}
	slices.Sort(asked)
	want := []string{
		"aggregate instances", "delete work", "find joins", "find plans", "find tasks", "find tasks", "insert work",
		"update tasks", "update tasks", "update tasks", "update tasks",
	}
	if !slices.Equal(asked, want) {
		t.Errorf("a turn asks\n\t%v, want\n\t%v:\nthe tasks to claim and the children of those that ended are read, and two commands each end and claim", asked, want)
	}

	turn.Ended, turn.Plugins = nil, []string{"y"}
	asked = nil
	if did, err := s.Turn(t.Context(), turn); err != nil || len(did.Claimed) > 0 || did.Over {
		t.Fatalf("claimed %d tasks, over is %v, %v; want none, and that the plan is not over", len(did.Claimed), did.Over, err)
	}
	slices.Sort(asked)
	if want := []string{"aggregate instances"}; !slices.Equal(asked, want) {
		t.Errorf("a turn that finds nothing asks\n\t%v, want\n\t%v", asked, want)
	}
}

// TestWhatATurnOfManyQueuesAsks counts the commands of a turn that ends and claims a hundred tasks of some of many queues. The tasks of each
// are read by a command of its own, several at the same time.
func TestWhatATurnOfManyQueuesAsks(t *testing.T) {
	const few = 4 // for each further one of a claim: its tasks are read, and claimed by two commands, and their plans are read
	for _, c := range []struct {
		queues, most int
	}{
		{2, 14}, {20, 12 + atOnce}, {fewQueues + 8, 12 + atOnce + 3*(mostSought+2)}, // of that many those with work are found one by one, between ranges that have none
	} {
		t.Run(fmt.Sprint(c.queues), func(t *testing.T) {
			uri, _ := database(t)
			no := noError(t)
			var mu sync.Mutex
			var asked []string
			s := openMonitored(t, uri, &event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStartedEvent) {
				c, _ := e.Command.Index(0).Value().StringValueOK()
				mu.Lock()
				defer mu.Unlock()
				asked = append(asked, e.CommandName+" "+c)
			}})
			id := flatPlan(t, s, 0)
			p, err := s.CreatePlan(t.Context(), plan.Plan{Name: "wide"})
			no(err)
			var all []plan.Task
			for i := range c.queues {
				q, err := s.EnsureQueue(t.Context(), plan.Queue{Name: fmt.Sprint("q", i), Plugin: "x", Unlimited: true})
				no(err)
				for k := range 600 / c.queues {
					all = append(all, plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Name: fmt.Sprint("t", i, "-", k), Queue: q.ID})
				}
			}
			no(s.AddTasks(t.Context(), p.ID, all))
			no(s.Ready(t.Context(), p.ID))
			turn := protocol.Turn{Instance: id, Slots: 100, Plugins: []string{"x"}, Start: true}
			for range 3 {
				asked = nil
				did, err := s.Turn(t.Context(), turn)
				if err != nil || len(did.Claimed) != 100 || len(did.Lost) > 0 {
					t.Fatalf("claimed %d and lost %d tasks, %v; want 100 and none", len(did.Claimed), len(did.Lost), err)
				}
				turn.Ended = endings(did.Claimed)
			}
			goes := 0
			for _, a := range asked {
				if a == "aggregate tasks" {
					goes++
				}
			}
			if most := c.most + few*max(0, goes-1); goes == 0 || len(asked) > most {
				slices.Sort(asked)
				t.Errorf("it asks %d times, want %d at most; all: %v", len(asked), most, asked)
			}
		})
	}
}

// TestTasksOfAClosedPlanEndAsTheyAreClaimed has two queues in which a plan that was just closed takes turns.
func TestTasksOfAClosedPlanEndAsTheyAreClaimed(t *testing.T) {
	s, _, no := openTest(t)
	id := flatPlan(t, s, 0)
	var queues []plan.Queue
	for _, name := range []string{"q", "q2"} {
		q, err := s.EnsureQueue(t.Context(), plan.Queue{Name: name, Plugin: "x", Unlimited: true})
		no(err)
		queues = append(queues, q)
	}
	var plans []plan.PlanID
	for k, name := range []string{"closed", "open"} {
		p, err := s.CreatePlan(t.Context(), plan.Plan{Name: name})
		no(err)
		var all []plan.Task
		for i := range 60 {
			all = append(all, plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now().Add(time.Duration(k-2) * time.Minute))}, Name: fmt.Sprint("t", i), Queue: queues[i%2].ID})
		}
		no(s.AddTasks(t.Context(), p.ID, all))
		no(s.Ready(t.Context(), p.ID))
		plans = append(plans, p.ID)
	}
	turn := protocol.Turn{Instance: id, Slots: 8, Plugins: []string{"x"}, Start: true, Shares: &protocol.Shares{}}
	_, err := s.Turn(t.Context(), turn) // it knows of both
	no(err)
	_, err = s.plans.UpdateByID(t.Context(), oid(plans[0].ID), d("$set", d("closing", plan.ClosedByPerson)))
	no(err)
	const slots = 20
	turn.Slots = slots
	did, err := s.Turn(t.Context(), turn)
	no(err)
	of := map[string]int{}
	for _, c := range did.Claimed {
		of[c.PlanName+" in "+c.QueueName]++
	}
	if len(did.Claimed) != slots || of["open#1 in q"] != slots/2 || of["open#1 in q2"] != slots/2 {
		t.Errorf("claimed %v, want %d of the open plan from each queue", of, slots/2)
	}
	ended, err := wire.Find[taskDoc](t.Context(), s.tasks, d("plan", oid(plans[0].ID), "status", plan.Cancelled), wire.Query{Fields: d("attempt", 1)})
	if no(err); len(ended) != slots/2 || slices.ContainsFunc(ended, func(t taskDoc) bool { return t.Attempt != 0 }) {
		t.Errorf("%d of the closed plan have ended, want the %d that were claimed first, as without an attempt", len(ended), slots/2)
	}
}

// TestABusyNodeLetsLieWhatWouldOnlyQueueMore has a dead node leave a parent whose child is still held.
func TestABusyNodeLetsLieWhatWouldOnlyQueueMore(t *testing.T) {
	s, _, no := openTest(t)
	id := flatPlan(t, s, 50)
	q, err := s.EnsureQueue(t.Context(), plan.Queue{Name: "q"})
	no(err)
	parent := plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Queue: q.ID}
	child := plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Queue: q.ID, Needs: []plan.TaskID{parent.ID}}
	no(s.AddTasks(t.Context(), plan.PlanID{}, []plan.Task{parent, child}))
	_, err = s.tasks.UpdateByID(t.Context(), oid(parent.ID.ID), d("$set", d("status", plan.Succeeded, "complete", true), "$unset", d("open", 1)))
	no(err)
	_, err = s.work.InsertOne(t.Context(), workDoc{ID: bson.NewObjectID(), Kind: workRelease, Tasks: []bson.ObjectID{oid(parent.ID.ID)}})
	no(err)

	turn := func() protocol.Turned {
		t.Helper()
		did, err := s.Turn(t.Context(), protocol.Turn{Instance: id, Slots: 5, Plugins: []string{"x"}})
		no(err)
		return did
	}
	want := func(when string, status plan.Status) {
		t.Helper()
		if got, err := s.Task(t.Context(), child.ID); err != nil || got.Status != status {
			t.Errorf("%s the child is %v, %v; want %v", when, got.Status, err, status)
		}
	}
	s.ample, s.resumed = true, time.Now()
	if did := turn(); !did.More || len(did.Claimed) != 5 {
		t.Errorf("claimed %d tasks, more is %v; want 5 and that there is more to release", len(did.Claimed), did.More)
	}
	want("while there is enough else to do", plan.Held)
	s.resumed = time.Now().Add(-passBy)
	if did := turn(); did.More {
		t.Error("there is more to release, want none")
	}
	want("after a while, when its turn comes beside the plan,", plan.Claimed)
}

// TestABusyNodeClaimsWhileItEnds has the first write of a turn wait until the turn looks for tasks to claim.
func TestABusyNodeClaimsWhileItEnds(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(s *Store, turn *protocol.Turn) error
		beside bool
	}{
		{"only successes", func(*Store, *protocol.Turn) error { return nil }, true},
		{"a failure", func(_ *Store, turn *protocol.Turn) error { turn.Ended[7].Status = plan.Failed; return nil }, false},
		{"one that is tried again", func(_ *Store, turn *protocol.Turn) error {
			turn.Ended[7].Status, turn.Ended[7].Delay = plan.Held, time.Hour
			return nil
		}, false},
		{"something was left", func(s *Store, _ *protocol.Turn) error {
			_, err := s.work.InsertOne(t.Context(), workDoc{ID: bson.NewObjectID(), Kind: workRelease, Tasks: []bson.ObjectID{bson.NewObjectID()}})
			s.resumed = time.Time{}
			return err
		}, false},
		{"it was idle before", func(s *Store, _ *protocol.Turn) error { s.claimedAt = time.Now().Add(-justNow); return nil }, false},
		{"few", func(_ *Store, turn *protocol.Turn) error { turn.Ended = turn.Ended[:manyEnded-1]; return nil }, false},
		{"a queue with a limit", func(s *Store, turn *protocol.Turn) error {
			q, err := s.EnsureQueue(t.Context(), plan.Queue{Name: "q"})
			if err == nil {
				err = s.SetQueue(t.Context(), plan.Queue{ID: q.ID, Name: "q", Plugin: "x", Threads: 300})
			}
			return err
		}, false},
		{"a node with a limit", func(s *Store, turn *protocol.Turn) error {
			if err := s.SetMaxThreads(t.Context(), "n1", 300); err != nil {
				return err
			}
			_, err := s.Beat(t.Context(), protocol.Beat{Instance: turn.Instance})
			return err
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			uri, _ := database(t)
			no := noError(t)
			looked := make(chan struct{}, 100)
			s := openMonitored(t, uri, &event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStartedEvent) {
				if e.CommandName == "find" && e.Command.Lookup("filter", "queue").Type != 0 {
					looked <- struct{}{}
				}
			}})
			turn := protocol.Turn{Instance: flatPlan(t, s, 300), Slots: 100, Plugins: []string{"x"}, Start: true}
			did, err := s.Turn(t.Context(), turn)
			no(err)
			turn.Ended = endings(did.Claimed)
			no(c.change(s, &turn))
			for len(looked) > 0 {
				<-looked
			}
			var first sync.Once
			beside := false
			s.Hook = func(bool) error {
				first.Do(func() {
					wait := 100 * time.Millisecond
					if c.beside {
						wait = time.Minute
					}
					select {
					case <-looked:
						beside = true
					case <-time.After(wait):
					}
				})
				return nil
			}
			did, err = s.Turn(t.Context(), turn)
			if err != nil || len(did.Claimed) != 100 || len(did.Lost) > 0 {
				t.Errorf("claimed %d and lost %d tasks, %v; want 100 and none", len(did.Claimed), len(did.Lost), err)
			}
			if beside != c.beside {
				t.Errorf("it claims while it ends: %v, want %v", beside, c.beside)
			}
		})
	}
}

// TestWhatManyEndingsQueueIsClaimedAtOnce has a turn claim beside its endings, and find too few.
func TestWhatManyEndingsQueueIsClaimedAtOnce(t *testing.T) {
	s, _, no := openTest(t)
	turn := protocol.Turn{Instance: flatPlan(t, s, 101), Slots: 100, Plugins: []string{"x"}, Start: true}
	did, err := s.Turn(t.Context(), turn)
	no(err)
	q, err := s.EnsureQueue(t.Context(), plan.Queue{Name: "q"})
	no(err)
	child := plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Queue: q.ID, Needs: []plan.TaskID{did.Claimed[0].Task}}
	no(s.AddTasks(t.Context(), onlyPlan(t, s), []plan.Task{child}))
	turn.Ended = endings(did.Claimed)
	if s.ample = true; len(turn.Ended) < manyEnded {
		t.Fatalf("%d tasks end, want many", len(turn.Ended))
	}
	if did, err = s.Turn(t.Context(), turn); err != nil || len(did.Claimed) != 2 || did.Claimed[1].Task != child.ID {
		t.Errorf("claimed %v, %v; want the one task that was left, and the child", did.Claimed, err)
	}
}

func succeededOf(t *testing.T, s *Store) map[plan.TaskID]bool {
	t.Helper()
	tasks, err := s.Tasks(t.Context(), store.TaskQuery{Statuses: []plan.Status{plan.Succeeded}, Limit: 1000})
	noError(t)(err)
	done := map[plan.TaskID]bool{}
	for i := range tasks {
		done[tasks[i].ID] = true
	}
	return done
}

// TestATurnThatClaimsBesideItsEndingsIsKilled kills it before and after each of its writes. Its answer is lost, or the process dies.
func TestATurnThatClaimsBesideItsEndingsIsKilled(t *testing.T) {
	killed := errors.New("killed")
	for _, c := range []struct {
		name        string
		after, dies bool
	}{
		{"before a write, and dies", false, true}, {"after a write, and dies", true, true},
		{"before a write, and lives", false, false}, {"after a write, and lives", true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			for at := 1; !t.Failed(); at++ {
				s, _, no := openTest(t)
				turn := protocol.Turn{Instance: flatPlan(t, s, 300), Slots: 100, Plugins: []string{"x"}, Start: true}
				did, err := s.Turn(t.Context(), turn)
				no(err)
				turn.Ended, turn.Plan = endings(did.Claimed), did.Claimed[0].Plan
				if len(turn.Ended) < manyEnded || !s.ample {
					t.Fatal("it does not claim beside its endings")
				}
				var mu sync.Mutex
				writes, tripped := 0, false
				s.Hook = func(written bool) error {
					mu.Lock()
					defer mu.Unlock()
					if written == c.after {
						writes++
					}
					if tripped = tripped && c.dies || writes == at && written == c.after; tripped {
						return killed
					}
					return nil
				}
				if did, err = s.Turn(t.Context(), turn); err == nil {
					if at < 5 {
						t.Errorf("a turn made %d writes, want more", at-1)
					}
					break
				}
				s.Hook = nil
				if c.dies {
					next := plan.InstanceID{ID: plan.NewID(time.Now())}
					no(s.Register(t.Context(), plan.Instance{ID: next, Node: "n1", Plugins: []string{"x"}}))
					_, err := s.Rescue(t.Context(), turn.Instance, -1)
					no(err)
					turn.Instance, turn.Ended = next, nil
				}
				done := succeededOf(t, s)
				for over := false; !over; {
					did, err := s.Turn(t.Context(), turn)
					no(err)
					turn.Ended = endings(did.Claimed)
					for _, task := range did.Claimed {
						if done[task.Task] {
							t.Errorf("killed at write %d: task %s succeeded and is claimed again", at, task.Name)
						}
					}
					if len(did.Claimed) == 0 && !did.More {
						_, err := s.Sweep(t.Context(), protocol.Sweep{Instance: turn.Instance, Plan: turn.Plan})
						no(err)
					}
					over = did.Over
				}
				if got := len(succeededOf(t, s)); got != 300 {
					t.Errorf("killed at write %d: %d tasks succeeded, want 300", at, got)
				}
			}
		})
	}
}

// TestWhoCannotTakeWhatItQueuedWakesOthers has a node of one plugin end parents of tasks of another.
func TestWhoCannotTakeWhatItQueuedWakesOthers(t *testing.T) {
	s, _, no := openTest(t)
	turn := protocol.Turn{Instance: flatPlan(t, s, 10), Slots: 3, Plugins: []string{"x"}, Start: true}
	did, err := s.Turn(t.Context(), turn)
	no(err)
	y, err := s.EnsureQueue(t.Context(), plan.Queue{Name: "y", Plugin: "y", Unlimited: true})
	no(err)
	children := make([]plan.Task, 2)
	for i := range children {
		children[i] = plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Name: fmt.Sprint("child", i), Queue: y.ID, Needs: []plan.TaskID{did.Claimed[i].Task}}
	}
	no(s.AddTasks(t.Context(), onlyPlan(t, s), children))
	other := plan.InstanceID{ID: plan.NewID(time.Now())}
	no(s.Register(t.Context(), plan.Instance{ID: other, Node: "n2", Plugins: []string{"y"}}))
	woken := func() int64 {
		t.Helper()
		told, err := s.Beat(t.Context(), protocol.Beat{Instance: other})
		no(err)
		return told.Wake
	}
	end := func(ending protocol.Ending, slots int) {
		t.Helper()
		_, err := s.Turn(t.Context(), protocol.Turn{Instance: turn.Instance, Ended: []protocol.Ending{ending}, Slots: slots, Plugins: turn.Plugins, Start: true})
		no(err)
	}
	ended := endings(did.Claimed)
	s.woken = time.Time{}
	before := woken()
	end(ended[0], 1)
	first := woken()
	if first != before+1 {
		t.Errorf("the counter went from %d to %d as a task of another plugin was queued and one of this one claimed, want 1 more", before, first)
	}
	s.woken = time.Now()
	end(ended[1], 1)
	s.woken = time.Now().Add(-wakeEvery)
	woken() // pays what is owed, after it has read the counter
	if second := woken(); second != first+1 {
		t.Errorf("the counter went from %d to %d though the last wake was too short a time ago, want 1 more", first, second)
	}
	s.woken = time.Time{}
	end(ended[2], 1)
	if third := woken(); third != first+1 {
		t.Errorf("the counter went from %d to %d though nothing was queued, want no more", first+1, third)
	}
}

// TestAPlanThatIsClosedAsItsTasksAreClaimedAhead has a child fail as it is released, whose plan a failure stops.
func TestAPlanThatIsClosedAsItsTasksAreClaimedAhead(t *testing.T) {
	s, _, no := openTest(t)
	id := flatPlan(t, s, 0)
	q, err := s.EnsureQueue(t.Context(), plan.Queue{Name: "q"})
	no(err)
	p, err := s.CreatePlan(t.Context(), plan.Plan{Name: "stops", OnFailure: plan.Stop})
	no(err)
	tasks := make([]plan.Task, 301)
	for i := range tasks {
		tasks[i] = plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Name: fmt.Sprint("t", i), Queue: q.ID}
	}
	fails := &tasks[300]
	fails.Needs, fails.Foreach = []plan.TaskID{tasks[0].ID}, &plan.Foreach{Value: "needs.t0"}
	no(s.AddTasks(t.Context(), p.ID, tasks))
	no(s.Ready(t.Context(), p.ID))
	turn := protocol.Turn{Instance: id, Slots: 100, Plugins: []string{"x"}, Start: true}
	did, err := s.Turn(t.Context(), turn)
	no(err)
	if turn.Ended = endings(did.Claimed); len(turn.Ended) != 100 || !s.ample {
		t.Fatalf("%d tasks were claimed, want 100 and more to claim", len(turn.Ended))
	}
	turn.Ended[slices.IndexFunc(turn.Ended, func(e protocol.Ending) bool { return e.Task == tasks[0].ID })].Output = []byte(`"no list"`)
	if did, err = s.Turn(t.Context(), turn); err != nil || len(did.Claimed) > 0 {
		t.Errorf("%d tasks of a plan that the same turn closed are handed out, %v; want none", len(did.Claimed), err)
	}
	got, err := s.Plan(t.Context(), p.ID)
	if no(err); got.State != plan.PlanFailed || got.Counts.Running > 0 {
		t.Errorf("the plan is %v with %d running tasks, want failed and none", got.State, got.Counts.Running)
	}
	if got, err := s.Task(t.Context(), fails.ID); err != nil || got.Status != plan.Failed {
		t.Errorf("the foreach task is %v, %v; want failed", got.Status, err)
	}
}

// TestRoundTripsOfATurn counts the commands of a node of few threads: with one at a time each command is a round trip, for which its tasks
// wait.
func TestRoundTripsOfATurn(t *testing.T) {
	const tasks = 40
	look := "aggregate instances"
	flat := []string{look, "update tasks"}                                  // it ends and claims while it reads all else
	chain := []string{look, "update tasks", "update tasks", "update tasks"} // it ends, reads, queues the child and claims it, one after the other
	for _, c := range []struct {
		name    string
		threads int
		needs   int // a task needs the one that comes so many before it
		inPlan  bool
		own     bool // the node is there for the plan
		group   string
		want    []string
	}{
		{"plain tasks", 1, 0, true, false, "", flat},
		{"plain tasks of a group", 1, 0, true, false, "g", flat},
		{"tasks of no plan", 1, 0, false, false, "", flat},
		{"plain tasks for 8 threads", 8, 0, true, false, "", flat},
		{"a chain of a node's own plan", 1, 1, true, true, "", chain},
		{"8 chains for 8 threads", 8, 8, true, false, "", chain},
	} {
		t.Run(c.name, func(t *testing.T) {
			uri, _ := database(t)
			no := noError(t)
			var mu sync.Mutex
			var asked []string
			s := openMonitored(t, uri, &event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStartedEvent) {
				c, _ := e.Command.Index(0).Value().StringValueOK()
				mu.Lock()
				defer mu.Unlock()
				if e.CommandName != "hello" { // which sets the clock, each 10 s
					asked = append(asked, e.CommandName+" "+c)
				}
			}})
			s.trusts = time.Hour
			turn := protocol.Turn{Instance: flatPlan(t, s, 0), Slots: c.threads, Plugins: []string{"x"}, Start: true, Shares: &protocol.Shares{}}
			if c.group != "" {
				no(s.PutGroup(t.Context(), plan.Group{}, plan.Group{Name: c.group}))
			}
			of := plan.Queue{Name: "of" + c.group, Plugin: "x", Unlimited: true}
			of.Group = c.group
			q, err := s.EnsureQueue(t.Context(), of)
			no(err)
			all := make([]plan.Task, tasks)
			for i := range all {
				all[i] = plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Name: fmt.Sprint("t", i), Queue: q.ID}
				if k := i - c.needs; c.needs > 0 && k >= 0 {
					all[i].Needs = []plan.TaskID{all[k].ID}
				}
			}
			if c.inPlan {
				p, err := s.CreatePlan(t.Context(), plan.Plan{Name: "some"})
				no(err)
				no(s.AddTasks(t.Context(), p.ID, all))
				no(s.Ready(t.Context(), p.ID))
				if c.own {
					turn.Plan = p.ID
				}
			} else {
				no(s.AddTasks(t.Context(), plan.PlanID{}, all))
			}
			s.owed = false     // what was made above wakes nobody any more
			for i := range 4 { // the first ones find out what there is
				asked = nil
				did, err := s.Turn(t.Context(), turn)
				if err != nil || len(did.Claimed) == 0 || len(did.Lost) > 0 {
					t.Fatalf("claimed %d and lost %d tasks, %v; want some and none", len(did.Claimed), len(did.Lost), err)
				}
				if slices.Sort(asked); i > 1 && !slices.Equal(asked, c.want) {
					t.Errorf("turn %d asks\n\t%v, want\n\t%v", i+1, asked, c.want)
				}
				turn.Ended = endings(did.Claimed)
			}
			turn.Slots = 0
			_, err = s.Turn(t.Context(), turn)
			no(err)
			if n, err := s.tasks.CountDocuments(t.Context(), d("open", true, "status", finished)); n != 0 || err != nil {
				t.Errorf("%d ended tasks are marked still (%v), want none", n, err)
			}
			turn.Slots, turn.Ended, turn.Plugins, asked = c.threads, nil, []string{"y"}, nil
			if _, err := s.Turn(t.Context(), turn); err != nil || !slices.Equal(asked, []string{look}) {
				t.Errorf("a turn that finds nothing asks %v (%v), want %v", asked, err, look)
			}
		})
	}
}
