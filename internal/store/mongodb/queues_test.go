package mongodb

import (
	"fmt"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/plan"
)

// TestAQueueIsLookedUpWithoutALookAtItsTasks is about what submissions do, however much is queued.
func TestAQueueIsLookedUpWithoutALookAtItsTasks(t *testing.T) {
	uri, _ := database(t)
	asked := 0
	s, ctx := stepped(t, uri, func(e *event.CommandStartedEvent) {
		if asked++; e.Command.Index(0).Value().StringValue() == "tasks" {
			t.Errorf("it was asked for tasks: %v", e.Command)
		}
	})
	q, err := s.EnsureQueue(ctx, plan.Queue{Name: "q", Plugin: "x", Threads: 3})
	if err != nil {
		t.Fatal(err)
	}
	queues, err := s.Queues(ctx)
	if err != nil || len(queues) != 1 || fmt.Sprint(queues[0]) != fmt.Sprint(q) || asked == 0 {
		t.Errorf("the queues are %+v, %v, after %d commands; want %+v", queues, err, asked, q)
	}
}

// TestWhatAQueueOfAnotherProgramSaysOfNodes is about fields as people, and older programs, write them; each queue has one task.
func TestWhatAQueueOfAnotherProgramSaysOfNodes(t *testing.T) {
	for _, c := range []struct {
		fields  bson.D
		served  bool // by n1
		pin     string
		ignore  string
		threads int
	}{
		{d(), true, "[]", "[]", 0},
		{d("nodes_pin", bson.A{"n1", "n2"}), true, "[n1 n2]", "[]", 0},
		{d("nodes_pin", bson.A{"n2"}), false, "[n2]", "[]", 0},
		{d("nodes_pin", "n1"), true, "[n1]", "[]", 0},
		{d("nodes_pin", "n2"), false, "[n2]", "[]", 0},
		{d("nodes_ignore", "n1"), false, "[]", "[n1]", 0},
		{d("nodes_ignore", bson.A{"n2", "n1"}), false, "[]", "[n2 n1]", 0},
		{d("nodes_ignore", bson.A{"n2"}), true, "[]", "[n2]", 0},
		{d("nodes_pin", bson.A{"n1"}, "nodes_ignore", bson.A{"n1"}), true, "[n1]", "[n1]", 0},
		{d("nodes_pin", bson.A{}, "nodes_ignore", bson.A{"n1"}), false, "[]", "[n1]", 0},
		{d("nodes_pin", nil, "nodes_ignore", nil, "maxthreads", nil), true, "[]", "[]", 0},
		{d("nodes_pin", 5, "nodes_ignore", d("a", 1)), true, "[]", "[]", 0},
		{d("nodes_pin", bson.A{5, nil}, "nodes_ignore", bson.A{"n1"}), false, "[]", "[n1]", 0},
		{d("nodes_pin", bson.A{5, "n1"}), true, "[n1]", "[]", 0},
		{d("maxthreads", 2), true, "[]", "[]", 2},
		{d("maxthreads", "3"), true, "[]", "[]", 3},
		{d("maxthreads", 4.0), true, "[]", "[]", 4},
		{d("maxthreads", 0), true, "[]", "[]", 0},
		{d("maxthreads", -1), true, "[]", "[]", 0},
		{d("maxthreads", bson.A{1}), true, "[]", "[]", 0},
	} {
		t.Run(fmt.Sprint(c.fields), func(t *testing.T) {
			m := newMessy(t)
			id := bson.NewObjectID()
			m.put("queues", append(pairsOf(c.fields), "_id", id, "name", "q", "plugin", "x", "threads", 5)...)
			queues, err := m.s.Queues(t.Context())
			m.no(err)
			q := queues[0]
			if got := fmt.Sprint(q.Pin, q.Ignore, q.NodeThreads); got != fmt.Sprint(c.pin, " ", c.ignore, " ", c.threads) {
				t.Errorf("it is read as %s, want %s %s %d", got, c.pin, c.ignore, c.threads)
			}
			if served := m.claims(q) == 1; served != c.served {
				t.Errorf("served: %v, want %v", served, c.served)
			}
		})
	}
}

