package hiding

import (
	"path/filepath"
	"testing"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/memory"
	"github.com/seed-1177d267/sluice/internal/store/sqlite"
)

// What a store offers beside is asked for by its interface, so that one that stands before it must not lose it unseen: submissions through one
// that did handed over few tasks at once.
func TestWhatAStoreOffersBesideIsOfferedWithoutItsSecrets(t *testing.T) {
	onDisk, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "s.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer onDisk.Close()
	for name, st := range map[string]store.Store{"memory": memory.New(memory.Options{}), "sqlite": onDisk} {
		hidden := New(st)
		for what, offers := range map[string]func(store.Store) bool{
			"balance":   func(s store.Store) bool { _, ok := s.(store.Balance); return ok },
			"documents": func(s store.Store) bool { _, ok := s.(store.Documents); return ok },
			"results":   func(s store.Store) bool { _, ok := s.(store.Results); return ok },
			"deletion":  func(s store.Store) bool { _, ok := s.(store.QueueDeleter); return ok },
		} {
			if offers(hidden) != offers(st) {
				t.Errorf("%s: %s offered: %v, and without secrets %v", name, what, offers(st), offers(hidden))
			}
		}
		batch := func(s store.Store) int {
			if b, ok := s.(store.Batcher); ok {
				return b.SubmitBatch()
			}
			return 0
		}
		if batch(hidden) != batch(st) {
			t.Errorf("%s takes %d tasks at once best, and without secrets %d", name, batch(st), batch(hidden))
		}
		if Of(hidden) != st || New(hidden) != hidden {
			t.Errorf("%s is not the store that is hidden, or is hidden twice", name)
		}
	}
}
