package mongodb

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/seed-1177d267/sluice/internal/rules"
	"github.com/seed-1177d267/sluice/internal/store/mongodb/wire"
	"github.com/seed-1177d267/sluice/plan"
)

// A damager damages what the store keeps beside the states of tasks and plans.
type damager struct {
	testing.TB
	*rand.Rand
	did []string
}

// one is true once in three times.
func (g *damager) one() bool { return g.IntN(3) == 0 }

// set changes a document. A slot that another task has stays as it is.
func (g *damager) set(c *mongo.Collection, id any, update bson.D, format string, args ...any) {
	g.Helper()
	_, err := c.UpdateByID(g.Context(), id, update)
	if mongo.IsDuplicateKeyError(err) {
		return
	}
	if err != nil {
		g.Fatal(err)
	}
	g.did = append(g.did, fmt.Sprintf(format, args...))
}

// damageAll damages bookkeeping at random, and returns what it did.
func damageAll(t testing.TB, s *Store, r *rand.Rand) []string {
	g := &damager{TB: t, Rand: r}
	inOrder := wire.Query{Sort: d("_id", 1)}
	notes, err := wire.Find[workDoc](t.Context(), s.work, d(), inOrder)
	noError(t)(err)
	for _, w := range notes {
		switch {
		case g.one():
			_, err := s.work.DeleteOne(t.Context(), d("_id", w.ID))
			noError(t)(err)
			g.did = append(g.did, "a note is gone: "+w.Kind)
		case g.one():
			g.set(s.work, w.ID, d("$set", d("owner", bson.NewObjectID())), "a note has an owner who is gone: %s", w.Kind)
		}
	}
	plans, err := wire.Find[planDoc](t.Context(), s.plans, d("state", plan.PlanRunning), inOrder)
	noError(t)(err)
	for _, p := range plans {
		if g.one() {
			g.set(s.plans, p.ID, d("$unset", d("fresh", 1), "$inc", d("edits", g.IntN(3))), "%s is not fresh", p.title())
		}
		if g.one() && p.Retry.IsZero() {
			g.set(s.plans, p.ID, d("$set", d("retry", bson.NewObjectID())), "%s notes a retry that is not there", p.title())
		}
	}
	tasks, err := wire.Find[taskDoc](t.Context(), s.tasks, d(), inOrder)
	noError(t)(err)
	for i := range tasks {
		if g.one() {
			g.task(s, &tasks[i])
		}
	}
	joins, err := wire.Find[joinDoc](t.Context(), s.joins, d("done", nil), inOrder)
	noError(t)(err)
	for _, j := range joins {
		if g.one() {
			g.set(s.joins, j.ID, d("$set", d("done", true, "seen", rules.Outcome(g.IntN(16)), "failed", g.IntN(3), "bytes", g.IntN(9))),
				"items of %s are said to have ended", j.Child.Hex())
		}
	}
	return g.did
}

// task damages a task.
func (g *damager) task(s *Store, t *taskDoc) {
	kinds := []struct {
		is     bool
		update bson.D
		what   string
	}{
		{t.Status.Active(), d("$set", d("instance", bson.NewObjectID())), "is claimed by nobody who is there"},
		{t.Status.Active() && t.Slot > 0, d("$set", d("slot", 1+g.IntN(9))), "has another slot of its queue"},
		{t.Status.Active() && t.Slot > 0, d("$unset", d("slot", 1)), "has no slot of its queue"},
		{t.Status.Active(), d("$set", d("nodeslot", 1+g.IntN(9))), "has another slot of its node"},
		{!t.Status.Finished(), d("$unset", d("open", 1)), "is not marked as open"},
		{t.Status.Finished() && t.Open, d("$unset", d("open", 1)), "is not to be released"},
		{t.Status.Finished(), d("$set", d("open", true)), "is to be released again"},
		{t.Status.Finished() && t.Gate.IsZero(), d("$set", d("gate", bson.NewObjectID())), "is gated by a retry that is not there"},
		{t.Hold == holdNeeds, d("$unset", d("adding", 1)), "is not to be looked at"},
		{t.Hold == holdNeeds, d("$set", d("hold", holdRetry, "gate", bson.NewObjectID())), "is held by a retry that is not there"},
		{t.Hold == holdItems, d("$unset", d("making", 1)), "is not to make its items"},
		{t.Hold == holdItems && t.Expanded, d("$set", d("released", g.IntN(t.Items+1))), "let others of its items run"},
	}
	if k := g.IntN(len(kinds)); kinds[k].is {
		g.set(s.tasks, t.ID, kinds[k].update, "%s %s", t.key(), kinds[k].what)
	}
}
