package mongodb

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/plan"
)

func TestACheckFindsAJoinThatIsGone(t *testing.T) {
	m := newMessy(t)
	q := m.queue("imap", 4)
	var parents bson.A
	for i := range joinSize + 1 {
		parents = append(parents, m.task(q, "status", plan.Succeeded, "name", fmt.Sprint("p", i)))
	}
	id := bson.NewObjectID()
	for n, needs := range []bson.A{parents[:joinSize], parents[joinSize:]} {
		m.put("joins", "_id", parentJoin(id, n), "child", id, "n", n, "needs", needs, "gen", 0)
	}
	m.task(q, "_id", id, "status", plan.Held, "hold", holdNeeds, "name", "last", "joins", 2, "gen", 0)
	for _, want := range []string{"", `task "last" (` + id.Hex() + `) has 2 joins of its parents, and 1 are there`} {
		faults, _, err := m.s.Check(t.Context())
		if got := strings.Join(faults, "; "); err != nil || got != want {
			t.Errorf("the faults are %q (%v), want %q", got, err, want)
		}
		_, err = m.db.Collection("joins").DeleteOne(t.Context(), d("_id", parentJoin(id, 1)))
		m.no(err)
	}
}

func TestACheckFindsWhatIsInABatchAndCannotBe(t *testing.T) {
	m := newMessy(t)
	q := m.queue("imap", 4)
	batch, gone := bson.NewObjectID(), bson.NewObjectID()
	ok := m.task(q, "status", plan.Succeeded, "ended", time.Now(), "gate", batch, "rolling", true)
	waits := m.task(q, "status", plan.Queued, "gate", batch, "rolling", true)
	m.put("rolls", "_id", batch, "queue", oid(q.ID.ID), "tasks", bson.A{ok, waits, gone}, "fate", rollSealed)
	m.put("rolls", "_id", bson.NewObjectID(), "queue", oid(q.ID.ID), "tasks", bson.A{gone}, "fate", rollReceived)
	faults, _, err := m.s.Check(t.Context())
	m.no(err)
	for i, id := range []bson.ObjectID{waits, gone} {
		want := fmt.Sprintf("batch %s is to hand over task %s, which is no finished task", batch.Hex(), id.Hex())
		if len(faults) != 2 || !strings.HasPrefix(faults[i], want) {
			t.Errorf("the faults are %q, want %q", faults, want)
		}
	}
}
