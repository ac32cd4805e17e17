package mongodb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/compiler"
	"github.com/seed-1177d267/sluice/internal/mongotest"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// errDead ends the work of a handle whose process is dead.
var errDead = errors.New("its process is dead")

// A late write is held back, before it is made, until others have done what they do meanwhile. The process dies after it.
type late struct {
	at      int  // which write of the handle; 0: none
	met     bool // the handle had so many writes
	writes  int
	reached chan struct{}
	free    chan struct{}
}

func newLate(at int) *late {
	return &late{at: at, reached: make(chan struct{}), free: make(chan struct{})}
}

func (l *late) hook(written bool) error {
	switch {
	case written && l.met:
		return errDead
	case written:
		return nil
	case l.met:
		return errDead
	}
	if l.writes++; l.writes == l.at {
		l.met = true
		close(l.reached)
		<-l.free
	}
	return nil
}

// A rescued is a plan one of whose nodes, victim, is rescued or leaves while one of its writes is under way.
type rescued struct {
	*testing.T
	s      *Store
	plan   plan.Plan
	victim plan.InstanceID
	nodes  int
}

// newRescued makes the plan, and has the victim claim what nobody else is to claim.
func newRescued(t *testing.T, s *Store, on plan.OnFailure, tasks ...plan.TaskSpec) *rescued {
	t.Helper()
	r := &rescued{T: t, s: s}
	spec := plan.New("nightly")
	spec.OnFailure = on
	for _, task := range tasks {
		spec.Add(task)
	}
	p, all, err := compiler.Compile(spec, time.Now(), func(n compiler.QueueNeed) (plan.QueueID, error) {
		q, err := s.EnsureQueue(t.Context(), plan.Queue{Name: n.Name + bson.NewObjectID().Hex(), Plugin: "exec", Threads: 1})
		return q.ID, err
	})
	r.no(err)
	r.plan, err = s.CreatePlan(t.Context(), p)
	r.no(err)
	r.no(s.AddTasks(t.Context(), r.plan.ID, all))
	r.no(s.Ready(t.Context(), r.plan.ID))
	r.victim = r.node()
	return r
}

