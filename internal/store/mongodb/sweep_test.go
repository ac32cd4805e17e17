package mongodb

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// counting opens a store that counts the plans that the server sends to it.
func counting(t *testing.T) (s *Store, plans *atomic.Int64) {
	t.Helper()
	uri, _ := database(t)
	plans = &atomic.Int64{}
	s = openMonitored(t, uri, &event.CommandMonitor{
		Succeeded: func(_ context.Context, e *event.CommandSucceededEvent) {
			for _, batch := range []string{"firstBatch", "nextBatch"} {
				if ns, _ := e.Reply.Lookup("cursor", "ns").StringValueOK(); strings.HasSuffix(ns, ".plans") {
					docs, _ := e.Reply.Lookup("cursor", batch).ArrayOK()
					values, _ := docs.Values()
					plans.Add(int64(len(values)))
				}
			}
		},
	})
	return s, plans
}

// TestASweepReadsNoPlanThatOnlyRuns has plans of every state that there is nothing to go on with: a sweep comes each second.
func TestASweepReadsNoPlanThatOnlyRuns(t *testing.T) {
	s, plans := counting(t)
	id := plan.InstanceID{ID: plan.NewID(time.Now())}
	if err := s.Register(t.Context(), plan.Instance{ID: id, Node: "n1"}); err != nil {
		t.Fatal(err)
	}
	var docs []any
	for i := range 400 {
		doc := planDoc{ID: bson.NewObjectID(), Name: "p", Run: i + 1, Ctime: time.Now(), Mtime: time.Now(), State: plan.PlanRunning}
		switch {
		case i%4 == 1:
			doc.State = plan.PlanSubmitting
		case i%4 == 2:
			doc.State, doc.Closing, doc.Ended = plan.PlanCancelled, plan.ClosedByPerson, time.Now()
		case i%4 == 3:
			doc.State, doc.Ended = plan.PlanAbandoned, time.Now()
		}
		docs = append(docs, doc)
	}
	if _, err := s.plans.InsertMany(t.Context(), docs); err != nil {
		t.Fatal(err)
	}
	plans.Store(0)
	if _, err := s.Sweep(t.Context(), protocol.Sweep{Instance: id}); err != nil {
		t.Fatal(err)
	}
	if n := plans.Load(); n != 0 {
		t.Errorf("a sweep read %d of %d plans, want none", n, len(docs))
	}
	if _, err := s.plans.UpdateMany(t.Context(), d("run", d("$lte", 4)), d("$set", d("fresh", true, "abandoned", true))); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Sweep(t.Context(), protocol.Sweep{Instance: id}); err != nil {
		t.Fatal(err)
	}
	if plans.Load() == 0 {
		t.Error("a sweep read none of the plans that it has to go on with: this counts nothing")
	}
}

