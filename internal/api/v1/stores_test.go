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
	"github.com/seed-1177d267/sluice/plan"
	"github.com/seed-1177d267/sluice/plugins"
	"github.com/seed-1177d267/sluice/plugins/http"
)

// onEachStore runs a test on the API over SQLite and, if there is a server, over MongoDB, with the role that docs/users.md gives its user there.
func onEachStore(t *testing.T, test func(t *testing.T, s *site)) {
	onSQLite(t, test)
	if mongotest.Server == "" {
		t.Log("SLUICE_TEST_MONGODB is not set: only on SQLite")
		return
	}
	t.Run("mongodb", func(t *testing.T) {
		uri, _ := mongotest.Database(t)
		st, err := mongodb.Open(t.Context(), uri, mongodb.Options{}) // as a node
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = st.Close() })
		server, err := mongodb.Open(t.Context(), uri, mongodb.Options{Monitor: mongotest.Role(t, "disbatch_web", allowed("disbatch_web"))})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = server.Close() })
		test(t, serveStore(t, st, v1.Config{Store: server, Check: checkHTTP()}))
	})
}

// allowed returns what a role of MongoDB may do: actions by collection.
func allowed(role string) map[string][]string {
	may := map[string][]string{}
	for _, r := range mongodb.Roles() {
		for _, p := range r.Privileges {
			if r.Name == role {
				may[p.Collection] = p.Actions
			}
		}
	}
	return may
}

// onSQLite is for what does not depend on the store, or would take long on another. make test-mongodb leaves it to make test.
func onSQLite(t *testing.T, test func(t *testing.T, s *site)) {
	if os.Getenv("SLUICE_TEST_STORES") == "mongodb" {
		return
	}
	t.Run("sqlite", func(t *testing.T) {
		st := openSQLite(t, nil)
		test(t, serveStore(t, st, v1.Config{Store: st, Check: checkHTTP()}))
	})
}

// checkHTTP asks the plugin http about its tasks, as a server does.
func checkHTTP() func(*plan.Spec) plan.Problems {
	r := plugins.NewRegistry()
	r.Register(http.Name, http.New(http.Options{}))
	return r.Refused
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
