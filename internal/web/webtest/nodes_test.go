//go:build browser

package webtest

import (
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/store/sqlite"
	"github.com/seed-1177d267/sluice/plan"
)

func TestANodeSaysWhichQueueItLeavesToOthers(t *testing.T) {
	t.Parallel()
	s := serve(t)
	var q struct{ ID plan.QueueID }
	if err := json.Unmarshal(s.ask("POST", "/queues", "application/json", `{"name": "imap", "plugin": "exec", "threads": 3}`), &q); err != nil {
		t.Fatal(err)
	}
	st, err := sqlite.Open(t.Context(), filepath.Join(s.dir, "sluice.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	err = st.Register(t.Context(), plan.Instance{
		ID: plan.InstanceID{ID: plan.NewID(time.Now())}, Node: "bad", Host: "bad", Lease: time.Hour, Threads: 4, Plugins: []string{"exec"},
		Pauses: []plan.Pause{{Queue: q.ID, Each: time.Minute, Why: "the folder /nonexistent is not there"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	b := s.browse(light)
	b.open("/ui/nodes")
	b.sees(".node", "It leaves queue imap to other nodes, and tries one task each 1m0s: the folder /nonexistent is not there")
}
