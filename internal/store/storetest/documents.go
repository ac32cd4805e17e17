package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// Documents runs the suite of store.Documents.
func Documents(t *testing.T, d Driver) {
	for _, c := range documentCases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, &d)
			c.run(&documentWorld{w, w.s.(store.Documents)})
		})
	}
}

type documentWorld struct {
	*world
	docs store.Documents
}

var documentCases = []struct {
	name string
	run  func(w *documentWorld)
}{
	{"nodes have documents", documentNodes},
	{"a limit of a node changes it once", documentLimit},
	{"a queue that was added has no threads, and nothing of it is claimed", documentQueueAdded},
	{"what an edit names is changed, once", documentQueueEdit},
	{"a queue that a plan needs stays", documentQueueNeeded},
	{"a queue goes, and its tasks stay", documentQueueDeleted},
	{"queues are counted by status", documentQueueCounts},
	{"tasks have Disbatch's fields", documentFields},
	{"conditions select tasks", documentConditions},
	{"an answer is skipped, limited and cut", documentPages},
	{"collections by name", documentCollections},
}

// find returns the tasks that match, by their params' n.
func (w *documentWorld) find(q store.DocumentQuery) (found []store.Document) {
	w.Helper()
	w.no(w.docs.TaskDocuments(w.ctx, q, func(doc store.Document) error {
		found = append(found, doc)
		return nil
	}))
	return found
}

func (w *documentWorld) view(name string) store.QueueView {
	w.Helper()
	views := must(w.docs.QueueViews(w.ctx))(w.world)
	i := slices.IndexFunc(views, func(v store.QueueView) bool { return v.Name == name })
	if i < 0 {
		return store.QueueView{}
	}
	return views[i]
}

func (w *documentWorld) threads(name string) string {
	w.Helper()
	v := w.view(name)
	switch {
	case v.ID.IsZero():
		return "no queue"
	case v.Threads == nil:
		return "null"
	}
	return fmt.Sprint(*v.Threads)
}

// put adds tasks of no plan with these params.
func (w *documentWorld) put(q plan.QueueID, params ...string) (ids []plan.TaskID) {
	w.Helper()
	tasks := make([]plan.Task, len(params))
	minted := plan.NewIDs(time.Now(), len(params))
	for i, p := range params {
		tasks[i] = plan.Task{ID: plan.TaskID{ID: minted.Next()}, Queue: q, Params: json.RawMessage(p)}
		ids = append(ids, tasks[i].ID)
	}
	w.no(w.s.AddTasks(w.ctx, plan.PlanID{}, tasks))
	return ids
}

func documentNodes(w *documentWorld) {
	w.equal("nodes at first", len(must(w.docs.NodeDocuments(w.ctx))(w.world)), 0)
	w.node("n2")
	w.node("n1")
	nodes := must(w.docs.NodeDocuments(w.ctx))(w.world)
	w.equal("nodes", []any{len(nodes), nodes[0]["node"], nodes[1]["node"]}, []any{2, "n1", "n2"})
	_, id := nodes[0]["_id"].(plan.ID)
	at, _ := nodes[0]["timestamp"].(time.Time)
	now := must(w.s.Now(w.ctx))(w.world)
	if !id || now.Sub(at).Abs() > time.Minute {
		w.Errorf("node %v, at %v", nodes[0], now)
	}
}

func documentLimit(w *documentWorld) {
	n := w.node("n1")
	limit := func(threads *int, there, changed bool) {
		w.Helper()
		gotThere, gotChanged, err := w.docs.LimitNode(w.ctx, "n1", threads)
		w.no(err)
		w.equal("limited", []any{gotThere, gotChanged}, []any{there, changed})
	}
	two, three := 2, 3
	limit(&two, true, true)
	limit(&two, true, false)
	limit(&three, true, true)
	w.equal("limit", fmt.Sprint(must(w.docs.NodeDocuments(w.ctx))(w.world)[0]["maxthreads"]), "3")
	w.equal("as it beats", must(w.s.Beat(w.ctx, protocol.Beat{Instance: n.id}))(w.world).MaxThreads, 3)
	limit(nil, true, true)
	limit(nil, true, false)
	limited, said := must(w.docs.NodeDocuments(w.ctx))(w.world)[0]["maxthreads"]
	w.equal("no limit, said", []any{limited, said}, []any{nil, true})
	w.equal("as it beats then", must(w.s.Beat(w.ctx, protocol.Beat{Instance: n.id}))(w.world).MaxThreads, -1)
	there, changed, err := w.docs.LimitNode(w.ctx, "nobody", &two)
	w.no(err)
	w.equal("nobody", []any{there, changed, len(must(w.docs.NodeDocuments(w.ctx))(w.world))}, []any{false, false, 1})
}

