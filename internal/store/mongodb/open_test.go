package mongodb

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

func TestOpenRefusesWhatIsNoDatabase(t *testing.T) {
	for _, c := range []struct{ name, uri, says string }{
		{"no URI at all", "nonsense", "scheme"},
		{"no database", "mongodb://127.0.0.1:1/", "names no database; write mongodb://HOST:PORT/DATABASE"},
		{"a database of two parts", "mongodb://127.0.0.1:1/a/b", `names the database "a/b"; a name has none of / \ . " $ and blank; write mongodb://HOST:PORT/DATABASE`},
		{"a password that is not escaped", "mongodb://me:se/cret@127.0.0.1:1/x", "unescaped slash"},
		{"an option that does not exist", "mongodb://me:secret@127.0.0.1:1/x?authMechanism=NONE", "auth"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Open(t.Context(), c.uri, Options{})
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want an error that says %q", err, c.says)
			}
			if err != nil && strings.Contains(err.Error(), "cret") {
				t.Errorf("the error shows the password: %v", err)
			}
		})
	}
}

func TestOpenSaysWhenTheServerIsNotThere(t *testing.T) {
	_, err := Open(t.Context(), "mongodb://me:secret@127.0.0.1:1/x?serverSelectionTimeoutMS=100", Options{})
	if !errors.Is(err, plan.ErrUnavailable) {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
	if err != nil && (strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "127.0.0.1:1")) {
		t.Errorf("the error is to name the server and not the password: %v", err)
	}
}