// TestAnAdderThatStandsStill has who adds more late tasks than one command inserts stand still, so long that it is taken for dead, as in
// a computer that sleeps, while another node sweeps: before its second insert, before it says that all are in, and before they are taken.
func TestAnAdderThatStandsStill(t *testing.T) {
	const late = addAtOnce + 10
	for _, outside := range []bool{false, true} {
		t.Run(fmt.Sprintf("of no plan %v", outside), func(t *testing.T) {
			s, _, no := openTest(t)
			id, p := flatPlan(t, s, 1), onlyPlan(t, s)
			parents, err := s.Tasks(t.Context(), store.TaskQuery{Plan: p})
			no(err)
			to, refused := p, 0
			if outside {
				to = plan.PlanID{}
				parents[0].ID = plan.TaskID{ID: plan.NewID(time.Now())}
				no(s.AddTasks(t.Context(), to, parents[:1]))
			}
			sweep := func() {
				old := d("$set", d("mtime", time.Now().Add(-2*lateAfter)))
				_, err := s.tasks.UpdateMany(t.Context(), d("adding", d("$exists", true)), old)
				no(err)
				_, err = s.Sweep(t.Context(), protocol.Sweep{Instance: id})
				no(err)
			}
			for at := 2; at <= 4; at++ {
				tasks, ids := make([]plan.Task, late), make(bson.A, late)
				for i := range tasks {
					tasks[i] = plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Name: fmt.Sprint("late", i), Queue: parents[0].Queue}
					tasks[i].Needs, ids[i] = []plan.TaskID{parents[0].ID}, oid(tasks[i].ID.ID)
				}
				writes := 0
				hooked := newStore(s.Client, s.DB.Name(), Options{Hook: func(written bool) error {
					if !written {
						if writes++; writes == at {
							sweep()
						}
					}
					return nil
				}})
				no(hooked.prepare(t.Context(), false))
				added, want := hooked.AddTasks(t.Context(), to, tasks), late
				if added != nil {
					want = 0
					if refused++; !errors.Is(added, plan.ErrConflict) {
						t.Errorf("at write %d: got error %v, want %v", at, added, plan.ErrConflict)
					}
				}
				sweep()
				in, err := s.tasks.CountDocuments(t.Context(), d("_id", d("$in", ids), "hold", holdNeeds))
				no(err)
				left, err := s.tasks.DeleteMany(t.Context(), d("_id", d("$in", ids)))
				no(err)
				if int(in) != want || int(left.DeletedCount) != want {
					t.Errorf("at write %d: of %d tasks %d are in and %d held, want %d; the error is %v", at, late, left.DeletedCount, in, want, added)
				}
			}
			if refused != 1 {
				t.Errorf("%d additions were taken for dead, want the one of which half was in", refused)
			}
		})
	}
}

// TestNoNoteHasAnOwnerThatIsGoneForLongerThanASweep has many notes of unknown instances. One sweep
// of any node takes them over or makes them anybody's, and turns do their work.
func TestNoNoteHasAnOwnerThatIsGoneForLongerThanASweep(t *testing.T) {
	const notes = 3 * mostResumed
	s, _, no := openTest(t)
	tasks := []plan.TaskSpec{{Name: "last"}}
	for i := range notes {
		tasks = append(tasks, plan.TaskSpec{Name: fmt.Sprint("t", i)})
		tasks[0].Needs = append(tasks[0].Needs, fmt.Sprint("t", i))
	}
	r := newRescued(t, s, plan.Continue, tasks...)
	no(s.Leave(t.Context(), r.victim))
	ended, err := wire.Find[taskDoc](t.Context(), s.tasks, d("plan", oid(r.plan.ID.ID), "name", d("$ne", "last")), wire.Query{})
	no(err)
	r.set(s.tasks, d("plan", oid(r.plan.ID.ID), "name", d("$ne", "last")),
		d("$set", d("status", plan.Succeeded, "complete", true, "ended", time.Now()), "$unset", d("open", 1)))
	for _, e := range ended {
		_, err := s.work.InsertOne(t.Context(), workDoc{ID: bson.NewObjectID(), Owner: bson.NewObjectID(), Kind: workRelease, Tasks: []bson.ObjectID{e.ID}})
		no(err)
	}
	id := r.node()
	_, err = s.Sweep(t.Context(), protocol.Sweep{Instance: id})
	no(err)
	left, err := s.work.CountDocuments(t.Context(), d("owner", d("$exists", true)))
	no(err)
	if left > 0 {
		t.Errorf("after a sweep %d of %d notes have an owner that is gone", left, notes)
	}
	for range notes / mostResumed {
		_, err = s.Turn(t.Context(), protocol.Turn{Instance: id})
		no(err)
	}
	if left, err = s.work.CountDocuments(t.Context(), d()); err != nil || left > 0 {
		t.Errorf("%d notes are left (%v)", left, err)
	}
	if got, err := s.Tasks(t.Context(), store.TaskQuery{Plan: r.plan.ID, Name: "last"}); err != nil || got[0].Status != plan.Queued {
		t.Errorf("the task below is %v (%v), want queued", got[0].Status, err)
	}
}