func documentQueueAdded(w *documentWorld) {
	id := must(w.docs.AddQueue(w.ctx, "q", "exec"))(w.world)
	if _, err := w.docs.AddQueue(w.ctx, "q", "demo"); !errors.Is(err, plan.ErrExists) {
		w.Errorf("added twice: %v", err)
	}
	w.equal("threads", w.threads("q"), "null")
	w.put(id, `{"n":1}`)
	n := w.node("n1")
	w.equal("claimed without threads", len(n.claim(10)), 0)
	one := 1
	w.equal("changed", must(w.docs.EditQueue(w.ctx, id, store.QueueEdit{Threads: &one}))(w.world), true)
	w.equal("claimed with one", len(n.claim(10)), 1)
	w.equal("threads", w.threads("q"), "1")
	w.queue("unlimited", 0)
	w.equal("threads of an unlimited one", w.threads("unlimited"), "null")
}

func documentQueueEdit(w *documentWorld) {
	id := w.queue("a", 2).ID
	other := w.queue("b", 0).ID
	edit := func(what string, id plan.QueueID, e store.QueueEdit, want any) {
		w.Helper()
		changed, err := w.docs.EditQueue(w.ctx, id, e)
		if is, ok := want.(error); ok {
			if !errors.Is(err, is) {
				w.Errorf("%s: %v, want %v", what, err, is)
			}
			return
		}
		w.no(err)
		w.equal(what, changed, want)
	}
	name, taken, plugin, zero, two := "c", "b", "demo", 0, 2
	edit("threads as they are", id, store.QueueEdit{Threads: &two}, false)
	edit("threads", id, store.QueueEdit{Threads: &zero}, true)
	edit("threads again", id, store.QueueEdit{Threads: &zero}, false)
	edit("of an unlimited one", other, store.QueueEdit{Threads: &zero}, true)
	w.equal("threads", w.threads("a")+w.threads("b"), "00")
	edit("a name that is taken", id, store.QueueEdit{Name: &taken, Plugin: &plugin}, plan.ErrExists)
	w.equal("plugin", w.view("a").Plugin, "exec")
	edit("its own name", id, store.QueueEdit{Name: &name}, true)
	edit("its own name again", id, store.QueueEdit{Name: &name}, false)
	edit("plugin", id, store.QueueEdit{Plugin: &plugin, Name: &name}, true)
	edit("nothing", id, store.QueueEdit{}, false)
	w.equal("queue", []any{w.view("c").Plugin, w.view("c").ID, w.view("a").ID.IsZero()}, []any{"demo", id, true})
	edit("nobody's", plan.QueueID{ID: plan.NewID(time.Now())}, store.QueueEdit{Threads: &two}, plan.ErrNotFound)
}

