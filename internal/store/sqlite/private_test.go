package sqlite

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/storetest"
	"github.com/seed-1177d267/sluice/plan"
)

// The groups are those in which locks and notices matter, as far as they need no second handle.
func TestAPrivateStoreIsAStore(t *testing.T) {
	storetest.Run(t, storetest.Driver{
		Open: func(t testing.TB, o storetest.Options) store.Store {
			s, err := Private(t.Context(), Options{Now: o.Now, Hook: o.Hook})
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
		OneWriter: true,
		Sizes:     sizes,
		Only:      []string{"tasks", "read", "progress"},
	})
}

func TestAPrivateStoreWakesItsOwnNodesAndIsDeleted(t *testing.T) {
	s, err := Private(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	wakes := s.Wakes(t.Context())
	q, err := s.EnsureQueue(t.Context(), plan.Queue{Name: "q", Plugin: "echo"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.AddTasks(t.Context(), plan.PlanID{}, []plan.Task{{ID: plan.TaskID{ID: plan.NewID(s.now())}, Name: "a", Queue: q.ID}}); err != nil {
		t.Fatal(err)
	}
	<-wakes
	dir := filepath.Dir(s.path)
	if files, err := os.ReadDir(dir); err != nil || len(files) != 3 {
		t.Errorf("its folder has %v, %v; want the database, its log and the index of that", files, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after Close, its folder: %v", err)
	}
}
