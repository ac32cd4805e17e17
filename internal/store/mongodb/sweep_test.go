package mongodb

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"

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
	if _, err := s.Sweep(t.Context(), plan.Sweep{Instance: id}); err != nil {
		t.Fatal(err)
	}
	if n := plans.Load(); n != 0 {
		t.Errorf("a sweep read %d of %d plans, want none", n, len(docs))
	}
	if _, err := s.plans.UpdateMany(t.Context(), d("run", d("$lte", 4)), d("$set", d("fresh", true, "abandoned", true))); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Sweep(t.Context(), plan.Sweep{Instance: id}); err != nil {
		t.Fatal(err)
	}
	if plans.Load() == 0 {
		t.Error("a sweep read none of the plans that it has to go on with: this counts nothing")
	}
}
