package mongodb

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/mongotest"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/submit"
	"github.com/seed-1177d267/sluice/plan"
)

// TestALateEndLeavesNothingThatIsOurs has an end that names the task alone, as DEN 1.1 writes it, come while the task waits to be tried again.
func TestALateEndLeavesNothingThatIsOurs(t *testing.T) {
	m := newMessy(t)
	spec := &plan.Spec{Name: "p", Tasks: []plan.TaskSpec{{Name: "late", Plugin: "x"}, {Name: "waits", Plugin: "x"}}}
	_, err := submit.Submit(t.Context(), m.s, spec, false)
	m.no(err)
	i := plan.Instance{ID: plan.InstanceID{ID: plan.NewID(time.Now())}, Node: "n", Lease: time.Minute, Plugins: []string{"x"}}
	m.no(m.s.Register(t.Context(), i))
	did, err := m.s.Turn(t.Context(), protocol.Turn{Instance: i.ID, Slots: 2, Plugins: i.Plugins, Start: true})
	m.no(err)
	if len(did.Claimed) != 2 {
		t.Fatalf("claimed %d tasks, want 2", len(did.Claimed))
	}
	late := did.Claimed[0]
	for k, delay := range []time.Duration{time.Minute, time.Hour} {
		end := protocol.Ending{Claim: did.Claimed[k].Claim, Status: plan.Held, Delay: delay}
		_, err := m.s.Turn(t.Context(), protocol.Turn{Instance: i.ID, Ended: []protocol.Ending{end}, Plugins: i.Plugins})
		m.no(err)
	}
	tasks := m.db.Collection("tasks")
	_, err = tasks.UpdateOne(t.Context(), d("_id", oid(late.Task.ID)), d("$set", d("status", 1, "mtime", time.Now(), "stdout", `"late"`, "stderr", "")))
	m.no(err)
	sweep := func() protocol.Swept {
		t.Helper()
		did, err := m.s.Sweep(t.Context(), protocol.Sweep{Instance: i.ID})
		m.no(err)
		return did
	}
	if did := sweep(); did.Pending < 50*time.Minute { // of the other one
		t.Errorf("a delay is over in %v, want none but that of an hour", did.Pending)
	}
	sweep()
	mongotest.Pass(t, m.db, rules.OutputWait+time.Second)
	sweep()
	raw, err := tasks.FindOne(t.Context(), d("_id", oid(late.Task.ID))).Raw()
	m.no(err)
	for _, field := range []string{"hold", "notbefore", "adding", "gate", "making", "open", "token", "slot", "cancel"} {
		if v := raw.Lookup(field); v.Type != 0 {
			t.Errorf("%s is %s", field, v)
		}
	}
	if k := m.read(oid(late.Task.ID)); k.Status != plan.Succeeded || string(k.Output) != `"late"` || !k.NotBefore.IsZero() {
		t.Errorf("the task is %s with %s, not before %v", k.State(), k.Output, k.NotBefore)
	}
}

// TestAFileIsReadByOneCursor counts what is asked of the server for an output that another program has put into GridFS.
func TestAFileIsReadByOneCursor(t *testing.T) {
	uri, db := database(t)
	var finds, more atomic.Int64
	s := openMonitored(t, uri, &event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStartedEvent) {
		switch c, _ := e.Command.Index(0).Value().StringValueOK(); {
		case e.CommandName == "find" && c == "tasks.chunks":
			finds.Add(1)
		case e.CommandName == "getMore":
			more.Add(1)
		}
	}})
	no := noError(t)
	file := func(numbers ...int) bson.ObjectID {
		t.Helper()
		id := bson.NewObjectID()
		var docs []any
		for _, n := range numbers {
			docs = append(docs, d("_id", bson.NewObjectID(), "files_id", id, "n", n, "data", string(rune('a'+n))+strings.Repeat("-", 1000)))
		}
		_, err := db.Collection("tasks.chunks").InsertMany(t.Context(), docs)
		no(err)
		return id
	}
	text := func(numbers ...int) (all string) {
		for _, n := range numbers {
			all += string(rune('a'+n)) + strings.Repeat("-", 1000)
		}
		return all
	}
	for _, c := range []struct {
		name       string
		there, has []int
	}{
		{"in order, whatever the order in which it was written", []int{1, 0, 3, 2}, []int{0, 1, 2, 3}},
		{"up to a chunk that is missing", []int{0, 1, 3}, []int{0, 1}},
		{"nothing without the first", []int{1}, nil},
	} {
		finds.Store(0)
		got, err := s.file(t.Context(), file(c.there...))
		if want := text(c.has...); err != nil || got != want {
			t.Errorf("%s: %d bytes, %v; want %d", c.name, len(got), err, len(want))
		}
		if n := finds.Load(); n != 1 {
			t.Errorf("%s: %d queries, want 1", c.name, n)
		}
	}
	var many []int
	for n := range 3*chunksAtOnce + 1 {
		many = append(many, n)
	}
	finds.Store(0)
	more.Store(0)
	got, err := s.file(t.Context(), file(many...))
	if err != nil || got != text(many...) || finds.Load() != 1 || more.Load() > 4 {
		t.Errorf("%d bytes by %d queries that went on %d times, %v", len(got), finds.Load(), more.Load(), err)
	}
}
