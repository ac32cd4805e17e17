package storetest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/memory"
	"github.com/seed-1177d267/sluice/internal/store/sqlite"
	"github.com/seed-1177d267/sluice/internal/store/storetest"
)

var (
	inMemory = storetest.Named{Name: "memory", Driver: storetest.Driver{Open: func(_ testing.TB, o storetest.Options) store.Store {
		return memory.New(memory.Options{Now: o.Now})
	}}}
	onSQLite = storetest.Named{Name: "sqlite", Driver: storetest.Driver{Open: func(t testing.TB, o storetest.Options) store.Store {
		return opened[*sqlite.Store](t)(sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "sluice.db"), sqlite.Options{Now: o.Now}))
	}}}
)

func opened[S store.Store](t testing.TB) func(s S, err error) store.Store {
	return func(s S, err error) store.Store {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
}

// Many more seeds than CI takes: SLUICE_TEST_WHOLE=1. The one that failed: SLUICE_TEST_SEED=N.
var whole = os.Getenv("SLUICE_TEST_WHOLE") != ""

const steps = 60

func TestHistories(t *testing.T) {
	count := histories
	if whole {
		count = 2000
	}
	storetest.Histories(t, count, steps, inMemory, onSQLite)
}