func documentQueueNeeded(w *documentWorld) {
	p := w.submit(queued("a", "q"), queued("b", "held", "a"))
	for _, name := range []string{"q", "held"} {
		if err := w.docs.DeleteQueue(w.ctx, w.view(name).ID); !errors.Is(err, plan.ErrConflict) {
			w.Errorf("queue %s of a plan that runs: %v", name, err)
		}
	}
	w.no(w.s.CancelPlan(w.ctx, p.ID, false))
	w.node("n1").sweep()
	q := w.queueNamed("held")
	q.Secrets = []string{"password"}
	w.no(w.s.SetQueue(w.ctx, q))
	if err := w.docs.DeleteQueue(w.ctx, q.ID); !errors.Is(err, plan.ErrConflict) {
		w.Errorf("a queue that keeps params secret: %v", err)
	}
	q.Secrets = nil
	w.no(w.s.SetQueue(w.ctx, q))
	g := w.group("solution", plan.GroupSettings{SuccessURI: "http://192.0.2.1/ok"})
	q.Group, q.Keep.Succeeded = g.Name, plan.Duration(time.Hour)
	w.no(w.s.SetQueue(w.ctx, q))
	w.put(q.ID, `{"n":1}`)
	w.node("n2").run(ends)
	if err := w.docs.DeleteQueue(w.ctx, q.ID); !errors.Is(err, plan.ErrConflict) {
		w.Errorf("a queue with a task that is to be handed over: %v", err)
	}
	w.no(w.s.PutGroup(w.ctx, g, plan.Group{Name: g.Name}))
	w.no(w.docs.DeleteQueue(w.ctx, w.view("held").ID))
	w.equal("deleted", w.threads("held"), "no queue")
}

func documentQueueDeleted(w *documentWorld) {
	q := w.queue("q", 1)
	q.Keep = plan.Keep{Succeeded: plan.Duration(time.Hour)}
	w.no(w.s.SetQueue(w.ctx, q))
	ids := w.put(q.ID, `{"n":1}`, `{"n":2}`)
	n := w.node("n1")
	running := n.claim(1)[0]
	w.no(w.docs.DeleteQueue(w.ctx, q.ID))
	w.equal("edits of a deleted queue", errors.Is(func() error {
		_, err := w.docs.EditQueue(w.ctx, q.ID, store.QueueEdit{Name: new(string)})
		return err
	}(), plan.ErrNotFound), true)
	w.equal("queues", len(must(w.s.Queues(w.ctx))(w.world)), 0)
	if err := w.docs.DeleteQueue(w.ctx, q.ID); !errors.Is(err, plan.ErrNotFound) {
		w.Errorf("deleted twice: %v", err)
	}
	if err := w.s.AddTasks(w.ctx, plan.PlanID{}, []plan.Task{w.newTask(q, "c")}); !errors.Is(err, plan.ErrNotFound) {
		w.Errorf("task for a deleted queue: %v", err)
	}
	again := w.queue("q", 0)
	w.equal("claimed of what was in it", len(n.claim(10)), 0)
	n.end(ok(running))
	w.equal("what ran has ended", must(w.s.Task(w.ctx, ids[0]))(w.world).Status, plan.Succeeded)
	doc := w.find(store.DocumentQuery{Where: []store.Condition{{Field: "_id", Any: []any{ids[1].ID}}}})[0]
	w.equal("what waited", []any{fmt.Sprint(doc["status"]), doc["queue"]}, []any{"-2", q.ID.ID})
	w.equal("in the new one", len(w.find(store.DocumentQuery{Where: []store.Condition{{Field: "queue", Any: []any{again.ID.ID}}}})), 0)
	w.pass(2 * time.Hour)
	w.equal("what goes after the time that the queue said", w.expired(), protocol.Expired{})
}

func documentQueueCounts(w *documentWorld) {
	q := w.queue("q", 2)
	w.put(q.ID, `{"n":1}`, `{"n":2}`, `{"n":3}`, `{"n":4}`)
	n := w.node("n1")
	n.end(ok(n.claim(1)[0]))
	n.end(protocol.Ending{Claim: n.claim(1)[0].Claim, Status: 7})
	n.claim(1)
	w.equal("counts", fmt.Sprint(w.view("q").Statuses), fmt.Sprint(map[plan.Status]int{plan.Queued: 1, plan.Running: 1, plan.Succeeded: 1, 7: 1}))
}