func TestOpenOfAnExistingStoreMakesNone(t *testing.T) {
	uri, db := fresh(t)
	collections := func() []string {
		t.Helper()
		names, err := db.ListCollectionNames(t.Context(), bson.D{})
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	_, err := Open(t.Context(), uri, Options{Existing: true})
	if !errors.Is(err, plan.ErrNoStore) || !strings.Contains(err.Error(), uri) {
		t.Errorf("got %v, want ErrNoStore and the URI", err)
	}
	if made := collections(); len(made) > 0 {
		t.Errorf("there are collections %q, want none", made)
	}
	opens := func(o Options) {
		t.Helper()
		s, err := Open(t.Context(), uri, o)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	opens(Options{}) // as who submits something does
	opens(Options{Existing: true})
}

func TestADatabaseOfAnotherProgramExists(t *testing.T) {
	uri, db := fresh(t)
	if _, err := db.Collection("queues").InsertOne(t.Context(), d("name", "imap", "plugin", "Imap")); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), uri, Options{Existing: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if queues, err := s.Queues(t.Context()); err != nil || len(queues) != 1 {
		t.Errorf("got %v, %v; want the queue of the other program", queues, err)
	}
}

func TestOpenRefusesADatabaseOfANewerVersion(t *testing.T) {
	uri, db := fresh(t)
	s, err := Open(t.Context(), uri, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Collection("meta").UpdateOne(t.Context(), d("_id", "schema"), d("$inc", d("version", 1))); err != nil {
		t.Fatal(err)
	}
	_, err = Open(t.Context(), uri, Options{})
	if !errors.Is(err, plan.ErrNewerSchema) || !strings.Contains(err.Error(), "use a newer sluice") {
		t.Errorf("got %v, want ErrNewerSchema and what to do", err)
	}
}

// TestDocumentsAreDisbatchs holds what other programs read to the document that they are written to.
func TestDocumentsAreDisbatchs(t *testing.T) {
	s, db, no := openTest(t)
	q, err := s.EnsureQueue(t.Context(), plan.Queue{Name: "demo", Plugin: "demo", Threads: 2, Sort: plan.SortFIFO})
	no(err)
	_, err = s.EnsureQueue(t.Context(), plan.Queue{Name: "wide", Plugin: "demo", Unlimited: true})
	no(err)
	task := plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Queue: q.ID, Params: json.RawMessage(`{"commands":"abc","n":3}`)}
	no(s.AddTasks(t.Context(), plan.PlanID{}, []plan.Task{task}))
	id := plan.InstanceID{ID: plan.NewID(time.Now())}
	no(s.Register(t.Context(), plan.Instance{ID: id, Node: "n1", Version: "1", Plugins: []string{"demo"}}))
	no(s.SetMaxThreads(t.Context(), "n1", 5))
	no(s.SetMaxThreads(t.Context(), "n2", 0))

	read := func(collection string, filter bson.D) bson.M {
		t.Helper()
		var doc bson.M
		no(db.Collection(collection).FindOne(t.Context(), filter).Decode(&doc))
		return doc
	}
	want := func(where string, doc bson.M, fields bson.M) {
		t.Helper()
		for name, value := range fields {
			if got, there := doc[name]; !there || got != value {
				t.Errorf("%s: %s is %v (%T, there: %v), want %v (%T)", where, name, got, got, there, value, value)
			}
		}
	}
	want("queue", read("queues", d("name", "demo")), bson.M{"plugin": "demo", "threads": int32(2), "sort": "fifo"})
	want("queue without a limit", read("queues", d("name", "wide")), bson.M{"threads": nil})
	queued := read("tasks", d("_id", oid(task.ID.ID)))
	want("queued task", queued, bson.M{"queue": oid(q.ID.ID), "status": int32(-2), "node": nil, "stdout": nil, "stderr": nil})
	for _, at := range []string{"ctime", "mtime"} {
		if _, ok := queued[at].(bson.DateTime); !ok {
			t.Errorf("%s of a task is %T, want a date", at, queued[at])
		}
	}
	if params := read("tasks", d("params.commands", "abc", "params.n", 3)); params["_id"] != oid(task.ID.ID) {
		t.Error("a task is not found by its params")
	}
	did, err := s.Turn(t.Context(), protocol.Turn{Instance: id, Slots: 1, Plugins: []string{"demo"}})
	no(err)
	want("claimed task", read("tasks", d("_id", oid(task.ID.ID))), bson.M{"status": int32(-1), "node": "n1"})
	_, err = s.Turn(t.Context(), protocol.Turn{Instance: id, Ended: []protocol.Ending{{Claim: did.Claimed[0].Claim, Status: plan.Succeeded}}})
	no(err)
	want("ended task", read("tasks", d("_id", oid(task.ID.ID))), bson.M{"status": int32(1), "node": "n1", "complete": true})
	node := read("nodes", d("node", "n1"))
	want("node", node, bson.M{"maxthreads": int32(5)})
	if _, ok := node["timestamp"].(bson.DateTime); !ok {
		t.Errorf("timestamp of a node is %T, want a date", node["timestamp"])
	}
	want("node that nobody has seen", read("nodes", d("node", "n2")), bson.M{"maxthreads": int32(0), "timestamp": bson.DateTime(0)})
	no(s.SetMaxThreads(t.Context(), "n1", -1))
	want("node without a limit", read("nodes", d("node", "n1")), bson.M{"maxthreads": nil})
}

// TestOutputsInFilesAreRead has another program end a task whose output is too large for its document.
func TestOutputsInFilesAreRead(t *testing.T) {
	s, db, no := openTest(t)
	q, err := s.EnsureQueue(t.Context(), plan.Queue{Name: "demo", Plugin: "demo", Unlimited: true})
	no(err)
	task := plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Name: "a", Queue: q.ID}
	child := plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Queue: q.ID, Needs: []plan.TaskID{task.ID}}
	no(s.AddTasks(t.Context(), plan.PlanID{}, []plan.Task{task, child}))
	perl := disbatch{db.Collection("tasks")}
	_, _, err = perl.Claim(t.Context(), q.ID, "perl1")
	no(err)
	_, err = perl.Start(t.Context(), task.ID, "perl1")
	no(err)
	_, err = perl.End(t.Context(), task.ID, "perl1", plan.Succeeded)
	no(err)
	file := bson.NewObjectID()
	_, err = db.Collection("tasks.files").InsertOne(t.Context(), d("_id", file, "filename", "stdout", "metadata", d("task_id", oid(task.ID.ID))))
	no(err)
	for n, data := range []string{`{"parts":`, `"all of`, ` them"}`} {
		_, err = db.Collection("tasks.chunks").InsertOne(t.Context(), d("files_id", file, "n", n, "data", data))
		no(err)
	}
	_, err = perl.update(t.Context(), d("_id", oid(task.ID.ID)), d("stdout", file, "complete", true))
	no(err)
	id := plan.InstanceID{ID: plan.NewID(time.Now())}
	no(s.Register(t.Context(), plan.Instance{ID: id, Node: "n1", Plugins: []string{"demo"}}))
	_, err = s.Sweep(t.Context(), protocol.Sweep{Instance: id})
	no(err)
	got, err := s.Task(t.Context(), child.ID)
	no(err)
	if want := `{"needs":{"a":{"parts":"all of them"}},"args":[{"parts":"all of them"}]}`; string(got.Params) != want {
		t.Errorf("the child's params are %s, want %s", got.Params, want)
	}
}