func (r *rescued) no(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// node registers a node.
func (r *rescued) node() plan.InstanceID {
	r.Helper()
	r.nodes++
	id := plan.InstanceID{ID: plan.NewID(time.Now())}
	r.no(r.s.Register(r.Context(), plan.Instance{ID: id, Node: plan.NodeName(fmt.Sprint("n", r.nodes)), Lease: time.Minute, Plugins: []string{"exec"}}))
	return id
}

// handle is another process's store.
func (r *rescued) handle(h store.Hook) *Store {
	r.Helper()
	s := newStore(r.s.Client, r.s.DB.Name(), Options{Hook: h})
	r.no(s.prepare(r.Context(), false))
	return s
}

func (r *rescued) turn(s *Store, id plan.InstanceID, slots int, ended ...protocol.Ending) (protocol.Turned, error) {
	return s.Turn(r.Context(), protocol.Turn{Instance: id, Plan: r.plan.ID, Plugins: []string{"exec"}, Slots: slots, Start: true, Ended: ended})
}

// heal has a node that comes after all of it sweep and run what there is, as long as that changes anything.
func (r *rescued) heal(what string) {
	r.Helper()
	id := r.node()
	var ended []protocol.Ending
	for range 8 {
		_, err := r.s.Sweep(r.Context(), protocol.Sweep{Instance: id, Holding: tasksOf(ended)})
		r.no(err)
		did, err := r.turn(r.s, id, 4, ended...)
		r.no(err)
		ended = endings(did.Claimed)
		if did.Over {
			break
		}
	}
	tasks, err := r.s.Tasks(r.Context(), store.TaskQuery{Plan: r.plan.ID})
	r.no(err)
	var states []string
	for i := range tasks {
		states = append(states, tasks[i].Name+" "+tasks[i].State())
	}
	switch p, err := r.s.Plan(r.Context(), r.plan.ID); {
	case err != nil:
		r.Error(err)
	case !p.State.Ended() || !p.Counts.Settled():
		r.Errorf("%s: the plan is %v, want that it has ended; its tasks: %v", what, p.State, states)
	}
	notes, err := wire.Find[workDoc](r.Context(), r.s.work, d(), wire.Query{})
	if r.no(err); len(notes) > 0 {
		r.Errorf("%s: %d notes of work are left: %+v", what, len(notes), notes)
	}
	mongotest.Pass(r, r.s.DB, rules.AuditEvery) // what nobody asks for any more goes with an audit
	_, err = r.s.Sweep(r.Context(), protocol.Sweep{Instance: id})
	r.no(err)
	lists, err := wire.Find[listDoc](r.Context(), r.s.items, d(), wire.Query{})
	if r.no(err); len(lists) > 0 {
		r.Errorf("%s: %d lists of items are left", what, len(lists))
	}
	for _, left := range []*mongo.Collection{r.s.work, r.s.items} { // the next plan has nothing to do with it
		_, err := left.DeleteMany(r.Context(), d())
		r.no(err)
	}
	r.no(r.s.Leave(r.Context(), id))
}

func tasksOf(ended []protocol.Ending) (ids []plan.TaskID) {
	for i := range ended {
		ids = append(ids, ended[i].Task)
	}
	return ids
}

// verbs are what a node does whose write is held back.
var verbs = []struct {
	name  string
	on    plan.OnFailure
	tasks []plan.TaskSpec
	end   func(c protocol.ClaimedTask) protocol.Ending
}{
	{"a success", plan.Continue, []plan.TaskSpec{{Name: "a"}, {Name: "b", Needs: []string{"a"}}}, func(c protocol.ClaimedTask) protocol.Ending {
		return protocol.Ending{Claim: c.Claim, Status: plan.Succeeded}
	}},
	{"a failure that stops the plan", plan.Stop, []plan.TaskSpec{{Name: "a"}, {Name: "b", Needs: []string{"a"}, When: plan.AllDone}}, func(c protocol.ClaimedTask) protocol.Ending {
		return protocol.Ending{Claim: c.Claim, Status: plan.Failed}
	}},
	{"items", plan.Continue, []plan.TaskSpec{{Name: "a", Foreach: &plan.Foreach{Glob: "*"}}, {Name: "b", Needs: []string{"a"}}}, func(c protocol.ClaimedTask) protocol.Ending {
		if c.Name != "a" {
			return protocol.Ending{Claim: c.Claim, Status: plan.Succeeded}
		}
		return protocol.Ending{Claim: c.Claim, Status: plan.Held, Expand: true, Items: items(2)}
	}},
}

// TestALateWriteOfARescuedNode holds back each write that a turn with an ending makes. Meanwhile another node rescues the one that makes it.
// Before one of the writes of the rescue, or after all of them, a third node makes a turn, the late write is made, and its process dies. A
// run that is not whole holds back every second write. Its one write of the rescue is that which takes the claims away, or what comes first
// if it has none.
func TestALateWriteOfARescuedNode(t *testing.T) {
	for _, verb := range verbs {
		t.Run(verb.name, func(t *testing.T) {
			t.Parallel()
			s, _, no := openTest(t)
			every, first, step := 2, 2, 8
			if whole {
				every, first, step = 1, 1, 1
			}
			for at := 1; ; at += every {
				more := false
				for between := first; ; between += step {
					r := newRescued(t, s, verb.on, verb.tasks...)
					did, err := r.turn(r.s, r.victim, 1)
					if r.no(err); len(did.Claimed) != 1 {
						r.Fatalf("claimed %d tasks, want 1", len(did.Claimed))
					}
					l := newLate(at)
					over := make(chan struct{})
					go func() {
						defer close(over)
						_, _ = r.turn(r.handle(l.hook), r.victim, 0, verb.end(did.Claimed[0]))
					}()
					select {
					case <-l.reached:
						more = true
					case <-over:
					}
					third, writes := r.node(), 0
					meanwhile := func() {
						_, err := r.turn(r.s, third, 0)
						r.no(err)
						close(l.free)
						<-over
					}
					_, err = r.handle(func(written bool) error {
						if !written {
							if writes++; writes == between {
								meanwhile()
							}
						}
						return nil
					}).Rescue(r.Context(), r.victim, -1)
					r.no(err)
					if writes < between {
						meanwhile()
					}
					r.heal(fmt.Sprintf("write %d is late, and made before write %d of the rescue, of %d", at, between, writes))
					no(s.Leave(t.Context(), third))
					if writes < between {
						break
					}
				}
				if !more {
					t.Logf("such a turn has less than %d writes", at)
					return
				}
			}
		})
	}
}

// TestAClaimThatComesAfterItsNodeHasGone holds back the claim of a node that leaves meanwhile, or is rescued and then leaves.
func TestAClaimThatComesAfterItsNodeHasGone(t *testing.T) {
	s, _, _ := openTest(t)
	for name, goes := range map[string]func(r *rescued){
		"it leaves":   func(r *rescued) { r.no(s.Leave(r.Context(), r.victim)) },
		"it is saved": func(r *rescued) { _, err := s.Rescue(r.Context(), r.victim, -1); r.no(err) },
		"it is saved and leaves": func(r *rescued) {
			_, err := s.Rescue(r.Context(), r.victim, -1)
			r.no(err)
			r.no(s.Leave(r.Context(), r.victim))
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRescued(t, s, plan.Continue, plan.TaskSpec{Name: "a"}, plan.TaskSpec{Name: "b"})
			l := newLate(1)
			over := make(chan struct{})
			go func() {
				defer close(over)
				_, _ = r.turn(r.handle(l.hook), r.victim, 1)
			}()
			select {
			case <-l.reached:
			case <-over:
				t.Fatal("the turn claimed nothing")
			}
			goes(r)
			close(l.free)
			<-over
			late, err := wire.Find[taskDoc](t.Context(), s.tasks, onlyActive(d("instance", oid(r.victim.ID))), wire.Query{})
			if r.no(err); len(late) != 1 {
				t.Fatalf("%d claims came late, want 1", len(late))
			}
			r.heal("its claim came late")
		})
	}
}

