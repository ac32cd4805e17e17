package mongodb

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// A messy database has what other programs may write, beside what Sluice does.
type messy struct {
	*testing.T
	s   *Store
	db  *mongo.Database
	uri string
}

func newMessy(t *testing.T) *messy {
	uri, db := database(t)
	s, err := Open(t.Context(), uri, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return &messy{t, s, db, uri}
}

func (m *messy) no(err error) {
	m.Helper()
	if err != nil {
		m.Fatal(err)
	}
}

func (m *messy) put(collection string, pairs ...any) {
	m.Helper()
	_, err := m.db.Collection(collection).InsertOne(m.Context(), d(pairs...))
	m.no(err)
}

// task inserts a task as Disbatch does, with further fields, which go before those that it has anyway.
func (m *messy) task(q plan.Queue, pairs ...any) bson.ObjectID {
	m.Helper()
	own := d(pairs...)
	has := map[string]bool{}
	for _, e := range own {
		has[e.Key] = true
	}
	id := bson.NewObjectID()
	for _, e := range d("_id", id, "queue", oid(q.ID.ID), "status", -2, "node", nil, "params", d("run", "true"), "stdout", nil, "stderr", nil,
		"ctime", time.Now(), "mtime", time.Now()) {
		if !has[e.Key] {
			own = append(own, e)
		}
	}
	_, err := m.db.Collection("tasks").InsertOne(m.Context(), own)
	m.no(err)
	return id
}

func (m *messy) queue(name string, threads int) plan.Queue {
	m.Helper()
	q, err := m.s.CreateQueue(m.Context(), plan.Queue{Name: name, Plugin: "x", Threads: threads})
	m.no(err)
	return q
}

func (m *messy) read(id bson.ObjectID) plan.Task {
	m.Helper()
	t, err := m.s.Task(m.Context(), taskID(id))
	m.no(err)
	return t
}

// oddFields are fields that Sluice knows, of other types.
var oddFields = [][]any{
	{"name", 5}, {"attempt", "1"}, {"rank", "h"}, {"rank", 1.5}, {"items", bson.A{1, "a"}}, {"index", "a"}, {"lines", "a"}, {"gen", d("a", 1)},
	{"needs", bson.A{"mother"}}, {"cancel", "no"}, {"sealed", 7}, {"made", "yesterday"}, {"rescues", "none"}, {"exit", d("code", "0", "signal", "KILL")},
	{"plan", "nightly"}, {"hold", 1}, {"slot", "first"}, {"nodeslot", "first"}, {"qnslot", "first"}, {"token", 3}, {"detail", bson.A{}}, {"reason", 7}, {"def", 5}, {"text", 8},
	{"output", d("n", 1)}, {"def", "{nope"}, {"text", "a text of its own"},
}

func TestADocumentOfAnotherProgramIsListedWithTheOthers(t *testing.T) {
	m := newMessy(t)
	q := m.queue("imap", 4)
	m.put("queues", "_id", bson.NewObjectID(), "name", 2024, "plugin", 7, "threads", "3", "sort", 1)
	m.put("queues", "_id", "exec", "name", "exec", "plugin", "exec", "threads", 1e300)
	queues, err := m.s.Queues(t.Context())
	m.no(err)
	if len(queues) != 2 || queues[0].Name != "2024" || queues[0].Plugin != "7" || queues[0].Threads != 3 || queues[1].Name != "imap" {
		t.Errorf("the queues are %+v, want 2024 and imap", queues)
	}
	if _, err := m.s.EnsureQueue(t.Context(), plan.Queue{Name: "exec", Plugin: "exec"}); err == nil || !strings.Contains(err.Error(), "no ObjectID") {
		t.Errorf("the queue whose id is a text: %v", err)
	}
	for _, fields := range oddFields {
		m.task(q, fields...)
	}
	m.task(q, "_id", 42)
	m.task(q, "_id", "mytask")
	for _, status := range []any{"-2", -2.5, 99999999999, 2.5, 1.0, math.NaN(), nil} {
		m.task(q, "status", status)
	}
	tasks, err := m.s.Tasks(t.Context(), store.TaskQuery{Needs: true, Params: true, Output: true})
	m.no(err)
	if want := len(oddFields) + 7; len(tasks) != want {
		t.Fatalf("%d tasks are listed, want %d", len(tasks), want)
	}
	var states []string
	for _, k := range tasks[len(oddFields):] {
		states = append(states, k.State())
	}
	if got := fmt.Sprint(states); got != "[unknown unknown failed failed succeeded unknown unknown]" {
		t.Errorf("the states are %s", got)
	}
	for _, k := range tasks {
		got := m.read(oid(k.ID.ID))
		if string(got.Params) != `{"run":"true"}` {
			t.Errorf("params are %s", got.Params)
		}
	}
	changes, _, err := m.s.Changes(t.Context(), "", 1000)
	if err != nil || len(changes) != len(tasks) {
		t.Errorf("%d changes of %d tasks, %v", len(changes), len(tasks), err)
	}
	m.no(err)

	m.put("plans", "_id", bson.NewObjectID(), "name", "odd", "run", "first", "state", "ready", "params", 5)
	m.put("plans", "_id", 5, "name", "odder")
	p, err := m.s.CreatePlan(t.Context(), plan.Plan{Name: "nightly"})
	m.no(err)
	m.task(q, "plan", oid(p.ID.ID), "status", "late", "name", "a")
	m.task(q, "plan", bson.A{oid(p.ID.ID)})
	plans, err := m.s.Plans(t.Context(), store.PlanQuery{})
	if err != nil || len(plans) != 2 || plans[0].Title() != "nightly#1" || plans[1].State.String() != "unknown" {
		t.Errorf("the plans are %+v, %v", plans, err)
	}

	m.put("instances", "_id", bson.NewObjectID(), "node", d("name", "n"), "beats", "many")
	m.put("instances", "_id", "n2", "node", "n2")
	if there, err := m.s.Instances(t.Context()); err != nil || len(there) != 0 {
		t.Errorf("the instances are %+v, %v; want none", there, err)
	}
}

func TestParamsOfAnotherProgram(t *testing.T) {
	m := newMessy(t)
	q := m.queue("imap", 4)
	for _, c := range []struct {
		name   string
		params any
		want   string
	}{
		{"an object", d("run", "echo hi"), `{"run":"echo hi"}`},
		{"an object in a text", ` {"run":"echo hi"}`, ` {"run":"echo hi"}`},
		{"a text", "echo hi", `"echo hi"`},
		{"a list", bson.A{"echo", 1}, `["echo",1]`},
		{"a number", 5, "5"},
		{"a date", time.UnixMilli(0), `{"$date":{"$numberLong":"0"}}`},
		{"null", nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := m.read(m.task(q, "params", c.params)).Params; string(got) != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestWhatFitsOfADocumentIsRead(t *testing.T) {
	raw, err := bson.Marshal(d("_id", d("plan", bson.NilObjectID, "reason", 5, "coe", true), "n", 3, "other", 1))
	if err != nil {
		t.Fatal(err)
	}
	var v struct {
		Key struct {
			Reason  plan.Reason `bson:"reason"`
			Lenient bool        `bson:"coe"`
		} `bson:"_id"`
		N int `bson:"n"`
	}
	if err := wire.Decode(raw, &v); err != nil || !v.Key.Lenient || v.Key.Reason != "" || v.N != 3 {
		t.Errorf("got %+v, %v", v, err)
	}
	if err := wire.Decode(raw[:len(raw)-3], &v); err == nil {
		t.Error("half a document is read")
	}
}

// node registers a node and returns what makes a turn of it.
func (m *messy) node() func(slots int, ended ...protocol.Ending) protocol.Turned {
	m.Helper()
	id := plan.InstanceID{ID: plan.NewID(time.Now())}
	m.no(m.s.Register(m.Context(), plan.Instance{ID: id, Node: "n1", Plugins: []string{"x"}, Lease: time.Minute}))
	var holding []plan.TaskID
	return func(slots int, ended ...protocol.Ending) protocol.Turned {
		m.Helper()
		did, err := m.s.Turn(m.Context(), protocol.Turn{Instance: id, Slots: slots, Ended: ended, Plugins: []string{"x"}, Start: true})
		m.no(err)
		for _, c := range did.Claimed {
			holding = append(holding, c.Task)
		}
		_, err = m.s.Sweep(m.Context(), protocol.Sweep{Instance: id, Holding: holding})
		m.no(err)
		return did
	}
}

func TestATaskOfAnotherProgramRunsOrFailsAndTheOthersRun(t *testing.T) {
	for _, threads := range []int{1, 99} {
		t.Run(fmt.Sprint("threads ", threads), func(t *testing.T) {
			m := newMessy(t)
			m.T = t
			q := m.queue("imap", threads)
			var all []bson.ObjectID
			for _, fields := range oddFields {
				all = append(all, m.task(q, fields...))
			}
			m.task(q, "_id", 42)
			m.task(q, "_id", "mytask")
			runs := len(all) - 1 // but one whose definition is no JSON
			bad := map[bson.ObjectID]string{all[len(all)-2]: "its definition cannot be read: invalid character"}
			for params, why := range map[any]string{5: "its params are a single value; they have to be an object: 5", "echo hi": `a text; they have to be an object: "echo hi"`} {
				bad[m.task(q, "params", params)] = why
			}
			bad[m.task(q, "params", bson.A{1})] = "its params are a list; they have to be an object: [1]"
			all = append(all, m.task(q, "params", `{"run":"echo hi"}`), m.task(q, "params", nil), m.task(q))
			runs += 3
			turn := m.node()
			params := map[plan.TaskID]string{}
			var ended []protocol.Ending
			for range 60 {
				did := turn(threads, ended...)
				if len(did.Lost) > 0 {
					t.Errorf("lost %v", did.Lost)
				}
				if ended = nil; len(did.Claimed) == 0 && !did.More {
					break
				}
				for _, c := range did.Claimed {
					params[c.Task] = string(c.Params)
					ended = append(ended, protocol.Ending{Claim: c.Claim, Status: plan.Succeeded, Output: []byte("1"),
						Log: []plan.LogEntry{{At: time.Now(), Stream: plan.Stdout, Text: "done\n"}}})
				}
			}
			if len(params) != runs {
				t.Errorf("%d tasks were claimed, want %d", len(params), runs)
			}
			if got := fmt.Sprint(params[taskID(all[len(all)-3])], params[taskID(all[len(all)-2])]); got != `{"run":"echo hi"}{}` {
				t.Errorf("params in a text, and none, are claimed as %s", got)
			}
			for i, id := range all {
				switch got := m.read(id); {
				case bad[id] != "":
				case got.Status != plan.Succeeded || string(got.Output) != "1":
					t.Errorf("task %d is %v with output %s: %s", i, got.Status, got.Output, got.Detail)
				default:
					if log, _, err := m.s.Log(t.Context(), got.ID, 0, 9); err != nil || len(log) != 1 {
						t.Errorf("task %d has a log of %d entries, %v", i, len(log), err)
					}
				}
			}
			for id, why := range bad {
				if got := m.read(id); got.Status != plan.Failed || got.Reason != plan.ReasonInput || !strings.Contains(got.Detail, why) {
					t.Errorf("task %s is %v, %s: %s; want %s", id.Hex(), got.Status, got.Reason, got.Detail, why)
				}
			}
			n, err := m.s.tasks.CountDocuments(t.Context(), d("_id", d("$in", bson.A{42, "mytask"}), "status", plan.Failed, "detail", "its _id is no ObjectID"))
			if err != nil || n != 2 {
				t.Errorf("%d tasks without an ObjectID failed, %v; want 2", n, err)
			}
		})
	}
}

// TestATaskThatIsTooLargeDoesNotJamItsNode has documents that leave less and less room.
func TestATaskThatIsTooLargeDoesNotJamItsNode(t *testing.T) {
	m := newMessy(t)
	q := m.queue("imap", 99)
	empty, err := bson.Marshal(d("_id", bson.NewObjectID(), "queue", oid(q.ID.ID), "status", -2, "node", nil, "params", d("x", ""), "stdout", nil, "stderr", nil,
		"ctime", time.Now(), "mtime", time.Now()))
	m.no(err)
	filled := func(left int) bson.ObjectID {
		return m.task(q, "params", d("x", strings.Repeat("x", largestDocument-left-len(empty))))
	}
	full, ended, room := filled(3), filled(300), filled(7<<20)
	turn := m.node()
	did := turn(9)
	good := m.task(q)
	for did.More {
		next := turn(9)
		did.Claimed, did.More = append(did.Claimed, next.Claimed...), next.More
	}
	var ends []protocol.Ending
	for _, c := range did.Claimed {
		ends = append(ends, protocol.Ending{Claim: c.Claim, Status: plan.Succeeded, Output: []byte(`"` + strings.Repeat("x", plan.MaxOutput-2) + `"`)})
	}
	if did = turn(9, ends...); len(did.Lost) > 0 {
		t.Errorf("lost %v", did.Lost)
	}
	for _, c := range []struct {
		name   string
		id     bson.ObjectID
		status plan.Status
		reason plan.Reason
		detail string
	}{
		{"one that is full", full, plan.Failed, "", ""},
		{"one that can be claimed and not more", ended, plan.Failed, "", ""},
		{"one without room for its output", room, plan.Failed, plan.ReasonOutput, "its output of 8388608 bytes does not fit beside the rest of the task"},
		{"another one", good, plan.Succeeded, "", ""},
	} {
		if got := m.read(c.id); got.Status != c.status || c.reason != "" && got.Reason != c.reason || !strings.Contains(got.Detail, c.detail) {
			t.Errorf("%s is %v, %s: %s", c.name, got.Status, got.Reason, got.Detail)
		}
	}
	if did := turn(9); len(did.Claimed) > 0 || did.More || len(did.Refused) > 0 {
		t.Errorf("after all has ended there is %+v", did)
	}
}

func TestADefinitionThatCannotBeReadKeepsNoNodeFromLeaving(t *testing.T) {
	m := newMessy(t)
	q := m.queue("imap", 9)
	id := m.task(q)
	ID := plan.InstanceID{ID: plan.NewID(time.Now())}
	m.no(m.s.Register(t.Context(), plan.Instance{ID: ID, Node: "n1", Plugins: []string{"x"}, Lease: time.Minute}))
	_, err := m.s.Turn(t.Context(), protocol.Turn{Instance: ID, Slots: 1, Plugins: []string{"x"}})
	m.no(err)
	_, err = m.s.tasks.UpdateByID(t.Context(), id, d("$set", d("def", "{nope")))
	m.no(err)
	m.no(m.s.Leave(t.Context(), ID))
	if got := m.read(id); got.Status != plan.Queued || !strings.Contains(got.Detail, "its definition cannot be read") {
		t.Errorf("the task is %v: %s", got.Status, got.Detail)
	}
}

// foreach adds a foreach task over three items, which a sweep makes, beside a task of no plan.
func (m *messy) foreach(q plan.Queue) (of bson.ObjectID) {
	m.Helper()
	task := plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Queue: q.ID,
		Definition: plan.Definition{Foreach: &plan.Foreach{List: []byte(`["a","b","c"]`)}}}
	m.no(m.s.AddTasks(m.Context(), readyPlan(m.T, m.s), []plan.Task{task}))
	m.task(q)
	return oid(task.ID.ID)
}

func TestANumberOfItemsThatCannotBeStopsNoNode(t *testing.T) {
	for _, c := range []struct {
		name   string
		joins  bool // else tasks
		item   bool // else the foreach task
		field  string
		value  any
		output string // of the foreach task; none: it fails
	}{
		{name: "an item before the first", item: true, field: "index", value: -1, output: `["0","1","2"]`},
		{name: "an item without a number", item: true, field: "index", value: "1", output: `["0","1","2"]`},
		{name: "an item far behind the last", item: true, field: "index", value: 1 << 40, output: `["0","1","2"]`},
		{name: "fewer items than none", field: "items", value: -1},
		{name: "more items than there can be", field: "items", value: int64(1e15)},
		{name: "items counted in words", field: "items", value: "three"},
		{name: "fewer items than none in a join", joins: true, field: "count", value: -1},
		{name: "more items in a join than there can be", joins: true, field: "count", value: int64(1e15)},
		{name: "a join before the first", joins: true, field: "n", value: -1, output: `["0","1","2"]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMessy(t)
			m.T = t
			q := m.queue("imap", 4)
			of := m.foreach(q)
			in, where := m.s.tasks, d("_id", of)
			switch {
			case c.joins:
				in, where = m.s.joins, d("child", of)
			case c.item:
				where = d("_id", itemID(of, 1))
			}
			n, err := in.UpdateOne(t.Context(), where, d("$set", d(c.field, c.value)))
			if m.no(err); n.ModifiedCount != 1 {
				t.Fatal("nothing was damaged")
			}
			turn := m.node()
			did := turn(4)
			if len(did.Claimed) != 4 {
				t.Errorf("%d tasks were claimed, want 4", len(did.Claimed))
			}
			var ended []protocol.Ending
			for _, c := range did.Claimed {
				ended = append(ended, protocol.Ending{Claim: c.Claim, Status: plan.Succeeded, Output: fmt.Appendf(nil, "%q", fmt.Sprint(rules.ItemIndex(c.Task)))})
			}
			turn(0, ended...)
			turn(0)
			switch got := m.read(of); {
			case c.output != "" && (got.Status != plan.Succeeded || string(got.Output) != c.output):
				t.Errorf("the foreach task is %v with output %s, %s; want %s", got.Status, got.Output, got.Detail, c.output)
			case c.output == "" && (got.Status != plan.Failed || got.Reason != plan.ReasonInput || !strings.Contains(got.Detail, "what counts its items")):
				t.Errorf("the foreach task is %v, %s: %s", got.Status, got.Reason, got.Detail)
			}
		})
	}
}

func TestATaskWhoseParamsAreNoObjectIsRetried(t *testing.T) {
	m := newMessy(t)
	q := m.queue("imap", 9)
	parent := m.task(q)
	alone, child := m.task(q, "params", "echo"), m.task(q, "params", "echo", "status", plan.Held, "hold", holdNeeds, "needs", bson.A{parent}, "gen", 0)
	turn := m.node()
	did := turn(9)
	turn(9, protocol.Ending{Claim: did.Claimed[0].Claim, Status: plan.Succeeded})
	for _, again := range []string{"", "after a retry "} {
		for name, id := range map[string]bson.ObjectID{"the task": alone, "the child": child} {
			if got := m.read(id); got.Status != plan.Failed || got.Reason != plan.ReasonInput || !strings.Contains(got.Detail, "have to be an object") {
				t.Errorf("%s%s is %v, %s: %s", again, name, got.Status, got.Reason, got.Detail)
			}
		}
		_, err := m.s.Retry(t.Context(), plan.PlanID{}, rules.Ask{Tasks: []plan.TaskID{taskID(child), taskID(alone)}})
		m.no(err)
		turn(9)
	}
}

// TestAForeachTaskWhoseItemsCannotBeMadeFails damages one when some of its items are in.
func TestAForeachTaskWhoseItemsCannotBeMadeFails(t *testing.T) {
	set := func(pairs ...any) func(*messy, bson.ObjectID) error {
		return func(m *messy, of bson.ObjectID) error {
			_, err := m.s.tasks.UpdateByID(m.Context(), of, d(pairs...))
			return err
		}
	}
	for _, c := range []struct {
		name   string
		damage func(m *messy, of bson.ObjectID) error
		detail string
	}{
		{"its list is gone", func(m *messy, of bson.ObjectID) error {
			_, err := m.s.items.DeleteMany(m.Context(), d("task", of))
			return err
		}, "of its 40 items all but the first 30 are gone from the store; retry it"},
		{"its definition cannot be read", set("$set", d("def", "{")), "its definition cannot be read: unexpected end"},
		{"its definition is gone", set("$unset", d("def", 1)), "its definition has no foreach any more"},
		{"its params are no object", set("$set", d("params", "echo")), `its params are a text; they have to be an object: "echo"`},
		{"its params leave an item no room", set("$set", d("text", `{"n":1.00,"x":"`+strings.Repeat("x", largestDocument*5/8)+`"}`)),
			`item 30: task "copy[30]": its document would have 209`},
		{"it has lost count", set("$set", d("items", -1)), "its items are miscounted: 0, of which 30 are in and 0 were queued; retry it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMessy(t)
			m.T = t
			q := m.queue("imap", 99)
			id := plan.InstanceID{ID: plan.NewID(time.Now())}
			m.no(m.s.Register(t.Context(), plan.Instance{ID: id, Node: "n1", Plugins: []string{"x"}, Lease: time.Minute}))
			task := plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Name: "copy", Queue: q.ID, Definition: plan.Definition{Foreach: &plan.Foreach{Lines: "/list"}}}
			child := plan.Task{ID: plan.TaskID{ID: plan.NewID(time.Now())}, Name: "child", Queue: q.ID, Needs: []plan.TaskID{task.ID}}
			p := readyPlan(m.T, m.s)
			m.no(m.s.AddTasks(t.Context(), p, []plan.Task{task, child}))
			turn := protocol.Turn{Instance: id, Slots: 99, Plugins: []string{"x"}, Start: true}
			did, err := m.s.Turn(t.Context(), turn)
			if m.no(err); len(did.Claimed) != 1 {
				t.Fatalf("%d tasks were claimed, want 1", len(did.Claimed))
			}
			e := protocol.Ending{Claim: did.Claimed[0].Claim, Status: plan.Held, Expand: true}
			for i := range 40 {
				e.Items = append(e.Items, fmt.Append(nil, i))
			}
			turn.Ended, turn.Budget = []protocol.Ending{e}, 31
			_, err = m.s.Turn(t.Context(), turn)
			m.no(err)
			of := oid(task.ID.ID)
			m.no(c.damage(m, of))
			m.task(q)
			turn.Ended, turn.Budget = nil, 0
			did, err = m.s.Turn(t.Context(), turn)
			if m.no(err); len(did.Claimed) != 1 {
				t.Errorf("%d tasks were claimed beside it, want 1", len(did.Claimed))
			}
			if got := m.read(of); got.Status != plan.Failed || got.Reason != plan.ReasonInput || !strings.Contains(got.Detail, c.detail) {
				t.Errorf("it is %v, %s: %s; want %s", got.Status, got.Reason, got.Detail, c.detail)
			}
			if got := m.read(oid(child.ID.ID)); got.Status != plan.Cancelled {
				t.Errorf("its child is %v, want cancelled", got.Status)
			}
			n, err := m.s.tasks.CountDocuments(t.Context(), d("of", of, "status", plan.Cancelled, "reason", plan.ReasonSkipped))
			if all, e := m.s.tasks.CountDocuments(t.Context(), d("of", of)); err != nil || e != nil || n != 30 || all != n {
				t.Errorf("%d of %d items are cancelled, %v, %v; want 30", n, all, err, e)
			}
			for c, of := range map[*mongo.Collection]string{m.s.work: "work", m.s.items: "items"} {
				if n, err := c.CountDocuments(t.Context(), d()); err != nil || n != 0 {
					t.Errorf("%d documents of %s are left, %v", n, of, err)
				}
			}
			_, err = m.s.Retry(t.Context(), p, rules.Ask{Tasks: []plan.TaskID{task.ID}, Replace: []plan.Task{task}})
			m.no(err)
			if got := m.read(of); got.Status != plan.Queued || got.Items != 0 {
				t.Errorf("after a retry it is %v with %d items: %s", got.Status, got.Items, got.Detail)
			}
			if all, err := m.s.tasks.CountDocuments(t.Context(), d("of", of)); err != nil || all != 0 {
				t.Errorf("after a retry %d of its items are there, %v", all, err)
			}
		})
	}
}

func TestWorkThatIsNobodysHidesNone(t *testing.T) {
	m := newMessy(t)
	q := m.queue("imap", 4)
	parent := m.task(q, "status", plan.Succeeded, "complete", true)
	child := m.task(q, "status", plan.Held, "hold", holdNeeds, "needs", bson.A{parent}, "gen", 0, "open", true)
	for i := range 20 {
		m.put("work", "_id", fmt.Sprint("x", i), "kind", workRelease)
		m.put("work", "_id", i, "kind", workLook)
	}
	foreach := m.task(q, "status", plan.Cancelled, "complete", true, "items", 3)
	m.put("work", "_id", bson.NewObjectID(), "kind", workCancel, "target", foreach, "from", int64(-1e15)) // a way without end
	m.put("work", "_id", bson.NewObjectID(), "kind", workRelease, "tasks", bson.A{parent})
	if did := m.node()(4); len(did.Claimed) != 1 || did.Claimed[0].Task != taskID(child) {
		t.Errorf("%+v were claimed, want the child", did.Claimed)
	}
}