// TestOddDocumentsHarmNobody has other programs write fields of types that nobody expects.
func TestOddDocumentsHarmNobody(t *testing.T) {
	s, db, no := openTest(t)
	q := bson.NewObjectID()
	_, err := db.Collection("queues").InsertOne(t.Context(), d("_id", q, "name", "odd", "plugin", "demo", "threads", "3", "sort", "default"))
	no(err)
	_, err = db.Collection("nodes").InsertMany(t.Context(), []any{
		d("node", "n1", "timestamp", 5, "maxthreads", 4.0), d("node", "n2", "maxthreads", -1), d("node", "n3", "maxthreads", "many"), d("node", "n4", "maxthreads", nil),
	})
	no(err)
	for _, params := range []any{bson.A{1}, "text", nil, d("a", 1)} {
		_, err = db.Collection("tasks").InsertOne(t.Context(), d(
			"queue", q, "status", -2.0, "node", -1.0, "params", params, "ctime", 5, "mtime", "now", "stdout", 7, "stderr", bson.A{}))
		no(err)
	}
	queues, err := s.Queues(t.Context())
	no(err)
	no(s.CountQueues(t.Context(), queues))
	if len(queues) != 1 || queues[0].Threads != 3 || queues[0].Sort != plan.SortDefault || queues[0].Queued != 4 {
		t.Errorf("queues are %+v, want one with 3 threads, of the default sort, with 4 queued", queues)
	}
	id := plan.InstanceID{ID: plan.NewID(time.Now())}
	no(s.Register(t.Context(), plan.Instance{ID: id, Node: "n1", Plugins: []string{"demo"}}))
	did, err := s.Turn(t.Context(), protocol.Turn{Instance: id, Slots: 9, Plugins: []string{"demo"}, Start: true})
	no(err)
	if len(did.Claimed) != 1 || len(did.Refused) != 2 {
		t.Fatalf("claimed %d tasks and refused %v, want that without params, and those with a list and with a text refused", len(did.Claimed), did.Refused)
	}
	ended := []protocol.Ending{{Claim: did.Claimed[0].Claim, Status: plan.Succeeded}}
	did, err = s.Turn(t.Context(), protocol.Turn{Instance: id, Ended: ended, Slots: 9, Plugins: []string{"demo"}, Start: true})
	no(err)
	if len(did.Lost) != 0 || len(did.Claimed) != 1 {
		t.Errorf("lost %v and claimed %d, want the fourth", did.Lost, len(did.Claimed))
	}
	told, err := s.Beat(t.Context(), protocol.Beat{Instance: id})
	no(err)
	if told.MaxThreads != 4 {
		t.Errorf("the node may run %d, want 4", told.MaxThreads)
	}
	limits, err := s.MaxThreads(t.Context())
	no(err)
	if len(limits) != 1 || limits["n1"] != 4 {
		t.Errorf("the limits of nodes are %v, want 4 of n1", limits)
	}
	_, err = s.Sweep(t.Context(), protocol.Sweep{Instance: id})
	no(err)
	tasks, err := s.Tasks(t.Context(), store.TaskQuery{Params: true, Output: true})
	no(err)
	changed, _, err := s.Changes(t.Context(), "", 100)
	no(err)
	if len(tasks) != 4 || len(changed) < 3 {
		t.Errorf("%d tasks and %d changes are read, want 4 and at least 3", len(tasks), len(changed))
	}
}