func documentFields(w *documentWorld) {
	q := w.queue("q", 0)
	id := w.put(q.ID, `{"n":1,"big":12345678901234567890.5,"of":{"a":[1,"x",null,true]}}`)[0]
	doc := w.find(store.DocumentQuery{Where: []store.Condition{{Field: "_id", Any: []any{id.ID}}}})[0]
	names := slices.Sorted(maps.Keys(doc))
	w.equal("fields", names, []string{"_id", "ctime", "mtime", "node", "params", "queue", "status", "stderr", "stdout"})
	w.equal("values", []any{doc["_id"], doc["queue"], doc["node"], doc["stdout"], fmt.Sprint(doc["status"])}, []any{id.ID, q.ID.ID, nil, nil, "-2"})
	params, _ := doc["params"].(map[string]any)
	text, err := json.Marshal(params)
	w.no(err)
	w.equal("params", string(text), `{"big":12345678901234567890.5,"n":1,"of":{"a":[1,"x",null,true]}}`)
	n := w.node("n1")
	c := n.one()
	w.no(w.s.(store.Results).PutResults(w.ctx, c.Claim, section("out\n"), nil, protocol.GFSAuto))
	n.end(ok(c))
	doc = w.find(store.DocumentQuery{Where: []store.Condition{{Field: "_id", Any: []any{id.ID}}}})[0]
	w.equal("ended", []any{fmt.Sprint(doc["status"]), doc["node"], doc["stdout"], doc["stderr"], doc["complete"]}, []any{"1", "n1", "out\n", nil, true})
	if _, ok := doc["mtime"].(time.Time); !ok || doc["token"] != nil {
		w.Errorf("it is %v", doc)
	}
}

