package mongodb

import (
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/plan"
)

func TestARunnerLeavesTheDocumentOfItsNodeAlone(t *testing.T) {
	s, db, no := openTest(t)
	nodes := db.Collection("nodes")
	live := func(node plan.NodeName) (leave func()) {
		t.Helper()
		i := plan.Instance{ID: plan.InstanceID{ID: plan.NewID(time.Now())}, Node: node, Lease: time.Minute, Plugins: []string{"x"}, Runner: true}
		no(s.Register(t.Context(), i))
		told, err := s.Beat(t.Context(), plan.Beat{Instance: i.ID})
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
