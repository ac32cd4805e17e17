package mongodb

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/den/protocol"
	"github.com/seed-1177d267/sluice/plan"
)

func TestARunnerLeavesTheDocumentOfItsNodeAlone(t *testing.T) {
	s, db, no := openTest(t)
	nodes := db.Collection("nodes")
	live := func(node plan.NodeName) (leave func()) {
		t.Helper()
		i := plan.Instance{ID: plan.InstanceID{ID: plan.NewID(time.Now())}, Node: node, Lease: time.Minute, Plugins: []string{"x"}, Runner: true}
		no(s.Register(t.Context(), i))
		told, err := s.Beat(t.Context(), protocol.Beat{Instance: i.ID})
		no(err)
		if told.MaxThreads != 3 && node == "perl1" {
			t.Errorf("it is told that its node's limit is %d, want 3", told.MaxThreads)
		}
		return func() { no(s.Leave(t.Context(), i.ID)) }
	}
	leave := live("nobody")
	if n, err := nodes.CountDocuments(t.Context(), d()); n != 0 || err != nil {
		t.Errorf("a runner made %d documents of nodes: %v", n, err)
	}
	leave()
	_, err := nodes.InsertOne(t.Context(), d("_id", 1, "node", "perl1", "maxthreads", 3, "timestamp", time.Unix(5, 0)))
	no(err)
	read := func() string {
		raw, err := nodes.FindOne(t.Context(), d("node", "perl1")).Raw()
		no(err)
		return raw.String()
	}
	before := read()
	live("perl1")()
	if after := read(); after != before {
		t.Errorf("a runner made of %s\n%s", before, after)
	}
}

// TestAClaimOfAnotherProgramIsTakenOrFails has a runner take what another program claimed, whatever else that wrote.
func TestAClaimOfAnotherProgramIsTakenOrFails(t *testing.T) {
	m := newMessy(t)
	q := m.queue("imap", 99)
	i := plan.Instance{ID: plan.InstanceID{ID: plan.NewID(time.Now())}, Node: "perl1", Lease: time.Minute, Runner: true}
	m.no(m.s.Register(t.Context(), i))
	claimed := func(fields ...any) bson.ObjectID {
		return m.task(q, append([]any{"status", -1.0, "node", "perl1"}, fields...)...)
	}
	take := func(id bson.ObjectID) (protocol.ClaimedTask, error) {
		return m.s.Take(t.Context(), protocol.Take{Instance: i.ID, Task: taskID(id), Start: true})
	}
	refused := func(what string, id bson.ObjectID, status plan.Status, why string) {
		t.Helper()
		if _, err := take(id); !errors.Is(err, plan.ErrConflict) || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v; want %s", what, err, why)
		}
		if got := m.read(id); got.Status != status || status == plan.Failed && got.Detail != "" && !strings.Contains(got.Detail, why) {
			t.Errorf("%s is %v: %s", what, got.Status, got.Detail)
		}
	}
	for _, fields := range oddFields {
		what, id := fmt.Sprint(fields...), claimed(fields...)
		if fields[1] == "{nope" {
			refused(what, id, plan.Failed, "its definition cannot be read: invalid character")
			continue
		}
		c, err := take(id)
		if err != nil || c.Attempt != 1 || string(c.Params) != `{"run":"true"}` || c.Plugin != "x" {
			t.Errorf("%s is taken as %+v, %v", what, c, err)
			continue
		}
		did, err := m.s.Turn(t.Context(), protocol.Turn{Instance: i.ID, Ended: []protocol.Ending{{Claim: c.Claim, Status: plan.Succeeded, Output: []byte("1")}}})
		m.no(err)
		if got := m.read(id); len(did.Lost) > 0 || got.Status != plan.Succeeded || string(got.Output) != "1" {
			t.Errorf("%s is %v with output %s, lost: %v", what, got.Status, got.Output, did.Lost)
		}
	}
	refused("params that are a text", claimed("params", "echo hi"), plan.Failed, `its params are a text; they have to be an object: "echo hi"`)
	empty, err := bson.Marshal(d("_id", bson.NewObjectID(), "queue", oid(q.ID.ID), "status", -1.0, "node", "perl1", "params", d("x", ""), "stdout", nil, "stderr", nil,
		"ctime", time.Now(), "mtime", time.Now()))
	m.no(err)
	full := claimed("params", d("x", strings.Repeat("x", largestDocument-20-len(empty))))
	refused("a document that is full", full, plan.Failed, "it cannot be claimed: ")
	unknown := claimed("status", "-1")
	refused("a status that is a text", unknown, plan.Unknown, "is unknown")
	if err := m.s.CancelTask(t.Context(), taskID(unknown)); !errors.Is(err, plan.ErrConflict) || !strings.Contains(err.Error(), "does not know") {
		t.Errorf("a task with a status that is a text is cancelled: %v", err)
	}
	refused("a node that is a number", claimed("node", 7), plan.Claimed, `is claimed by node "", and not by "perl1"`)
	lost := claimed("queue", bson.NewObjectID())
	if _, err := take(lost); !errors.Is(err, plan.ErrNotFound) || !strings.Contains(err.Error(), "its queue") {
		t.Errorf("a task of a queue that is not there: %v", err)
	}
	if got := m.read(lost); got.Status != plan.Claimed || !got.Instance.IsZero() {
		t.Errorf("a task of a queue that is not there is %v", got.Status)
	}
}
