package v1_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/seed-1177d267/sluice/internal/api/v1"
	"github.com/seed-1177d267/sluice/internal/mongotest"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/mongodb"
	"github.com/seed-1177d267/sluice/internal/store/sqlite"
)

// onEachStore runs a test on the API over SQLite and, if there is a server, over MongoDB.
func onEachStore(t *testing.T, test func(t *testing.T, s *site)) {
	onSQLite(t, test)
	if mongotest.Server == "" {
		t.Log("SLUICE_TEST_MONGODB is not set: only on SQLite")
		return
	}
	t.Run("mongodb", func(t *testing.T) {
		uri, _ := mongotest.Database(t)
		st, err := mongodb.Open(t.Context(), uri, mongodb.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = st.Close() })
		test(t, serveStore(t, st, v1.Config{Store: st}))
	})
}

// onSQLite is for what does not depend on the store, or would take long on another. make test-mongodb leaves it to make test.
func onSQLite(t *testing.T, test func(t *testing.T, s *site)) {
	if os.Getenv("SLUICE_TEST_STORES") == "mongodb" {
		return
	}
	t.Run("sqlite", func(t *testing.T) {
		st := openSQLite(t, nil)
		test(t, serveStore(t, st, v1.Config{Store: st}))
	})
}

func openSQLite(t *testing.T, now func() time.Time) store.Store {
	t.Helper()
	st, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "sluice.db"), sqlite.Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return st
}
