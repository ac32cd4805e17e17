package storetest_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/seed-1177d267/sluice/internal/mongotest"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/mongodb"
	"github.com/seed-1177d267/sluice/internal/store/sqlite"
	"github.com/seed-1177d267/sluice/internal/store/storetest"
	"github.com/seed-1177d267/sluice/internal/store/storetest/model"
)

var (
	inMemory = storetest.Named{Name: "model", Driver: storetest.Driver{Open: func(_ testing.TB, o storetest.Options) store.Store {
		return model.New(model.Options{Now: o.Now})
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

func TestMain(m *testing.M) { os.Exit(mongotest.Run(m)) }

func TestHistories(t *testing.T) {
	if os.Getenv("SLUICE_TEST_STORES") == "mongodb" {
		t.Skip("SLUICE_TEST_STORES asks for MongoDB alone")
	}
	count := histories
	if whole {
		count = 2000
	}
	storetest.Histories(t, count, steps, inMemory, onSQLite)
}

func TestHistoriesOnMongoDB(t *testing.T) {
	count := 5
	if whole {
		count = 300
	}
	if mongotest.Server == "" {
		t.Skip("SLUICE_TEST_MONGODB names no server: this did not run")
	}
	storetest.Histories(t, count, steps, inMemory, onMongoDB())
}

func onMongoDB() storetest.Named {
	var databases sync.Map // of each handle
	return storetest.Named{Name: "mongodb", Driver: storetest.Driver{
		Open: func(t testing.TB, _ storetest.Options) store.Store {
			uri, db := mongotest.Database(t)
			s := opened[*mongodb.Store](t)(mongodb.Open(t.Context(), uri, mongodb.Options{}))
			databases.Store(s, db)
			return s
		},
		Pass: func(t testing.TB, s store.Store, by time.Duration) {
			db, _ := databases.Load(s)
			mongotest.Pass(t, db.(*mongo.Database), by)
		},
	}}
}