// TestACancellationWhileItemsAreHandedIn cancels a foreach task before each write of the turn that hands in its items, with the ending of
// another task: neither may keep the other from ending.
func TestACancellationWhileItemsAreHandedIn(t *testing.T) {
	s, _, _ := openTest(t)
	for at, met := 1, true; met; at++ {
		r := newRescued(t, s, plan.Continue, plan.TaskSpec{Name: "a", Queue: "wide", Foreach: &plan.Foreach{Glob: "*"}}, plan.TaskSpec{Name: "b"},
			plan.TaskSpec{Name: "c", Needs: []string{"a", "b"}, When: plan.AllDone})
		did, err := r.turn(s, r.victim, 2)
		if r.no(err); len(did.Claimed) != 2 {
			t.Fatalf("claimed %d tasks, want 2", len(did.Claimed))
		}
		writes := 0
		met = false
		var ended []protocol.Ending
		for _, c := range did.Claimed {
			e := protocol.Ending{Claim: c.Claim, Status: plan.Succeeded}
			if c.Name == "a" {
				e.Status, e.Expand, e.Items = plan.Held, true, items(2)
			}
			ended = append(ended, e)
		}
		a := did.Claimed[slices.IndexFunc(did.Claimed, func(c protocol.ClaimedTask) bool { return c.Name == "a" })]
		did, err = r.turn(r.handle(func(written bool) error {
			if !written {
				if writes++; writes == at {
					met = true
					r.no(s.CancelTask(context.WithoutCancel(t.Context()), a.Task))
				}
			}
			return nil
		}), r.victim, 0, ended...)
		if err != nil || len(did.Lost) > 0 {
			t.Errorf("before write %d the task is cancelled: the turn lost %v, %v", at, did.Lost, err)
		}
		r.heal(fmt.Sprintf("before write %d the task is cancelled", at))
		if got, err := s.Task(t.Context(), a.Task); err != nil || met && got.Reason != plan.ReasonCancelled {
			t.Errorf("before write %d the task is cancelled: it is %s, %v", at, got.State(), err)
		}
		r.no(s.Leave(t.Context(), r.victim))
	}
}

// items makes the items of a foreach task.
func items(n int) (all []json.RawMessage) {
	for i := range n {
		all = append(all, json.RawMessage(fmt.Sprint(i)))
	}
	return all
}