func documentConditions(w *documentWorld) {
	q, other := w.queue("q", 0), w.queue("other", 0)
	ids := w.put(q.ID, `{"n":1,"s":"a","l":["x","y"]}`, `{"n":2,"s":"1","o":{"a":1,"b":2}}`, `{"n":3,"s":null}`)
	n := w.node("n1")
	n.end(protocol.Ending{Claim: n.claim(1)[0].Claim, Status: 3})
	w.put(other.ID, `{"n":4,"s":"$ne"}`)
	for _, c := range []struct {
		where []store.Condition
		want  string
	}{
		{nil, "[1 2 3 4]"},
		{[]store.Condition{{Field: "queue", Any: []any{q.ID.ID}}}, "[1 2 3]"},
		{[]store.Condition{{Field: "queue", Any: []any{other.ID.ID, q.ID.ID}}, {Field: "status", Any: []any{json.Number("-2")}}}, "[2 3 4]"},
		{[]store.Condition{{Field: "status", Any: []any{json.Number("3")}}}, "[1]"},
		{[]store.Condition{{Field: "status", Any: []any{json.Number("3.0"), json.Number("-2")}}}, "[1 2 3 4]"},
		{[]store.Condition{{Field: "status", Any: []any{json.Number("2")}}}, "[]"},
		{[]store.Condition{{Field: "status", Any: []any{json.Number("2.5"), json.Number("1e300")}}}, "[]"},
		{[]store.Condition{{Field: "status", Any: []any{"-2"}}}, "[]"},
		{[]store.Condition{{Field: "node", Any: []any{"n1"}}}, "[1]"},
		{[]store.Condition{{Field: "node", Any: []any{nil}}}, "[2 3 4]"},
		{[]store.Condition{{Field: "_id", Any: []any{ids[1].ID, ids[2].ID}}, {Field: "_id", Any: []any{ids[1].ID}}}, "[2]"},
		{[]store.Condition{{Field: "_id", Any: []any{"x"}}}, "[]"},
		{[]store.Condition{{Field: "params.s", Any: []any{"a", "$ne"}}}, "[1 4]"},
		{[]store.Condition{{Field: "params.s", Any: []any{json.Number("1")}}}, "[]"},
		{[]store.Condition{{Field: "params.s", Any: []any{nil}}}, "[3]"},
		{[]store.Condition{{Field: "params.l", Any: []any{"y"}}}, "[1]"},
		{[]store.Condition{{Field: "params.n", Any: []any{json.Number("2"), json.Number("4.0")}}}, "[2 4]"},
		{[]store.Condition{{Field: "params.o", Any: []any{json.RawMessage(`{"a":1,"b":2}`)}}}, "[2]"},
		{[]store.Condition{{Field: "params.o.b", Any: []any{json.Number("2")}}}, "[2]"},
		{[]store.Condition{{Field: "ctime", Any: []any{time.Unix(0, 0)}}}, "[]"},
		{[]store.Condition{{Field: "status", Op: store.NoneOf, Any: []any{json.Number("3"), json.Number("7")}}}, "[2 3 4]"},
		{[]store.Condition{{Field: "status", Op: store.Above, Any: []any{json.Number("-2")}}}, "[1]"},
		{[]store.Condition{{Field: "status", Op: store.AtLeast, Any: []any{json.Number("-2")}}, {Field: "status", Op: store.Below, Any: []any{json.Number("3")}}}, "[2 3 4]"},
		{[]store.Condition{{Field: "status", Op: store.AtMost, Any: []any{json.Number("-2.5")}}}, "[]"},
		{[]store.Condition{{Field: "status", Op: store.Above, Any: []any{"a"}}}, "[]"},
		{[]store.Condition{{Field: "params.n", Op: store.Above, Any: []any{json.Number("2")}}}, "[3 4]"},
		{[]store.Condition{{Field: "params.s", Op: store.AtLeast, Any: []any{"1"}}}, "[1 2]"},
		{[]store.Condition{{Field: "params.s", Op: store.NoneOf, Any: []any{"a"}}}, "[2 3 4]"},
		{[]store.Condition{{Field: "params.s", Op: store.NoneOf, Any: []any{nil}}}, "[1 2 4]"},
		{[]store.Condition{{Field: "params.l", Op: store.NoneOf, Any: []any{"y"}}}, "[2 3 4]"},
		{[]store.Condition{{Field: "params.l", Op: store.Above, Any: []any{"x"}}}, "[1]"},
		{[]store.Condition{{Field: "params.o", Op: store.Exists, Any: []any{true}}}, "[2]"},
		{[]store.Condition{{Field: "params.s", Op: store.Exists, Any: []any{false}}}, "[]"},
		{[]store.Condition{{Field: "params.o.c", Op: store.Exists, Any: []any{false}}}, "[1 2 3 4]"},
		{[]store.Condition{{Field: "queue", Op: store.NoneOf, Any: []any{q.ID.ID}}}, "[4]"},
		{[]store.Condition{{Field: "_id", Op: store.Above, Any: []any{ids[1].ID}}, {Field: "queue", Any: []any{q.ID.ID}}}, "[3]"},
		{[]store.Condition{{Field: "ctime", Op: store.Above, Any: []any{time.Unix(0, 0)}}}, "[1 2 3 4]"},
	} {
		got := []string{}
		for _, doc := range w.find(store.DocumentQuery{Where: c.where}) {
			got = append(got, fmt.Sprint(doc["params"].(map[string]any)["n"]))
		}
		slices.Sort(got)
		w.equal(fmt.Sprint(c.where), fmt.Sprint(got), c.want)
		w.equal(fmt.Sprint("count of ", c.where), must(w.docs.CountTaskDocuments(w.ctx, c.where))(w.world), len(got))
	}
	for _, c := range []struct {
		query store.DocumentQuery
		want  string
	}{
		{store.DocumentQuery{Sort: []store.SortKey{{Field: "_id", Down: true}}}, "[4 3 2 1]"},
		{store.DocumentQuery{Sort: []store.SortKey{{Field: "_id", Down: true}}, Skip: 1, Limit: 2}, "[3 2]"},
		{store.DocumentQuery{Sort: []store.SortKey{{Field: "status", Down: true}, {Field: "_id"}}}, "[1 2 3 4]"},
		{store.DocumentQuery{Sort: []store.SortKey{{Field: "node"}, {Field: "_id", Down: true}}}, "[4 3 2 1]"},
		{store.DocumentQuery{Sort: []store.SortKey{{Field: "queue", Down: true}, {Field: "_id"}}, Limit: 1}, "[4]"},
		{store.DocumentQuery{Where: []store.Condition{{Field: "params.n", Op: store.Below, Any: []any{json.Number("4")}}}, Sort: []store.SortKey{{Field: "_id", Down: true}}}, "[3 2 1]"},
		{store.DocumentQuery{Sort: []store.SortKey{{Field: "_id"}}, Skip: 9}, "[]"},
	} {
		c.query.Fields = map[string]bool{"params": true}
		got := []string{}
		for _, doc := range w.find(c.query) {
			got = append(got, fmt.Sprint(doc["params"].(map[string]any)["n"]))
		}
		w.equal(fmt.Sprint(c.query), fmt.Sprint(got), c.want)
	}
	indexes := must(w.docs.TaskIndexes(w.ctx))(w.world)
	var fields []string
	for _, i := range indexes {
		fields = append(fields, fmt.Sprint(i.Fields))
	}
	slices.Sort(fields)
	w.equal("indexes", fields, []string{"[_id]", "[node status queue _id]", "[node status queue _id]", "[node status queue]", "[queue status]"})
}

