package mongodb

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/plan"
)

// TestANodesDocumentIsAsTheDocumentsHaveIt reads a node's document as a program in another language does: by field and BSON type.
func TestANodesDocumentIsAsTheDocumentsHaveIt(t *testing.T) {
	s, db, no := openTest(t)
	ctx := t.Context()
	id := func() plan.InstanceID { return plan.InstanceID{ID: plan.NewID(time.Now())} }
	made := func(name, plugin string, threads int, unlimited bool) plan.Queue {
		q, err := s.CreateQueue(ctx, plan.Queue{Name: name, Plugin: plugin, Threads: threads, Unlimited: unlimited})
		no(err)
		return q
	}
	few, all, theirs := made("few", "exec", 3, false), made("all", "demo", 0, true), made("theirs", "Disbatch::Plugin::Demo", 7, false)
	_, err := db.Collection("queues").InsertOne(ctx, d("name", "unset", "plugin", "exec", "threads", nil))
	no(err)
	no(s.SetMaxThreads(ctx, "mig01", 5))
	i := plan.Instance{
		ID: id(), Node: "mig01", Host: "mig01.example.com", Process: plan.Process{PID: 34182}, Lease: time.Minute, Threads: 8,
		Plugins: []string{"demo", "exec"}, Version: "v1.2.3",
	}
	before := time.Now().Add(-time.Minute)
	no(s.Register(ctx, i))
	running := protocol.Tally{few.ID: 2, all.ID: 6, theirs.ID: 1}
	_, err = s.Beat(ctx, protocol.Beat{Instance: i.ID, Running: running})
	no(err)

	read := func(node plan.NodeName) bson.Raw {
		raw, err := db.Collection("nodes").FindOne(ctx, d("node", node)).Raw()
		no(err)
		return raw
	}
	doc := read("mig01")
	for _, f := range []struct {
		path string
		kind bson.Type
		want any
	}{
		{"_id", bson.TypeObjectID, nil},
		{"node", bson.TypeString, "mig01"},
		{"timestamp", bson.TypeDateTime, nil},
		{"maxthreads", bson.TypeInt32, int32(5)},
		{"version", bson.TypeString, "sluice v1.2.3"},
		{"spec_version", bson.TypeString, "1.1"},
		{"den_version", bson.TypeString, "1.1"},
		{"queuetypes", bson.TypeArray, nil},
		{"queuetypes.0.class", bson.TypeString, "demo"},
		{"queuetypes.0.version", bson.TypeString, "v1.2.3"},
		{"queuetypes.1.class", bson.TypeString, "exec"},
		{"heartbeat", bson.TypeEmbeddedDocument, nil},
		{"heartbeat.datetime", bson.TypeDateTime, nil},
		{"heartbeat.pid", bson.TypeInt32, int32(34182)},
		{"heartbeat.queues", bson.TypeArray, nil},
	} {
		v, err := doc.LookupErr(strings.Split(f.path, ".")...)
		if err != nil || v.Type != f.kind {
			t.Errorf("%s is a %v (%v), want a %v", f.path, v.Type, err, f.kind)
			continue
		}
		var got any
		if no(v.Unmarshal(&got)); f.want != nil && got != f.want {
			t.Errorf("%s is %v, want %v", f.path, got, f.want)
		}
		if v.Type == bson.TypeDateTime && v.Time().Before(before) {
			t.Errorf("%s is %v, which is long ago", f.path, v.Time())
		}
	}

	type queue struct {
		Class                     string
		Queue                     bson.ObjectID
		Threads, Idle, Processing int32
	}
	var got struct{ Heartbeat struct{ Queues []queue } }
	no(bson.Unmarshal(doc, &got))
	queues := slices.DeleteFunc(got.Heartbeat.Queues, func(q queue) bool { return q.Queue != oid(few.ID.ID) && q.Queue != oid(all.ID.ID) && q.Threads > 0 })
	want := []queue{{"exec", oid(few.ID.ID), 3, 1, 2}, {"demo", oid(all.ID.ID), 5, 0, 6}}
	if len(queues) != 3 {
		t.Fatalf("of its queues it says %+v, want one line each of those whose plugin it has", queues)
	}
	for _, q := range queues {
		if !slices.Contains(want, q) && (q.Class != "exec" || q.Threads != 0 || q.Idle != 0 || q.Processing != 0) {
			t.Errorf("of a queue it says %+v, want one of %+v or, of what runs nothing, zeros", q, want)
		}
	}
	for _, field := range []string{"threads", "idle", "processing"} {
		if v := doc.Lookup("heartbeat", "queues", "0", field); v.Type != bson.TypeInt32 {
			t.Errorf("%s of a queue is a %v, want an int", field, v.Type)
		}
	}

	// A beat says which plugins it has if they are others, and queues are told of accordingly.
	for _, plugins := range [][]string{{"Disbatch::Plugin::Demo", "exec"}, {}, {"demo"}} {
		_, err = s.Beat(ctx, protocol.Beat{Instance: i.ID, Running: running, Plugins: plugins})
		no(err)
		for range 2 { // it is so after the next beat, which says nothing of it, too
			var has struct {
				QueueTypes []struct{ Class, Version string }
				Heartbeat  struct{ Queues []queue }
			}
			no(bson.Unmarshal(read("mig01"), &has))
			classes := []string{}
			for _, q := range has.QueueTypes {
				if classes = append(classes, q.Class); q.Version != "v1.2.3" {
					t.Errorf("the version of %s is %q", q.Class, q.Version)
				}
			}
			if !slices.Equal(classes, plugins) {
				t.Errorf("of its plugins it says %q, want %q", classes, plugins)
			}
			for _, q := range has.Heartbeat.Queues {
				if !slices.Contains(plugins, q.Class) {
					t.Errorf("it tells of a queue of %s, and has %q", q.Class, plugins)
				}
			}
			_, err = s.Beat(ctx, protocol.Beat{Instance: i.ID, Running: running})
			no(err)
		}
	}

	// Settings by a person stay when the node has gone; fields that only nodes wrote go with the
	// last one.
	no(s.Leave(ctx, i.ID))
	if v := read("mig01").Lookup("maxthreads"); v.Type != bson.TypeInt32 || v.Int32() != 5 {
		t.Errorf("after it left, its maxthreads is %v", v)
	}
	other := plan.Instance{ID: id(), Node: "mig02", Host: "mig02", Lease: time.Minute, Plugins: []string{"exec"}}
	no(s.Register(ctx, other))
	no(s.Leave(ctx, other.ID))
	if n, err := db.Collection("nodes").CountDocuments(ctx, d("node", "mig02")); err != nil || n != 0 {
		t.Errorf("%d documents of a node that left, %v", n, err)
	}
}

// TestWhatABeatAsks counts the commands of a beat, which comes each second from every node.
func TestWhatABeatAsks(t *testing.T) {
	uri, _ := database(t)
	var mu sync.Mutex
	var asked []string
	s := openMonitored(t, uri, &event.CommandMonitor{Started: func(_ context.Context, e *event.CommandStartedEvent) {
		mu.Lock()
		defer mu.Unlock()
		name, _ := e.Command.Lookup(e.CommandName).StringValueOK()
		asked = append(asked, e.CommandName+" "+name)
	}})
	no := noError(t)
	i := plan.Instance{ID: plan.InstanceID{ID: plan.NewID(time.Now())}, Node: "n1", Host: "n1", Lease: time.Minute, Threads: 1, Plugins: []string{"exec"}}
	no(s.Register(t.Context(), i))
	mu.Lock()
	asked = nil
	mu.Unlock()
	_, err := s.Beat(t.Context(), protocol.Beat{Instance: i.ID})
	no(err)
	mu.Lock()
	defer mu.Unlock()
	want := []string{"findAndModify instances", "aggregate nodes", "update nodes"}
	if !slices.Equal(asked, want) {
		t.Errorf("it asked\n%q\nwant\n%q", asked, want)
	}
}
