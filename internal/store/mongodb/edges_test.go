package mongodb

import (
	"errors"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/plan"
)

// outsideEdges puts tasks into the database as version 1 kept them: a task of no plan that needs another one, one of a plan, an item, and one
// that is gone; and a foreach of no plan.
func (m *messy) outsideEdges(q plan.Queue, status plan.Status) (own, both, list bson.ObjectID) {
	m.Helper()
	p := bson.NewObjectID()
	end := func(status plan.Status, more ...any) []any {
		return append(more, "status", status, "gen", 0, "complete", true, "ended", time.Now())
	}
	a := m.task(q, end(plan.Succeeded, "plan", p, "name", "a")...)
	copied := m.task(q, end(plan.Succeeded, "plan", p, "name", "copy", "items", 1, "expanded", true, "def", `{"foreach":{"list":[1]}}`)...)
	m.task(q, end(plan.Succeeded, "_id", itemID(copied, 0), "plan", p, "of", copied, "name", "copy[0]")...)
	own = m.task(q, end(plan.Succeeded, "name", "own", "batch", 1)...)
	both = m.task(q, end(status, "name", "both", "batch", 1, "plans", bson.A{p}, "needs", bson.A{own, a, itemID(copied, 0), bson.NewObjectID()})...)
	list = m.task(q, end(plan.Succeeded, "name", "list", "batch", 1, "items", 2, "expanded", true, "gathered", true, "def", `{"foreach":{"list":[7,8]},"description":"of two"}`)...)
	for k := range 2 {
		m.task(q, end(plan.Succeeded, "_id", itemID(list, k), "of", list, "index", k, "name", "list[x]", "output", `"o"`)...)
	}
	_, err := m.db.Collection("meta").UpdateOne(m.Context(), d("_id", "schema"), d("$set", d("version", 1)))
	m.no(err)
	return own, both, list
}

func TestEdgesOfFinishedTasksThatLeadOutsideAreCut(t *testing.T) {
	m := newMessy(t)
	own, both, list := m.outsideEdges(m.queue("imap", 4), plan.Succeeded)
	s, err := Open(t.Context(), m.uri, Options{})
	m.no(err)
	defer s.Close()
	if got := m.read(both); len(got.Needs) != 1 || got.Needs[0] != taskID(own) {
		t.Errorf("the task needs %v, want %v alone", got.Needs, own)
	}
	if got := m.read(list); got.Foreach != nil || got.Items != 0 || got.Description != "of two" || string(got.Output) != `["o","o"]` {
		t.Errorf("the foreach task is %+v", got)
	}
	alone, err := s.Tasks(t.Context(), store.TaskQuery{NoPlan: true, NoItems: true, Limit: 100})
	if m.no(err); len(alone) != 5 {
		t.Errorf("there are %d tasks of no plan that are no items, want 5", len(alone))
	}
}

func TestADatabaseWithUnfinishedTasksThatNeedOthersOutsideIsRefused(t *testing.T) {
	m := newMessy(t)
	_, both, _ := m.outsideEdges(m.queue("imap", 4), plan.Queued)
	for range 2 { // the first refusal changes nothing
		_, err := Open(t.Context(), m.uri, Options{})
		if !errors.Is(err, plan.ErrUnavailable) || !strings.Contains(err.Error(), "both ("+both.Hex()+")") || !strings.Contains(err.Error(), "finish or cancel them") {
			t.Fatalf("the error is %v", err)
		}
	}
	if got := m.read(both); len(got.Needs) != 4 {
		t.Errorf("the task needs %v, want all four", got.Needs)
	}
}
