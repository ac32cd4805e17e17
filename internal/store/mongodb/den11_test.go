package mongodb

import (
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// TestRecordsOfDEN11AreNamed has queues and tasks as the document of DEN 1.1 writes them.
func TestRecordsOfDEN11AreNamed(t *testing.T) {
	m := newMessy(t)
	q, err := m.s.CreateQueue(t.Context(), plan.Queue{Name: "imap", Plugin: "x", Threads: 4})
	m.no(err)
	if got, err := m.s.Refused(t.Context()); err != nil || len(got) != 0 {
		t.Errorf("of a store without other programs %q is refused, %v", got, err)
	}

	m.put("queues", "_id", "insight1", "ctime", time.Now(), "class", "Synacor::Migration::IMAP2IMAP", "description", "Insight Primary Migration",
		"maxthreads", 50, "nodes_pin", bson.A{"mig01", "mig02"})
	automatic := bson.NewObjectID()
	m.put("queues", "_id", automatic, "name", "named", "class", "Synacor::Migration::Zimbra::UserImport", "maxthreads", 5)
	task := func(queue any, status int) bson.ObjectID {
		t.Helper()
		id := bson.NewObjectID()
		m.put("tasks", "_id", id, "queue", queue, "ctime", time.Now(), "mtime", time.Now(), "parameters", d("username", "foo@foo.com"),
			"stdout", "", "stderr", "", "status", status, "node", -1)
		return id
	}
	waits := task("insight1", -2)
	task("insight1", 0)
	task("insight1", 1)
	task("gone", -2)
	ours := task(oid(q.ID.ID), -2)

	want := [][]string{
		{`queue "insight1"`, `class "Synacor::Migration::IMAP2IMAP"`, "no ObjectID", "sluice queue create", "2 tasks"},
		{"queue " + automatic.Hex(), "UserImport", "no plugin", "Set name, plugin and threads"},
		{`queue "gone"`, "sluice queue create", "1 task "},
	}
	check := func(what string, got []string) {
		t.Helper()
		if len(got) != len(want) {
			t.Fatalf("%s: %q", what, got)
		}
		for _, words := range want {
			if !slices.ContainsFunc(got, func(s string) bool {
				return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(s, w) })
			}) {
				t.Errorf("%s: none of %q has %q", what, got, words)
			}
		}
	}
	refused, err := m.s.Refused(t.Context())
	m.no(err)
	check("the list", refused)

	i := plan.Instance{ID: plan.InstanceID{ID: plan.NewID(time.Now())}, Node: "n", Lease: time.Minute, Plugins: []string{"x"}}
	m.no(m.s.Register(t.Context(), i))
	did, err := m.s.Sweep(t.Context(), protocol.Sweep{Instance: i.ID})
	m.no(err)
	check("the log of a node", did.Refused)
	m.s.looked = m.s.looked.Add(-rules.AuditEvery)
	m.put("queues", "_id", "late", "name", "late", "class", "X")
	did, err = m.s.Sweep(t.Context(), protocol.Sweep{Instance: i.ID})
	m.no(err)
	if len(did.Refused) != 1 || !strings.Contains(did.Refused[0], `queue "late"`) {
		t.Errorf("a later sweep tells of %q, want of the new queue alone", did.Refused)
	}

	turned, err := m.s.Turn(t.Context(), protocol.Turn{Instance: i.ID, Slots: 4, Plugins: i.Plugins, Start: true})
	m.no(err)
	if len(turned.Claimed) != 0 || len(turned.Refused) != 1 || !strings.Contains(turned.Refused[0], "parameters") {
		t.Errorf("claimed %d tasks, and refused %q", len(turned.Claimed), turned.Refused)
	}
	if k := m.read(ours); k.Status != plan.Failed || !strings.Contains(k.Detail, "it has parameters, as DEN 1.1 writes them") {
		t.Errorf("a task with parameters is %s: %s", k.State(), k.Detail)
	}
	if k := m.read(waits); k.Status != plan.Queued {
		t.Errorf("a task in another program's queue is %s", k.State())
	}
	queues, err := m.s.Queues(t.Context())
	m.no(err)
	if slices.ContainsFunc(queues, func(q plan.Queue) bool { return q.ID.IsZero() }) {
		t.Errorf("queues without ids: %v", queues)
	}
}

// TestADatabaseOfDEN11IsRefusedByName opens one with the queues of DEN 1.1, which have no names.
func TestADatabaseOfDEN11IsRefusedByName(t *testing.T) {
	uri, db := fresh(t)
	for _, id := range []any{"insight1", "insight2"} {
		for clash := true; clash; { // the server refuses to make a collection while it makes another
			_, err := db.Collection("queues").InsertOne(t.Context(), d("_id", id, "class", "Synacor::Migration::IMAP2IMAP", "maxthreads", 50))
			if clash = wire.IsClash(err); !clash {
				noError(t)(err)
			}
		}
	}
	s, err := Open(t.Context(), uri, Options{})
	if err == nil {
		t.Fatal(s.Close(), "it opens")
	}
	for _, want := range []string{`"insight1", "insight2"`, "DEN 1.1", "a database of its own"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\n\tdoes not say %s", err, want)
		}
	}
}
