package mongodb

import (
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/seed-1177d267/sluice/internal/mongotest"
	"github.com/seed-1177d267/sluice/internal/store"
	"github.com/seed-1177d267/sluice/internal/store/storetest"
)

var (
	// server is the URI of the server that the tests of this package need.
	server = mongotest.Server
	// whole asks for the suite's own sizes, and for a death at each write: also to run again the one at which a run failed.
	whole = os.Getenv("SLUICE_TEST_WHOLE") != ""
)

func TestMain(m *testing.M) {
	code := mongotest.Run(m)
	if server == "" {
		fmt.Println("The MongoDB suite did not run. To run it: make test-mongodb (Debian, root), or set SLUICE_TEST_MONGODB=mongodb://HOST:PORT/")
	}
	os.Exit(code)
}

// database returns the URI of an empty database that nobody else uses until the test ends.
func database(t testing.TB) (uri string, db *mongo.Database) {
	t.Helper()
	return mongotest.Database(t)
}

// fresh is database for a test that looks at, or changes, which collections and indexes there are.
func fresh(t testing.TB) (uri string, db *mongo.Database) {
	t.Helper()
	return mongotest.Fresh(t)
}

// noError returns a function that ends the test if there is an error.
func noError(t testing.TB) func(error) {
	return func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
}

// openTest opens a store on a database of its own, which a test cleans up.
func openTest(t testing.TB) (s *Store, db *mongo.Database, no func(error)) {
	t.Helper()
	uri, db := database(t)
	return openAt(t, uri), db, noError(t)
}

// openAt opens a store on a database that is there.
func openAt(t testing.TB, uri string) *Store {
	t.Helper()
	s, err := Open(t.Context(), uri, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// openMonitored is openAt with a monitor of what the store asks of the server.
func openMonitored(t testing.TB, uri string, m *event.CommandMonitor) *Store {
	t.Helper()
	s, err := Open(t.Context(), uri, Options{Monitor: m})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// bed knows which database a handle is on.
type bed struct {
	uri string
	db  *mongo.Database
}

func TestStore(t *testing.T) {
	var beds sync.Map // of each handle
	at := func(s store.Store) bed {
		b, _ := beds.Load(s)
		return b.(bed)
	}
	open := func(t testing.TB, b bed, o storetest.Options) store.Store {
		s, err := Open(t.Context(), b.uri, Options{Hook: o.Hook})
		if err != nil {
			t.Fatal(err)
		}
		beds.Store(s, b)
		return s
	}
	if whole {
		sizes = storetest.Sizes{}
	}
	storetest.Run(t, storetest.Driver{
		Open: func(t testing.TB, o storetest.Options) store.Store {
			uri, db := database(t)
			return open(t, bed{uri, db}, o)
		},
		Reopen: func(t testing.TB, s store.Store, o storetest.Options) store.Store { return open(t, at(s), o) },
		Pass:   func(t testing.TB, s store.Store, d time.Duration) { mongotest.Pass(t, at(s).db, d) },
		Foreign: func(t testing.TB, s store.Store) storetest.Foreign {
			return disbatch{at(s).db.Collection("tasks")}
		},
		Left:   func(t testing.TB, s store.Store) map[string]int { return left(t, s.(*Store)) },
		Damage: func(t testing.TB, s store.Store, r *rand.Rand) []string { return damageAll(t, s.(*Store), r) },
		AtOnce: true,
		Sizes:  sizes,
	})
}

// left counts what is kept of work that is to be done, and what belongs to nothing that is there.
func left(t testing.TB, s *Store) map[string]int {
	t.Helper()
	found := map[string]int{}
	count := func(what string, c *mongo.Collection, filter bson.D) {
		n, err := c.CountDocuments(t.Context(), filter)
		if err != nil {
			t.Fatal(err)
		}
		found[what] = int(n)
	}
	count("notes of work", s.work, d())
	count("lists of items", s.items, d())
	count("retries", s.retries, d())
	count("marks of tasks that were added", s.tasks, d("adding", d("$exists", true)))
	count("marks of items that are made", s.tasks, d("making", true))
	count("gates", s.tasks, d("gate", d("$exists", true)))
	return found
}