// TestAQueueWithoutThreadsRunsNothing holds Disbatch 4's rule, but for queues that say that they are unlimited, as ours do.
func TestAQueueWithoutThreadsRunsNothing(t *testing.T) {
	m := newMessy(t)
	for i, c := range []struct {
		fields bson.D
		want   int
	}{
		{d(), 0}, {d("threads", nil), 0}, {d("threads", nil, "unlimited", false), 0}, {d("threads", "many"), 0}, {d("threads", 0), 0}, {d("threads", -1), 0},
		{d("threads", nil, "unlimited", true), 1}, {d("unlimited", true), 1}, {d("threads", 1), 1}, {d("threads", "1"), 1},
	} {
		id := bson.NewObjectID()
		m.put("queues", append(pairsOf(c.fields), "_id", id, "name", fmt.Sprint("q", i), "plugin", "x")...)
		if got := m.claims(plan.Queue{ID: plan.QueueID{ID: plan.ID(id)}}); got != c.want {
			t.Errorf("of a queue with %v %d tasks were claimed, want %d", c.fields, got, c.want)
		}
	}
}

func pairsOf(doc bson.D) (pairs []any) {
	for _, e := range doc {
		pairs = append(pairs, e.Key, e.Value)
	}
	return pairs
}

// claims puts a task into the queue, and returns how many node n1 claims, by its first two turns: before it is known by its name, and after.
func (m *messy) claims(q plan.Queue) int {
	m.Helper()
	m.task(q)
	id := plan.InstanceID{ID: plan.NewID(time.Now())}
	m.no(m.s.Register(m.Context(), plan.Instance{ID: id, Node: "n1", Plugins: []string{"x"}}))
	delete(m.s.nodeOf, id) // as in a handle that did not register it
	n := 0
	var ended []protocol.Ending
	for range 2 {
		did, err := m.s.Turn(m.Context(), protocol.Turn{Instance: id, Slots: 9, Plugins: []string{"x"}, Start: true, Ended: ended})
		m.no(err)
		ended = nil
		for _, c := range did.Claimed {
			ended = append(ended, protocol.Ending{Claim: c.Claim, Status: plan.Queued})
		}
		if n = len(did.Claimed); n == 0 {
			break
		}
	}
	m.no(m.s.Leave(m.Context(), id))
	_, err := m.db.Collection("tasks").DeleteMany(m.Context(), d())
	m.no(err)
	return n
}

// TestSettingsThatQueuesHadInFieldsOfTheirOwnAreGathered has fields as version 2 wrote them, and as a person wrote them by hand.
func TestSettingsThatQueuesHadInFieldsOfTheirOwnAreGathered(t *testing.T) {
	m := newMessy(t)
	for i, c := range []struct {
		fields bson.D
		want   string
	}{
		{nil, ""},
		{d("onlost", "retry"), `{"on_lost":"retry"}`},
		{d("onlost", "never", "secrets", "password"), `{"secrets":["password"]}`},
		{d("onlost", -6, "secrets", bson.A{"password", 5, "*_key"}, "keep", 5), `{"secrets":["password","*_key"]}`},
		{d("onlost", bson.A{"fail"}, "keep", d("succeeded", "36h", "failed", "-1ns", "orphaned", "1m0s")), `{"keep":{"succeeded":"36h0m0s","failed":"-1ns","orphaned":"1m0s"}}`},
		{d("keep", d("succeeded", 5, "failed", "ever", "done", "1h", "cancelled", "2h")), `{"keep":{"cancelled":"2h0m0s"}}`},
		{d("keep", "30d"), ""}, {d("keep", bson.A{"1h"}), ""}, {d("keep", nil), ""},
	} {
		name := fmt.Sprint("q", i)
		m.put("queues", append(pairsOf(c.fields), "_id", bson.NewObjectID(), "name", name, "plugin", "x")...)
		_, err := m.db.Collection("meta").UpdateOne(t.Context(), d("_id", "schema"), d("$set", d("version", 2)))
		m.no(err)
		s, err := Open(t.Context(), m.uri, Options{})
		m.no(err)
		queues, err := s.Queues(t.Context())
		m.no(err)
		m.no(s.Close())
		if got := queues[i].Text(); got != c.want {
			t.Errorf("settings of %v are gathered to %s, want %s", c.fields, got, c.want)
		}
		left, err := m.db.Collection("queues").CountDocuments(t.Context(), d("$or", bson.A{d("onlost", d("$exists", true)), d("secrets", d("$exists", true)), d("keep", d("$exists", true))}))
		if m.no(err); left > 0 {
			t.Errorf("a queue with %v still has these fields", c.fields)
		}
	}
}