func documentPages(w *documentWorld) {
	q := w.queue("q", 0)
	params := make([]string, 1100) // more than a page
	for i := range params {
		params[i] = fmt.Sprintf(`{"n":%d,"x":{"y":1,"z":2}}`, i)
	}
	w.put(q.ID, params...)
	w.equal("all", len(w.find(store.DocumentQuery{})), 1100)
	w.equal("limited", len(w.find(store.DocumentQuery{Limit: 7})), 7)
	w.equal("skipped", len(w.find(store.DocumentQuery{Skip: 1095, Limit: 7})), 5)
	w.equal("count", must(w.docs.CountTaskDocuments(w.ctx, []store.Condition{{Field: "queue", Any: []any{q.ID.ID}}}))(w.world), 1100)
	for _, c := range []struct {
		fields map[string]bool
		want   string
	}{
		{map[string]bool{"status": true, "_id": false}, `{"status":-2}`},
		{map[string]bool{"params.x.y": true, "_id": false, "nothing": true}, `{"params":{"x":{"y":1}}}`},
		{map[string]bool{"params": false, "_id": false, "ctime": false, "mtime": false, "queue": false}, `{"node":null,"status":-2,"stderr":null,"stdout":null}`},
		{map[string]bool{"params.x": false, "_id": false, "ctime": false, "mtime": false, "queue": false}, `{"node":null,"params":{"n":0},"status":-2,"stderr":null,"stdout":null}`},
	} {
		text, err := json.Marshal(w.find(store.DocumentQuery{Where: []store.Condition{{Field: "params.n", Any: []any{json.Number("0")}}}, Fields: c.fields})[0])
		w.no(err)
		w.equal(fmt.Sprint(c.fields), string(text), c.want)
	}
	w.equal("with the id", len(w.find(store.DocumentQuery{Limit: 1, Fields: map[string]bool{"status": true}})[0]), 2)
	stop := errors.New("stop")
	if err := w.docs.TaskDocuments(w.ctx, store.DocumentQuery{}, func(store.Document) error { return stop }); !errors.Is(err, stop) {
		w.Errorf("stopped: %v", err)
	}
}

func documentCollections(w *documentWorld) {
	w.put(w.queue("q", 3).ID, `{"n":1}`)
	w.queue("p", 3)
	count := func(name string, where ...store.Condition) (n int, err error) {
		err = w.docs.CollectionDocuments(w.ctx, name, store.DocumentQuery{Where: where}, func(store.Document) error {
			n++
			return nil
		})
		return n, err
	}
	w.equal("tasks", must(count("tasks"))(w.world), 1)
	w.equal("queues", must(count("queues"))(w.world), 2)
	w.equal("one queue", must(count("queues", store.Condition{Field: "name", Any: []any{"p"}}))(w.world), 1)
	w.equal("another", must(count("nobody_has_it"))(w.world), 0)
	for _, name := range []string{"", "system.users", "a$b", "a\x00b"} {
		if _, err := count(name); !errors.Is(err, plan.ErrNotFound) {
			w.Errorf("collection %q: %v", name, err)
		}
	}
}

// queued is a task of a queue.
func queued(name, queue string, needs ...string) plan.TaskSpec {
	s := task(name, needs...)
	s.Queue = queue
	return s
}
